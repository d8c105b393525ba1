"""`tt-torch explain`: what becomes of a model, without running it on the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tt_torch.cli_errors import one_line_errors

if TYPE_CHECKING:
    from tt_torch.dynamo.types import Function

Target = Annotated[str, typer.Argument(metavar="FILE:FUNCTION", help="a Python file and a function in it")]
FORM = "a model and its arguments, as a tuple, or as a dict by name"


def explain(target: Target) -> None:
    """Lists the graphs, graph breaks, host ops, moved bytes and recompilations of a model.

    FUNCTION takes no argument and returns the model and a tuple of its arguments, or a dict of them by name. The model
    is called twice; its graphs are compiled, but eager PyTorch computes them.
    """
    with one_line_errors():
        model, args, kwargs = model_of(target)
        import tt_torch

        print(tt_torch.explain(model, *args, **kwargs))


def model_of(target: str) -> tuple[Function, tuple[Any, ...], dict[str, Any]]:
    """The model that a function of a file returns, with its arguments; `target` is FILE:FUNCTION.

    Raises BadParameter without such a file, and ModelsFileError if the function does not return this.
    """
    file, _, name = target.rpartition(":")
    path = Path(file)
    if not path.is_file() or not name:
        raise typer.BadParameter(f"{target!r} is not FILE:FUNCTION with an existing file", param_hint="FILE:FUNCTION")
    from tt_torch.errors import ModelsFileError
    from tt_torch.sweep.catalogue import module_of

    make = getattr(module_of(path), name, None)
    if not callable(make):
        raise ModelsFileError(str(path), f"it has no function {name}")
    match make():
        case (model, tuple(args)) if callable(model):
            return model, args, {}
        case (model, dict(kwargs)) if callable(model) and all(isinstance(key, str) for key in kwargs):
            return model, (), kwargs
        case other:
            raise ModelsFileError(str(path), f"{name} returns {type(other).__name__}, not {FORM}")

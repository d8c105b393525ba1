"""`tt-torch explain` shows what becomes of a model, without running it on the device."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, is_module, print_json

if TYPE_CHECKING:
    from tt_torch.dynamo.types import Function

FORM = "a model and its arguments, as a tuple, or as a dict by name"
TARGET = "FILE.py:FUNCTION or MODULE:FUNCTION"
Target = Annotated[str, typer.Argument(metavar="MODEL", help=f"{TARGET}: a function that returns {FORM}")]


def explain(target: Target, as_json: AsJson = False) -> None:
    """Lists the graphs, graph breaks, host ops, moved bytes and recompilations of a model.

    The model is called twice; its graphs are compiled, but eager PyTorch computes them. With --json, what the model
    prints goes to stderr.
    """
    with one_line_errors():
        model, args, kwargs = model_of(target)
        import tt_torch

        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            explanation = tt_torch.explain(model, *args, **kwargs)
        if as_json:
            print_json(dataclasses.asdict(explanation))
        else:
            print(explanation)


def model_of(target: str) -> tuple[Function, tuple[Any, ...], dict[str, Any]]:
    """The model that a function of a file or a module returns, with its arguments; `target` has the form of TARGET.

    Raises BadParameter if there is no such file, module or function. Raises ModelsFileError if the function fails or
    returns anything else.
    """
    source, _, name = target.rpartition(":")
    if not name or not (Path(source).is_file() if source.endswith(".py") else is_module(source)):
        raise typer.BadParameter(f"{target!r} is not {TARGET}, of an existing file or module", param_hint="MODEL")
    from tt_torch.errors import ModelsFileError
    from tt_torch.sweep.catalogue import module_of, told

    make = getattr(module_of(source), name, None)
    if not callable(make):
        raise typer.BadParameter(f"{source} has no function {name}", param_hint="MODEL")
    with told(source):
        made = make()
    match made:
        case (model, tuple(args)) if callable(model):
            return model, args, {}
        case (model, dict(kwargs)) if callable(model) and all(isinstance(key, str) for key in kwargs):
            return model, (), kwargs
        case tuple(parts):
            raise ModelsFileError(source, f"{name} returns ({', '.join(type(p).__name__ for p in parts)}), not {FORM}")
        case other:
            raise ModelsFileError(source, f"{name} returns {type(other).__name__}, not {FORM}")

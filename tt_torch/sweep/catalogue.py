"""The models of a sweep: the rows of this package, or those of the user's file."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tt_torch.errors import ModelsFileError
from tt_torch.sweep.registry import Model


def load(source: str = "") -> Sequence[Model]:
    """The rows of this package, or the list MODELS of a Python file."""
    if source:
        return _from_file(Path(source))
    from tt_torch.sweep import diffusers_models, plain_models, transformers_models

    return [*transformers_models.MODELS, *diffusers_models.MODELS, *plain_models.MODELS]


def _from_file(path: Path) -> Sequence[Model]:
    module = module_of(path)
    if not hasattr(module, "MODELS"):
        raise ModelsFileError(str(path), "it has no list MODELS of tt_torch.sweep.registry.Model")
    for row in module.MODELS:
        if not isinstance(row, Model):
            raise ModelsFileError(
                str(path), f"MODELS has an entry of type {type(row).__name__}, not a tt_torch.sweep.registry.Model"
            )
    return module.MODELS


def module_of(path: Path) -> ModuleType:
    """The module that a user's Python file defines. Raises ModelsFileError if the file cannot be run."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ModelsFileError(str(path), "it is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's program may raise anything
        line = next(
            (f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(path)), 0
        )
        raise ModelsFileError(str(path), f"line {line}: {type(error).__name__}: {error}") from error
    return module

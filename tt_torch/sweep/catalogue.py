"""The models of a sweep: the rows of this package, or the rows of the user's file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tt_torch.errors import ModelsFileError
from tt_torch.sweep.registry import Model


def load(source: str = "") -> Sequence[Model]:
    """The rows of this package, or the list MODELS of a Python file or a module."""
    if source:
        return _from_module(source)
    from tt_torch.sweep import diffusers_models, plain_models, transformers_models

    return [*transformers_models.MODELS, *diffusers_models.MODELS, *plain_models.MODELS]


def _from_module(source: str) -> Sequence[Model]:
    module = module_of(source)
    if not hasattr(module, "MODELS"):
        raise ModelsFileError(source, "it has no list MODELS of tt_torch.sweep.registry.Model")
    for row in module.MODELS:
        if not isinstance(row, Model):
            raise ModelsFileError(
                source, f"MODELS has an entry of type {type(row).__name__}, not a tt_torch.sweep.registry.Model"
            )
    return module.MODELS


def content_hash(source: str) -> str:
    """A hash of the file of a module that `load` has loaded. Files that it imports are not in it."""
    path = source if source.endswith(".py") else sys.modules[source].__file__
    return hashlib.sha256(Path(str(path)).read_bytes()).hexdigest()[:16]


def module_of(source: str) -> ModuleType:
    """The module that a user's Python file defines, or the module of this name.

    Files next to it can be imported. Raises ModelsFileError if it cannot be run.
    """
    folder = Path(source).resolve().parent if source.endswith(".py") else Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with told(source):
        return _run_file(source) if source.endswith(".py") else importlib.import_module(source)


@contextmanager
def told(source: str) -> Iterator[None]:
    """Raises ModelsFileError, with the line of the user's file, for what the code of this file raises."""
    try:
        yield
    except Exception as error:  # the user's program may raise anything
        frames = reversed(traceback.extract_tb(error.__traceback__))
        line = next((f.lineno for f in frames if f.filename == source), 0)
        place = f"line {line}: " if line else ""
        raise ModelsFileError(source, f"{place}{type(error).__name__}: {error}") from error


def _run_file(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

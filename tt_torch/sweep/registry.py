"""The models that `tt-torch sweep models` runs: each is a row, small, with random weights from a seed."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tt_torch.errors import ModelsFileError


@dataclass(frozen=True)
class Model:
    """`make` returns the module in the mode it is to run in, and the keyword arguments of its call."""

    name: str
    make: Callable[[], tuple[nn.Module, dict[str, Any]]]
    group: str = "other"
    config: dict[str, Any] = field(default_factory=dict)  # what sets it apart from its family, for the records


def load(source: str = "") -> Sequence[Model]:
    """The rows of this package, or the list MODELS of a Python file."""
    if source:
        return _from_file(Path(source))
    from tt_torch.sweep import diffusers_models, plain_models, transformers_models

    return [*transformers_models.MODELS, *diffusers_models.MODELS, *plain_models.MODELS]


def _from_file(path: Path) -> Sequence[Model]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ModelsFileError(str(path), "it is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # it is the user's program: whatever it raises is for them to see
        line = next(
            (f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(path)), 0
        )
        raise ModelsFileError(str(path), f"line {line}: {type(error).__name__}: {error}") from error
    if not hasattr(module, "MODELS"):
        raise ModelsFileError(str(path), "it has no list MODELS of tt_torch.sweep.registry.Model")
    return module.MODELS


def randomize(module: nn.Module) -> None:
    """Random values for every parameter and statistic, of a size that lets signals through.

    Fresh modules have zeros for biases and ones for scales, which would hide what is done wrong with them, and
    some have weights so small that their output is a constant.
    """
    statistics = {name: buffer for name, buffer in module.named_buffers() if "running_" in name}
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=(parameter.shape[0] / parameter.numel()) ** 0.5)
            elif parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        for name, buffer in statistics.items():
            buffer.uniform_(0.5, 1.5) if name.endswith("running_var") else buffer.normal_(std=0.1)

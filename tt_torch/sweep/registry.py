"""A row of `tt-torch sweep models`: a small model with random weights from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import nn

Inputs: TypeAlias = dict[str, Any]  # the keyword arguments of a call of a model: tensors, lists of tensors, numbers
Setting: TypeAlias = Any  # of the configuration of a model: a number, a string, or a list or dictionary of these
Config: TypeAlias = dict[str, Setting]  # settings by name


@dataclass(frozen=True)
class Model:
    """`make` returns the module in the mode it is to run in, and the keyword arguments of its call."""

    name: str
    make: Callable[[], tuple[nn.Module, Inputs]]
    group: str = "other"
    config: Config = field(default_factory=dict)  # how it differs from others of its family, for the records


def randomize(module: nn.Module) -> None:
    """Gives every parameter and statistic random values; signals keep their size on the way through the layers.

    Fresh modules have biases of zero and scales of one, which would hide errors in their use. Some modules have weights
    that are so small that the output is nearly constant.
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

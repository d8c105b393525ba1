"""A graph on the device: what is done on the host around the binary, as data. This imports no compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from tt_torch.dynamo.calls import Check, Interface, ViewOfInput, passed

Runner: TypeAlias = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]


@dataclass(frozen=True)
class Program:
    """Takes the inputs of a graph in a list, which it empties, and returns the graph's results."""

    interface: Interface
    runner: Runner
    checks: list[Check]
    views: dict[int, ViewOfInput]  # of results that are views of an input, by their positions

    def __call__(self, inputs: list[Any]) -> list[Any]:
        arguments = self.interface.arguments(inputs)
        shared = {position: view.of(inputs[view.input]) for position, view in self.views.items()}
        inputs.clear()  # the boxed convention of AOTAutograd: this drops the caller's references
        results = passed(self.interface.results(self.runner(arguments)), self.checks)
        return [shared.get(position, result) for position, result in enumerate(results)] if shared else results

"""Runs a compiled graph on a device, with weights resident and PyTorch's own output types."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tt_torch import runtime
from tt_torch.compiler import CompiledGraph


class Executor:
    """A compiled graph on a device: takes the graph's inputs in order, returns its outputs as a list."""

    def __init__(self, compiled: CompiledGraph, device: runtime.Device) -> None:
        self.compiled = compiled
        self.executable = runtime.Executable(runtime.Binary(compiled.binary), 0, device)
        self.last_arguments: list[torch.Tensor] | None = None  # kept while `keep_arguments` is set
        self.keep_arguments = False
        self.resident = frozenset(i for i, kind in enumerate(compiled.kinds) if kind != "input")

    @property
    def binary(self) -> bytes:
        return self.compiled.binary

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        arguments = [*inputs, *self.compiled.constants]
        if self.keep_arguments:
            self.last_arguments = arguments
        return self.executable(arguments, self.resident, self.compiled.output_dtypes)

"""Compiles and runs graphs with intermediate verification and bisection, if the options with these names are set."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule

from tt_torch.bringup.bisect import bisect, differs
from tt_torch.bringup.intermediates import Values, compare, report
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import CompiledGraph, compile_graph
from tt_torch.driver.devices import Device
from tt_torch.driver.executor import Executor
from tt_torch.driver.observer import Observer
from tt_torch.errors import StageError


def observe(observer: Observer, config: CompilerConfig) -> Observer:
    """The entry point: the first call of each part on the device is compared with eager PyTorch."""
    return dataclasses.replace(observer, make_executor=compile_verified)


def compile_verified(piece: GraphModule, roles: Sequence[str], config: CompilerConfig, device: Device) -> Executor:
    """Compiles a graph to an executor that verifies its first call. If a step fails, the graph is bisected, but only
    with `fallback="error"`: `fallback="host"` finds the op by itself."""
    forms: dict[str, Any] = {}

    def compile_part(part: GraphModule, roles: Sequence[str]) -> Executor:
        return Executor(compile_graph(part, roles, config), device)

    try:
        compiled = compile_graph(piece, roles, config, forms.__setitem__)
    except StageError:
        if config.bisect and config.fallback == "error":
            bisect(piece, roles, compile_part, None, config)
        raise
    return VerifiedExecutor(compiled, device, piece, forms["FX"], config, compile_part)


class VerifiedExecutor(Executor):
    """An executor whose first call is compared with eager PyTorch."""

    def __init__(
        self,
        compiled: CompiledGraph,
        device: Device,
        piece: GraphModule,
        graph: Graph,
        config: CompilerConfig,
        compile_part: Any,
    ) -> None:
        super().__init__(compiled, device)
        self.piece, self.graph, self.config, self.compile_part = piece, graph, config, compile_part
        self.verified = False

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if self.verified:
            return super().__call__(inputs)
        self.verified = True
        return self._verify(inputs)

    def _verify(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        config = self.config
        if config.enable_intermediate_verification:
            rows, results = compare(self, self.graph, inputs)
            report(rows, config)
        else:
            results = super().__call__(inputs)
        if config.bisect:
            with torch.no_grad():
                golden = Values(self.piece).run(*inputs)
            pairs = zip(results, golden, strict=True)
            if any(differs(got.cpu(), expected, config.required_pcc) for got, expected in pairs):
                bisect(self.piece, self.compiled.kinds[: len(inputs)], self.compile_part, inputs, config)
        return results

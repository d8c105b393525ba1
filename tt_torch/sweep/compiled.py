"""Collects the graphs and binaries of a program while it is compiled."""

from __future__ import annotations

from collections import Counter

import torch

from tt_torch.driver.compile import CompiledGraph
from tt_torch.driver.executor import Executor
from tt_torch.driver.observer import Observer
from tt_torch.driver.partition import computing
from tt_torch.profiling.cost_model import of_call
from tt_torch.records.lines import Record
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode
from tt_torch.workers import engine

# How far a failing program came, by the last form of its graph; FAILED_FE if there was no graph.
DEPTHS = {"FX": "TORCH_FX", "STABLEHLO": "STABLEHLO", "TTIR": "TTIR", "BINARY": "TTNN_IR"}


class Compiled:
    """The graphs and binaries of a program."""

    def __init__(self) -> None:
        self.executors: list[Executor] = []
        self.ops: Counter[str] = Counter()

    def observer(self) -> Observer:
        return Observer(self.executors.append, self._graph, reached=_note)

    def _graph(self, gm: torch.fx.GraphModule) -> None:
        self.ops.update(str(node.target) for node in computing(gm.graph))

    def binary_bytes(self) -> int:
        return sum(len(executor.binary) for executor in self.executors)

    def contents(self) -> Record:
        """The ops of graphs and of binaries, the cost of a call of all binaries, their schemas, and the seconds of each
        stage."""
        device: Counter[str] = Counter()
        stages: Counter[str] = Counter()
        messages = [decode(executor.binary) for executor in self.executors]
        for executor, message in zip(self.executors, messages, strict=True):
            device.update(op_histogram(message))
            assert isinstance(executor.compiled, CompiledGraph)
            stages.update(executor.compiled.timings.steps)
        costs = list(map(of_call, messages))
        return {
            "aten_ops": dict(self.ops),
            "device_ops": dict(device),
            "moves": sum(cost.moves for cost in costs),
            "bytes_moved": sum(cost.bytes for cost in costs),
            "modelled_seconds": sum(cost.ideal for cost in costs),
            "schemas": sorted({message["schema_hash"] for message in messages}),
            "stages": {name: round(seconds, 4) for name, seconds in stages.items()},
        }


def _note(form: str, value: object) -> None:
    """Notes how far the current graph has come, for the record of a worker that dies."""
    if form in DEPTHS:
        engine.note(depth=DEPTHS[form])

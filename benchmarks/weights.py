"""The cost of finding writes to weights that PyTorch does not count, which docs/weights.md explains."""

from __future__ import annotations

from typing import Any

import torch

import tt_torch
from benchmarks.common import interleaved, model, table
from tt_torch.runtime import _runtime


def _looks(weights: list[torch.Tensor], tracked: bool) -> list[Any]:
    _runtime.Fingerprint.use_write_tracking(tracked)
    memories = [_runtime.Fingerprint(weight, "weight") for weight in weights]
    for memory in memories:
        memory.same()
    return memories


def _row(name: str, batch: int) -> tuple[str, ...]:
    network, inputs = model(name, batch)
    weights = [*network.parameters(), *network.buffers()]
    compiled: Any = tt_torch.compile_model(network, inputs)
    ways = {"kernel": _looks(weights, True), "sample": _looks(weights, False)}

    def look(memories: list[Any], tracked: bool, whole: bool) -> bool:
        _runtime.Fingerprint.use_write_tracking(tracked)
        return all(memory.same(whole) for memory in memories)

    sides = {
        "call": lambda: compiled(*inputs),
        "kernel": lambda: look(ways["kernel"], True, False),
        "sample": lambda: look(ways["sample"], False, False),
        "all": lambda: look(ways["sample"], False, True),
    }
    times = interleaved(sides, 20)
    _runtime.Fingerprint.use_write_tracking(True)
    shares = [f"{1e3 * times[way]:.2f} ({times[way] / times['call']:.1%})" for way in ("kernel", "sample", "all")]
    megabytes = sum(weight.nbytes for weight in weights) / 1e6
    return f"{name}, batch {batch}", f"{megabytes:.0f}", f"{1e3 * times['call']:.1f}", *shares


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    with torch.no_grad():
        rows = [_row("resnet50", 1), _row("bert", 1)]
    columns = ["model", "weights MB", "call ms", "kernel ms (bar 2 %)", "sample ms (bar 2 %)", "everything ms"]
    table("Finding writes to weights, at each call", columns, rows)

"""The cost of finding writes to weights that PyTorch does not count, which docs/weights.md explains.

It is measured in processor time, which other programs on the machine change little. A call is measured on one thread,
and its time is divided by the number of threads. The time to find writes is not, because one thread does it.
"""

from __future__ import annotations

import time
from typing import Any

import torch

import tt_torch
from benchmarks.common import interleaved, model, table
from tt_torch.runtime import _runtime


def _residents(compiled: Any, inputs: tuple[torch.Tensor, ...], tracked: bool) -> Any:
    """The weights of a program, as its calls look at them, with fingerprints of their own."""
    _runtime.Fingerprint.use_write_tracking(tracked)
    executable, arguments = compiled.executor.executable, compiled.arguments(*inputs)
    handles = [(i, executable._resident(i, arguments[i]).handle) for i in sorted(compiled.executor.resident)]
    kept = [(i, handle, _runtime.Fingerprint(arguments[i], "weight"), arguments[i]) for i, handle in handles]
    residents = _runtime.Residents(len(arguments), kept)
    residents.same(False)
    return residents


def _row(name: str, batch: int, threads: int) -> tuple[str, ...]:
    network, inputs = model(name, batch)
    compiled: Any = tt_torch.compile_model(network, inputs)
    ways = {"kernel": _residents(compiled, inputs, True), "sample": _residents(compiled, inputs, False)}

    def look(residents: Any, tracked: bool, whole: bool) -> None:
        _runtime.Fingerprint.use_write_tracking(tracked)
        if not residents.same(whole):
            raise RuntimeError("a write was found where nobody has written")

    sides = {
        "call": lambda: compiled(*inputs),
        "kernel": lambda: look(ways["kernel"], True, False),
        "sample": lambda: look(ways["sample"], False, False),
        "all": lambda: look(ways["sample"], False, True),
    }
    times = interleaved(sides, 20, min, time.process_time)
    times["call"] /= threads
    _runtime.Fingerprint.use_write_tracking(True)
    shares = [f"{1e3 * times[way]:.2f} ({times[way] / times['call']:.1%})" for way in ("kernel", "sample", "all")]
    megabytes = sum(weight.nbytes for weight in [*network.parameters(), *network.buffers()]) / 1e6
    return f"{name}, batch {batch}", f"{megabytes:.0f}", f"{1e3 * times['call']:.1f}", *shares


def run(threads: int) -> None:
    torch.set_num_threads(1)
    with torch.no_grad():
        rows = [_row("resnet50", 1, threads), _row("bert", 1, threads)]
    torch.set_num_threads(threads)
    columns = ["model", "weights MB", "call ms", "kernel ms (bar 2 %)", "sample ms (bar 2 %)", "everything ms"]
    table("Finding writes to weights, at each call", columns, rows)

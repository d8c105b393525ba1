"""Compares the first process that compiles a model with the second one. The compile cache is empty before the first.

Compile time beyond Dynamo's own is the time in the backend: AOTAutograd, our passes and stages, the binary, or the look
into the cache. The time of the processor in the backend (CPU) depends less on other work on the machine. The whole time
also includes Dynamo's capture. It is the time of the first call minus the time of a later call.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
import time

import torch

import tt_torch
from benchmarks.common import in_process, model, table

MODELS = ("resnet50", "bert-base")
ROUNDS = 3
PARTS = ("backend", "cpu", "whole")


def run(threads: int) -> None:
    rows = []
    for name in MODELS:
        pairs = [_pair(name, threads) for _ in range(ROUNDS)]
        first, second = (
            {part: min(results[part] for results in side) for part in PARTS} for side in zip(*pairs, strict=True)
        )
        beyond = (first["backend"], second["backend"], second["backend"] / first["backend"], 1 / 3)
        others = (side[part] for part in ("cpu", "whole") for side in (first, second))
        rows.append((name, *(f"{v:.3f}" for v in (*beyond, *others))))
    heads = ["model", "first s", "second s", "ratio", "bar", "first CPU s", "second CPU s"]
    heads += ["first with Dynamo s", "second with Dynamo s"]
    table(f"Compile time beyond Dynamo's own, best of {ROUNDS}", heads, rows)


def _pair(name: str, threads: int) -> list[dict[str, float]]:
    """The times and the memory of two processes that share a new cache."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"TT_TORCH_CACHE_DIR": folder, "TT_TORCH_CACHE_SIZE": str(1 << 30)}
        return [in_process("benchmarks.cache", name, str(threads), **variables) for _ in range(2)]


def _measure(name: str) -> dict[str, float]:
    module, inputs = model(name, 1)
    backend = tt_torch.backend  # the import is not part of the compile time
    taken: list[tuple[float, float]] = []

    @functools.wraps(backend)
    def timed(*arguments):
        start, begin = time.perf_counter(), time.process_time()
        compiled = backend(*arguments)
        taken.append((time.perf_counter() - start, time.process_time() - begin))
        return compiled

    compiled = torch.compile(module, backend=timed)
    calls = []
    with torch.no_grad():
        for _ in range(3):
            start = time.perf_counter()
            compiled(*inputs)
            calls.append(time.perf_counter() - start)
    seconds, cpu = map(sum, zip(*taken, strict=True))
    return {"backend": seconds, "cpu": cpu, "whole": calls[0] - min(calls[1:])}


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    print(json.dumps(_measure(sys.argv[1])))

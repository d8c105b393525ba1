"""Packages: the time to load one beyond the time to import torch, compared with the time to compile the model."""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import in_process, table

MODELS = {"resnet50": "ResNet-50", "bert-base": "BERT-base"}
ROUNDS = 3  # processes per model that load the package


def run(threads: int) -> None:
    rows = []
    for name, title in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model.ttpkg"))
            made = in_process("benchmarks.package", "make", name, path, str(threads))
            loads = [in_process("benchmarks.package", "load", name, path, str(threads)) for _ in range(ROUNDS)]
        times = [made["compile"], made["save"]]
        times += [statistics.median(load[what] for load in loads) for what in ("load", "first", "later")]
        rows.append((title, f"{made['bytes'] / 1e6:.1f}", *(f"{seconds:.2f}" for seconds in times), "load 1.00"))
    heads = ["model", "file MB", "compile s", "save s", "import tt_torch and load s", "first call s", "later call s"]
    table("Packages; the import of torch comes before", [*heads, "bar"], rows)


def _make(name: str, path: str) -> dict[str, float]:
    import tt_torch
    from benchmarks.common import model

    module, inputs = model(name, 1)
    start = time.perf_counter()
    compiled = tt_torch.compile_model(module, inputs)
    middle = time.perf_counter()
    compiled.save(path)
    return {"compile": middle - start, "save": time.perf_counter() - middle, "bytes": Path(path).stat().st_size}


def _load(name: str, path: str) -> dict[str, float]:
    import torch

    x = torch.randn(1, 3, 224, 224) if name == "resnet50" else torch.zeros(1, 128, dtype=torch.int64)
    times = [time.perf_counter()]
    import tt_torch

    program = tt_torch.load(path)
    times.append(time.perf_counter())
    for _ in range(2):
        program(x)
        times.append(time.perf_counter())
    return dict(zip(("load", "first", "later"), (b - a for a, b in itertools.pairwise(times)), strict=True))


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[4]))
    print(json.dumps((_make if sys.argv[1] == "make" else _load)(*sys.argv[2:4])))

"""Peak resident memory of compiling and running ResNet-50, less that of a process that only loads the model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from benchmarks.common import in_process, model, table

BAR = 1.3  # times the size of the weights


def run(threads: int) -> None:
    rows = []
    for dtype in ("none", "bf16"):
        sides = {mode: in_process("benchmarks.memory", mode, str(threads), TT_TORCH_DTYPE=dtype) for mode in MODES}
        weights = sides["load"]["weights"]
        for mode in list(MODES)[1:]:
            more = sides[mode]["peak"] - sides["load"]["peak"]
            row = (mode, dtype, sides["load"]["peak"], sides[mode]["peak"], more)
            rows.append((*row[:2], *(f"{v / 1e6:.0f}" for v in row[2:]), f"{more / weights:.2f}", BAR))
    heads = ["what", "dtype", "loading MB", "peak MB", "more MB", "x weights", "bar"]
    table("Peak resident memory, ResNet-50", heads, rows)


def load() -> object:
    return model("resnet50", 1)


def imports() -> object:
    """Loads the model and the libraries, torch-mlir, Dynamo and our own, and does nothing with them."""
    loaded = load()

    import tt_torch.driver.backend  # noqa: F401

    return loaded


def compile_and_run() -> None:
    import tt_torch

    module, inputs = model("resnet50", 1)
    compiled = tt_torch.compile_model(module, inputs)
    for _ in range(3):
        compiled(*inputs)


def eager() -> None:
    module, inputs = model("resnet50", 1)
    with torch.no_grad():
        module(*inputs)


MODES = {"load": load, "imports": imports, "eager run": eager, "compile and run": compile_and_run}

if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    alive = MODES[sys.argv[1]]()
    # `ru_maxrss` is of no use: it starts from the memory that the parent had when it started this process.
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    weights = sum(p.numel() * p.element_size() for p in model("resnet50", 1)[0].parameters())
    print(json.dumps({"peak": peak, "weights": weights}))

"""Bring-up: seconds per unique op, the gain of a second worker process, the cost of intermediate verification.

The model is BERT-base with two layers, which has all of its ops and a sixth of its layers' weights.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import torch

import tt_torch
from benchmarks.common import in_process, table
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig

ROUNDS = 3


def run(threads: int) -> None:
    one, two = (_best(f"op-by-op {jobs}") for jobs in (1, 2))
    plain, verified = (_best(name) for name in ("plain", "verified"))
    each = [seconds["seconds"] / seconds["ops"] for seconds in (one, two)]
    efficiency = one["seconds"] / two["seconds"] / 2
    rows = [
        (f"op by op, 1 process, {one['ops']} unique ops", f"{one['seconds']:.1f}", f"{each[0]:.3f}", ""),
        ("op by op, 2 processes", f"{two['seconds']:.1f}", f"{each[1]:.3f}", f"efficiency {efficiency:.0%}"),
        ("first call, compiling included", f"{plain['seconds']:.2f}", "", ""),
        ("the same with intermediate verification", f"{verified['seconds']:.2f}", "",
         f"{verified['seconds'] / plain['seconds']:.1f} times"),
    ]  # fmt: skip
    table(f"Bring-up of BERT with two layers, best of {ROUNDS}", ["what", "s", "s per unique op", ""], rows)


def _best(what: str) -> dict:
    return min((in_process("benchmarks.bringup", *what.split()) for _ in range(ROUNDS)), key=lambda r: r["seconds"])


def _measure(what: str, jobs: int, folder: Path) -> dict:
    """Measures the first call. The start of the worker processes is part of it, as it is for a user."""
    import transformers

    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(num_hidden_layers=2)).eval()
    config = CompilerConfig(
        compile_depth=CompileDepth.EXECUTE_OP_BY_OP if what == "op-by-op" else CompileDepth.EXECUTE,
        enable_intermediate_verification=what == "verified",
        jobs=jobs,
        results_path=str(folder),
    )
    compiled = torch.compile(model, backend=tt_torch.backend, options=BackendOptions(compiler_config=config))
    ids = torch.randint(0, model.config.vocab_size, (1, 128))
    begin = time.perf_counter()
    with torch.no_grad():
        compiled(ids)
    seconds = time.perf_counter() - begin
    files = list(folder.glob("*_unique_ops.json"))
    return {"seconds": seconds, "ops": len(json.loads(files[0].read_bytes())["ops"]) if files else 0}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1, Path(temporary))))

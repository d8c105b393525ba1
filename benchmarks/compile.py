"""Cold compile time of tt_torch and of inductor, each in a process of its own, without caches.

The compile time is the time of the first call minus the time of a later one. The part from StableHLO to the binary is
shown, too. tt-mlir's C++ compiler takes 1.2 s for it with ResNet-50, and 0.8 s with BERT-base, on a machine like ours.
"""

from __future__ import annotations

import json
import sys
import time

import torch

from benchmarks.common import in_process, model, table

REFERENCE = {"resnet50": 1.2, "bert-base": 0.8}
ROUNDS = 3
FRONT = ("fx-passes", "context", "import-fx", "stablehlo")  # the steps up to StableHLO


def run(threads: int) -> None:
    rows, stages = [], []
    for name, reference in REFERENCE.items():
        sides = {s: [_cold(name, s, threads) for _ in range(ROUNDS)] for s in ("tt", "inductor")}
        best = {side: min(results, key=lambda r: r["compile"]) for side, results in sides.items()}
        ours, theirs = best["tt"]["compile"], best["inductor"]["compile"]
        steps = best["tt"]["steps"]
        back = sum(seconds for step, seconds in steps.items() if step not in FRONT)
        numbers = (ours, theirs, ours / theirs, 0.5, back, reference)
        rows.append((name, *(f"{v:.2f}" for v in numbers)))
        capture = ours - sum(steps.values())
        stages += [(name, "capture (Dynamo, AOTAutograd), device set-up", f"{capture:.3f}")]
        stages += [(name, step, f"{seconds:.3f}") for step, seconds in steps.items() if seconds >= 0.001]
    heads = ["model", "tt_torch s", "inductor s", "ratio", "bar", "StableHLO to binary s", "tt-mlir s"]
    table(f"Cold compile, best of {ROUNDS}", heads, rows)
    table("Where our time goes", ["model", "stage", "s"], stages)


def _cold(name: str, side: str, threads: int) -> dict:
    return in_process("benchmarks.compile", name, side, str(threads), TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")


def _measure(name: str, side: str) -> dict:
    module, inputs = model(name, 1)
    steps: dict[str, float] = {}
    if side == "tt":
        from tt_torch.config import BackendOptions
        from tt_torch.driver.backend import compile_captured
        from tt_torch.driver.observer import Observer

        def backend(gm, example_inputs):
            observer = Observer(lambda executor: steps.update(executor.compiled.timings.steps))
            return compile_captured(gm, example_inputs, BackendOptions(), observer)
    else:
        backend = "inductor"
        import torch._inductor.compile_fx  # as for tt_torch, the import is not part of the compile time
    import torch._dynamo

    compiled = torch.compile(module, backend=backend)
    with torch.no_grad():
        times = []
        for _ in range(3):
            start = time.perf_counter()
            compiled(*inputs)
            times.append(time.perf_counter() - start)
    return {"compile": times[0] - min(times[1:]), "steps": steps}


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    print(json.dumps(_measure(sys.argv[1], sys.argv[2])))

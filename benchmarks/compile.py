"""Cold compile time of tt_torch and of inductor, each in a process of its own, without caches.

The compile time is the time of the first call minus the time of a later one. The part from StableHLO to the binary is
shown, too. All rounds together take about seven minutes of the processor; inductor needs most of them. The last table
compiles Llama 3 8B and shallower models of its width, with weights on `meta`, ahead of time. From StableHLO to the
binary, tt-mlir's C++ compiler takes 1.2 s with ResNet-50, and 0.8 s with BERT-base, on a machine like ours.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import torch

import tt_torch
from benchmarks.common import in_process, model, table

REFERENCE = {"resnet50": 1.2, "bert-base": 0.8}
ROUNDS = 3
LAYERS = (8, 16, 32)
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
    deep = [(count, in_process("benchmarks.compile", str(count), "layers", str(threads))) for count in LAYERS]
    rows = [(n, f"{r['weights']:.2f}", f"{r['cpu']:.1f}", "60", f"{r['peak']:.2f}", "4") for n, r in deep]
    heads = ["layers", "billion weights", "CPU s", "bar", "peak memory GiB", "bar"]
    table("Llama of the width of 8B, weights on meta, ahead of time", heads, rows)


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


def _measure_layers(count: int) -> dict[str, float]:
    """Billions of weights, seconds of the processor, and the peak of the process's memory in GiB."""
    import transformers

    sizes = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8}
    config = transformers.LlamaConfig(vocab_size=128256, num_hidden_layers=count, **sizes)
    with torch.device("meta"):
        llama = transformers.LlamaForCausalLM(config).eval()
        ids = torch.empty(1, 128, dtype=torch.int64)
    start = time.process_time()
    tt_torch.compile_model(llama, (ids,), kwargs={"use_cache": False})
    cpu, weights = time.process_time() - start, sum(x.numel() for x in llama.parameters()) / 1e9
    return {"weights": weights, "cpu": cpu, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    made = _measure_layers(int(sys.argv[1])) if sys.argv[2] == "layers" else _measure(sys.argv[1], sys.argv[2])
    print(json.dumps(made))

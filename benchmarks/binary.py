"""Binaries: the share of the compile time that writing them takes, and the parts that their bytes are spent on."""

from __future__ import annotations

import json
import sys
import time

import torch

from benchmarks.common import in_process, model, table

MODELS = {"resnet50": "ResNet-50", "bert-base": "BERT-base, 12 layers", "llama": "Llama, 2 layers"}
ROUNDS = 5


def run(threads: int) -> None:
    from tt_torch.wire.spending import PARTS

    found = {name: in_process("benchmarks.binary", name, str(threads)) for name in MODELS}
    times = [
        (MODELS[name], *(f"{1000 * r[what]:.1f}" for what in ("compile", "flatbuffer", "encode")), f"{r['share']:.2%}")
        for name, r in found.items()
    ]
    heads = ["model", "compile after capture ms", "message and encode ms", "encode ms", "encode's share"]
    table(f"Writing binaries; encode best of {ROUNDS}", heads, times)
    rows = [("whole file", *(f"{sum(r['bytes'].values()) / 1e3:.1f}" for r in found.values()))]
    rows += [(part, *(f"{r['bytes'].get(part, 0) / 1e3:.1f}" for r in found.values())) for part in PARTS]
    table("What the bytes are spent on, kB", ["", *MODELS.values()], rows)


def _measure(name: str) -> dict:
    from tt_torch.config import BackendOptions
    from tt_torch.driver.backend import compile_captured
    from tt_torch.driver.observer import Observer
    from tt_torch.wire.decode import decode
    from tt_torch.wire.encode import encode
    from tt_torch.wire.spending import bytes_by_part

    module, inputs = model(name, 1)
    graphs = []

    def backend(gm, example_inputs):
        observer = Observer(lambda executor: graphs.append(executor.compiled))
        return compile_captured(gm, example_inputs, BackendOptions(), observer)

    with torch.no_grad():
        torch.compile(module, backend=backend)(*inputs)
    (compiled,) = graphs
    message, times = decode(compiled.binary), []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        encode(message)
        times.append(time.perf_counter() - start)
    steps = compiled.timings.steps
    result = {"compile": sum(steps.values()), "flatbuffer": steps["flatbuffer"], "encode": min(times)}
    return result | {"share": min(times) / sum(steps.values()), "bytes": bytes_by_part(compiled.binary)}


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    print(json.dumps(_measure(sys.argv[1])))

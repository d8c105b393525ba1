"""The optimization levels: ops, traffic, modelled time, L1 as we and the library count it, and the time to compile.

The time comes from the profile's model of the chips (docs/profiling.md); it is not measured. `python -m benchmarks
chips` compares that model with figures that tt-metal publishes.
"""

from __future__ import annotations

import itertools
import time
from contextlib import ExitStack
from unittest.mock import patch

import torch

import tt_torch
from benchmarks.common import model, table
from tt_torch.codegen import environment
from tt_torch.codegen.check import Checker
from tt_torch.config import CompilerConfig
from tt_torch.mlir import pipeline
from tt_torch.profiling.cost_model import of_call
from tt_torch.wire import facts
from tt_torch.wire.calls import public
from tt_torch.wire.decode import decode

DEVICES = {"n150": "wormhole_b0", "p150": "blackhole"}
MODELS = (("resnet50", 16), ("bert", 8), ("llama", 1))
# The most MB of DRAM traffic, and milliseconds by the model, that level 2 is meant to reach on n150. Language models
# must read their weights (247 and 374 MB) and write the scores of all words (26 and 16 MB). A tenth of the weights may
# come on top.
TARGETS = {
    ("resnet50", 8): ("120", "1.90"),
    ("bert", 1): ("190", "-"),
    ("vit", 1): ("190", "-"),
    ("gpt2", 1): ("298", "-"),
    ("llama", 1): ("427", "-"),
}
NARROW = (("bert", 8), ("vit", 8), ("gpt2", 1), ("llama", 1))  # models for `activation_dtype`
CHEAP: dict[str, object] = {"math_fidelity": "lofi", "weight_dtype": "bfp8_b", "fp32_dest_acc_en": False}


def compiled(name: str, batch: int, config: CompilerConfig) -> tuple[bytes, float, int]:
    """The binary of a model, the seconds to compile it, and the bytes of L1 on one core that the optimizer counts."""
    network, inputs = model(name, batch)
    counted, optimize = [0], pipeline.optimize
    with patch.object(pipeline, "optimize", lambda *arguments: counted.append(optimize(*arguments))):
        start = time.perf_counter()
        binary = tt_torch.compile_model(network, inputs, config).binary
        return binary, time.perf_counter() - start, counted[-1]


def traffic(binary: bytes) -> dict[str, int]:
    """Bytes that the device ops of the entry program read and write, by place."""
    moved = {"DRAM": 0, "L1": 0}
    for program in public(decode(binary)):
        for op in facts.ops(program):
            for tensor in (*op.read, *op.written) if op.on_device else ():
                if tensor.place in moved:
                    moved[tensor.place] += tensor.bytes
    return moved


def row(name: str, batch: int, level: int, device: str, checker: Checker | None, more: dict[str, object]) -> list[str]:
    config = CompilerConfig(dtype="bf16", arch=DEVICES[device], optimization_level=level, **more)
    binary, seconds, counted = compiled(name, batch, config)
    cost, moved = of_call(decode(binary)), traffic(binary)
    report = checker.check(binary) if checker else None
    library = f"{report.peaks['main']['core'] / 1024:,.0f}" if report else "-"
    refused = str(len(report.failures)) if report else "-"
    times = [f"{value * 1e6:,.0f}" for value in (cost.seconds, cost.dispatch)]
    rate = f"{batch / cost.seconds:,.0f}"
    ours = f"{counted / 1024:,.0f}" if level else "-"
    numbers = [f"{cost.device_ops} ({cost.moves})", *(f"{moved[place] / 1e6:,.1f}" for place in ("DRAM", "L1"))]
    label = str(level) if config.op_model == "rules" else f"{level}, {config.op_model}"
    return [label, *numbers, *times, rate, ours, library, refused, f"{seconds:.1f}"]


def targets() -> None:
    """A table of levels 0 and 2 on n150 beside the targets."""
    rows = []
    for (name, batch), bars in TARGETS.items():
        pair = [
            compiled(name, batch, CompilerConfig(dtype="bf16", arch=DEVICES["n150"], optimization_level=level))[0]
            for level in (0, 2)
        ]
        costs, moved = [of_call(decode(binary)) for binary in pair], [traffic(binary)["DRAM"] for binary in pair]
        change = costs[1].device_ops / costs[0].device_ops - 1
        figures = [f"{value / 1e6:,.0f}" for value in moved], [f"{cost.seconds * 1e3:.2f}" for cost in costs]
        cells = [cell for values, bar in zip(figures, bars, strict=True) for cell in (*values, bar)]
        rows.append([f"{name} b{batch}", *cells, *(str(cost.device_ops) for cost in costs), f"{change:+.0%}"])
    sides = ["level 0", "level 2"]
    heads = ["model, bf16, n150", *(f"MB, {x}" for x in (*sides, "bar")), *(f"ms, {x}" for x in (*sides, "bar"))]
    table("Targets", [*heads, *(f"ops, {x}" for x in sides), "bar +15%"], rows)


def activations() -> None:
    """A table of what `activation_dtype` changes, with weights in bfp8 and one pass of the matrix unit."""
    rows = []
    for (name, batch), level in itertools.product(NARROW, (0, 2)):
        row = [f"{name} b{batch}", str(level)]
        for dtype in (None, "bfp8_b"):
            config = CompilerConfig(dtype="bf16", optimization_level=level, activation_dtype=dtype, **CHEAP)
            binary, *_ = compiled(name, batch, config)
            moved, cost = traffic(binary), of_call(decode(binary))
            row += [*(f"{moved[place] / 1e6:,.1f}" for place in ("DRAM", "L1")), f"{cost.seconds * 1e3:.2f}"]
        rows.append(row)
    figures = ["DRAM MB", "L1 MB", "ms modelled"]
    heads = ["model, n150", "level", *figures, *(f"{head}, activations bfp8_b" for head in figures)]
    table("Activations in bfp8_b; weights bfp8_b, LoFi", heads, rows)


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    targets()
    activations()
    heads = [
        "level",
        "ops (moves)",
        "DRAM MB",
        "L1 MB",
        "us modelled",
        "us of the host",
        "per s",
        "L1 KiB ours",
        "library's",
        "refused",
        "s",
    ]
    ready = environment.is_ready(environment.default_folder())
    for device in DEVICES:
        with ExitStack() as stack:
            checker = stack.enter_context(Checker(device)) if ready else None
            for name, batch in MODELS:
                rows = [row(name, batch, level, device, checker, {}) for level in (0, 1, 2)]
                if checker:  # the first time to compile includes asking the library, and the second one does not
                    rows += [row(name, batch, 2, device, checker, {"op_model": "ttnn"}) for _ in range(2)]
                table(f"{name}, batch {batch}, bf16, {device}", heads, rows)
            cheap = [row("resnet50", 16, level, device, checker, CHEAP) for level in (0, 2)]
            table(f"resnet50, batch 16, LoFi, bfp8 weights of 1x1 convolutions, {device}", heads, cheap)

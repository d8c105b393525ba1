"""Time per call of the emulated device, of eager PyTorch and of inductor with freezing, on equally many threads."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import torch

import tt_torch
from benchmarks.common import CONSOLE, first, interleaved, model, table

CASES = [("resnet50", 1), ("resnet50", 8), ("bert-base", 1), ("bert-base", 8)]
ROUNDS = 7


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as cache:  # inductor fails on partial files that a killed process left
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        _run(threads)


def _run(threads: int) -> None:
    rows = []
    for name, batch in CASES:
        sides, pcc = _sides(name, batch)
        with torch.no_grad():
            times = interleaved(sides, ROUNDS)
        ms = [f"{1e3 * times[side]:.1f}" for side in sides]
        CONSOLE.print(f"{name} x{batch}: " + ", ".join(f"{side} {t} ms" for side, t in zip(sides, ms, strict=True)))
        rows.append((f"{name} x{batch}", *ms, f"{times['tt bf16'] / times['eager bf16']:.2f}", f"{pcc:.5f}"))
        torch._dynamo.reset()
    heads = ["model", *sides, "tt bf16 / eager bf16", "PCC bf16"]
    table(f"ms per call, median of {ROUNDS}, {threads} threads (bar: ratio at most 1.0)", heads, rows)


def _sides(name: str, batch: int) -> tuple[dict[str, Callable[[], Any]], float]:
    module, inputs = model(name, batch)
    half, _ = model(name, batch)
    half = half.to(torch.bfloat16)
    half_inputs = tuple(x.to(torch.bfloat16) if x.is_floating_point() else x for x in inputs)
    ours = {d: tt_torch.compile_model(module, inputs, tt_torch.CompilerConfig(dtype=d)) for d in (None, "bf16")}
    with torch.no_grad():
        golden, got = first(module(*inputs)).flatten().double(), first(ours["bf16"](*inputs)).flatten().double()
    sides = {
        "tt f32": lambda: ours[None](*inputs),
        "tt bf16": lambda: ours["bf16"](*inputs),
        "eager f32": lambda: module(*inputs),
        "eager bf16": lambda: half(*half_inputs),
        "inductor f32": _inductor(module, inputs),
        "inductor bf16": _inductor(half, half_inputs),
    }
    return sides, torch.corrcoef(torch.stack([golden, got]))[0, 1].item()


def _inductor(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Callable[[], Any]:
    """The model compiled by inductor with frozen weights, so that it packs them and fuses epilogues."""
    compiled = torch.compile(module, options={"freezing": True})
    with torch.no_grad():
        compiled(*inputs)
    return lambda: compiled(*inputs)

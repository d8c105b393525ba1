"""Eager PyTorch on device tt compared with the CPU: the import, single small ops, whole models, and memory leaks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import tt_torch
from benchmarks.common import interleaved, model, table

LENGTH = 300
STEPS = 10_000
MODELS = [("resnet50", 1), ("bert-base", 1)]


def element_wise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(LENGTH // 3):
        x = torch.tanh(x * y + y)
    return x


def products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(LENGTH // 3):
        x = torch.relu(x @ y + y)
    return x


def fallback(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    for _ in range(LENGTH):
        x = torch.special.i1(x)
    return x


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    table("import torch, ms", ["", "without the device", "with it", "more", "bar"], [_autoload()])
    heads = ["after", "tensors", "reserved", "resident memory of the process"]
    table(f"{STEPS:,} steps of training on tt, bytes", heads, _leak())
    with torch.no_grad():
        rows = [_chain(chain, size) for chain in (element_wise, products, fallback) for size in (4, 32)]
        heads = ["chain", "tt us", "CPU us", "ratio", "bar"]
        table(f"One eager op of a chain of {LENGTH} float32 ops", heads, rows)
        rows = [_model(name, batch) for name, batch in MODELS]
        table("ms per call, float32", ["model", "eager tt", "eager CPU", "compiled, tensors on tt"], rows)


def _autoload() -> tuple[str, ...]:
    def start(**variables: str) -> None:
        subprocess.run([sys.executable, "-c", "import torch"], env=os.environ | variables, check=True)

    sides = {"off": lambda: start(TORCH_DEVICE_BACKEND_AUTOLOAD="0"), "on": start}
    off, on = (1e3 * seconds for seconds in interleaved(sides, 10, min).values())
    return "best of 10", f"{off:.0f}", f"{on:.0f}", f"{on - off:.0f}", "50"


def _leak() -> list[tuple[str, ...]]:
    """The memory in use after a tenth of the steps, when all caches are full, and after all steps."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.BatchNorm1d(64), torch.nn.GELU()).tt()
    optimizer = torch.optim.AdamW(model.parameters())
    rows = []
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        model(torch.randn(16, 32).tt()).square().mean().backward()
        optimizer.step()
        if step in (STEPS // 10, STEPS):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            sizes = torch.tt.memory_allocated(), torch.tt.memory_reserved(), pages * os.sysconf("SC_PAGE_SIZE")
            rows.append((f"{step:,}", *(f"{size:,}" for size in sizes)))
    return rows


def _chain(chain: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], size: int) -> tuple[str, ...]:
    x, y = torch.randn(size, size), torch.randn(size, size) / size
    on_tt = x.tt(), y.tt()
    times = interleaved({"tt": lambda: chain(*on_tt), "cpu": lambda: chain(x, y)}, 50)
    ours, theirs = (1e6 * times[side] / LENGTH for side in ("tt", "cpu"))
    bar = "" if chain is fallback else "1.50"
    return f"{chain.__name__} {size}x{size}", f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", bar


def _model(name: str, batch: int) -> tuple[str, ...]:
    sides: dict[str, Callable[[], Any]] = {}
    for side, device in (("tt", "tt"), ("cpu", "cpu"), ("compiled", "tt")):
        module, inputs = model(name, batch)
        module, inputs = module.to(device), tuple(x.to(device) for x in inputs)
        called: Any = torch.compile(module, backend=tt_torch.backend) if side == "compiled" else module
        sides[side] = lambda called=called, inputs=inputs: called(*inputs)  # type: ignore[misc]
    times = interleaved(sides, 7)
    return f"{name} x{batch}", *(f"{1e3 * times[side]:.1f}" for side in sides)

"""The overhead of a call and of an op, measured by 1,000 chained adds of 32x32 tensors."""

from __future__ import annotations

from typing import Any

import torch

import tt_torch
from benchmarks.common import interleaved, table

LENGTH = 1000


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(LENGTH):
        x = x + y
    return x


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    x, y = torch.randn(32, 32), torch.randn(32, 32) * 1e-3
    compiled: Any = tt_torch.compile_model(chain, (x, y))
    single: Any = tt_torch.compile_model(lambda a, b: a + b, (x, y))
    with torch.no_grad():
        times = interleaved({"ours": lambda: compiled(x, y), "eager": lambda: chain(x, y)}, 50)
        call = interleaved({"ours": lambda: single(x, y), "eager": lambda: x + y}, 200)
    ours, eager = (1e6 * times[side] / LENGTH for side in ("ours", "eager"))
    rows = [("one add of a chain of 1,000", f"{ours:.2f}", f"{eager:.2f}", f"{ours / eager:.2f}", "1.00")]
    ours, eager = (1e6 * call[side] for side in ("ours", "eager"))
    rows.append(("a whole call with one add", f"{ours:.1f}", f"{eager:.1f}", f"{ours / eager:.1f}", ""))
    table("Overhead, 32x32 float32", ["what", "tt_torch us", "eager us", "ratio", "bar"], rows)

"""Sixteen batches through two stages on two chips: one call after another, and asynchronous calls that overlap."""

from __future__ import annotations

import torch

import tt_torch
from benchmarks.common import interleaved, table
from tt_torch import BackendOptions, CompilerConfig

BATCHES, WIDTH, LAYERS = 16, 1024, 8


def run(threads: int) -> None:
    torch.set_num_threads(1)  # each chip computes on one core, so that two chips can overlap
    halves = [torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))) for _ in range(2)]
    model = torch.nn.Sequential(*halves).eval()
    config = CompilerConfig(device_map={"0": 0, "1": 1})
    batches = [torch.randn(128, WIDTH) for _ in range(BATCHES)]

    def compiled(async_mode: bool):
        options = BackendOptions(compiler_config=config, async_mode=async_mode)
        return torch.compile(model, backend=tt_torch.backend, options=options, dynamic=False)

    one_by_one, overlapping = compiled(False), compiled(True)
    with torch.no_grad():
        sides = {
            "one by one": lambda: [one_by_one(batch) for batch in batches],
            "overlapping": lambda: tt_torch.to_host([overlapping(batch) for batch in batches]),
        }
        for ours, expected in zip(sides["overlapping"](), sides["one by one"](), strict=True):
            torch.testing.assert_close(ours, expected)
        times = interleaved(sides, 10)
    rows = [(side, f"{1e3 * times[side] / BATCHES:.2f}") for side in sides]
    rows.append(("speed-up (2 is ideal)", f"{times['one by one'] / times['overlapping']:.2f}"))
    table(f"{BATCHES} batches of 128x{WIDTH}, {2 * LAYERS} layers in two stages", ["calls", "ms per batch"], rows)

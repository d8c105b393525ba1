"""The cost of a compiled program on the device: ops per call and bytes moved, counted in the binary.

The reference figures are counted in the same way in the binaries that tt-mlir's compiler (19c86fca, optimization level
0, float32) makes of these models.
"""

from __future__ import annotations

import torch

import tt_torch
from benchmarks.common import model, table
from tt_torch.wire import calls
from tt_torch.wire.decode import decode

# model -> the reference compiler's device ops, data-movement ops and MB moved; then the limit for our device ops
REFERENCE = {"resnet50": (392, 56, 845, 100), "bert-base 1x128": (1168, 218, 2536, 220)}


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    rows = []
    for name, (ops, moves, megabytes, bar) in REFERENCE.items():
        for dtype in (None, "bf16"):
            compiled = tt_torch.compile_model(*model(name, 1), tt_torch.CompilerConfig(dtype=dtype))
            cost = calls.cost(decode(compiled.binary))
            ours = f"{cost.bytes_moved / 1e6:.0f}"
            size = f"{len(compiled.binary) / 1e6:.2f}"
            rows.append(
                (name, dtype or "f32", cost.device_ops, bar, ops, cost.data_movement, moves, ours, megabytes, size)
            )
            torch._dynamo.reset()
    heads = ["model", "dtype", "device ops", "bar", "tt-mlir", "moves", "tt-mlir", "MB moved", "tt-mlir", "binary MB"]
    table("Device ops per call and bytes moved", heads, rows)

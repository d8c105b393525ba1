"""ATen ops that are taken apart before import, because torch-mlir does not lower them or lowers them wrongly.

What torch-mlir decomposes itself, in C++, is left to it: tracing decompositions in Python is what costs time.
"""

from __future__ import annotations

import torch
from torch._decomp import get_decompositions

aten = torch.ops.aten

DECOMPOSITIONS = get_decompositions(
    [
        # Functional forms with several results, which torch-mlir does not know.
        aten._native_batch_norm_legit.default,
        aten._native_batch_norm_legit_functional.default,
        # Unbounded memory for `end` beyond the dimension, which slicing to the end gives.
        aten.slice_scatter.default,
        # Compute on views whose strides a functional graph does not keep.
        aten._unsafe_view.default,
    ]
)

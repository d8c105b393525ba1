"""ATen ops that are taken apart while tracing, because torch-mlir does not lower them or lowers them wrongly.

One file per family. What torch-mlir decomposes itself, in C++, is left to it: tracing decompositions in Python is
what costs time. Rewrites that must see the whole graph, or become one op of the device, are in `passes/`.
"""

from tt_torch.dynamo.decompositions import (  # noqa: F401  (importing fills the table)
    attention,
    bessel,
    convolution,
    elementwise,
    foreach,
    gamma,
    grid_sampling,
    indexing,
    integers,
    interpolation,
    linalg,
    losses,
    matmul,
    max_pooling,
    movement,
    normalization,
    ordering,
    polynomials,
    pooling,
    random,
    segments,
    special,
    statistics,
)
from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS

__all__ = ["DECOMPOSITIONS"]

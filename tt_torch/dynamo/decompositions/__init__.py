"""ATen ops that are decomposed while tracing, because torch-mlir does not lower them or lowers them wrongly.

There is one file per family. Ops that torch-mlir decomposes in C++ are left to it, because tracing decompositions in
Python takes time. Rewrites that must see the whole graph, or that make one op of the device, are in `passes/`.
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
    qr,
    random,
    segments,
    special,
    statistics,
)
from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS

__all__ = ["DECOMPOSITIONS"]

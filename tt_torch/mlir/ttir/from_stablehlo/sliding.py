"""The form in which TTNN takes images: NHWC, flattened to (1, 1, N*H*W, C)."""

from __future__ import annotations

from collections.abc import Sequence

from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.types import Value

NCHW = [0, 2, 3, 1]  # the places of N, H, W and C


def flatten(b: Builder, x: Value, order: Sequence[int]) -> Value:
    """`x` to (1, 1, N*H*W, C); `order` names its N, H, W and C dimensions."""
    n, h, w, c = (shape(x)[d] for d in order)
    return b("ttir.reshape", b("ttir.permute", x, permutation=list(order)), shape=[1, 1, n * h * w, c])


def unflatten(b: Builder, x: Value, nhwc: Sequence[int], order: Sequence[int]) -> Value:
    """The inverse of `flatten`: from (1, 1, N*H*W, C) to a tensor in which `order` has the places of N, H, W and C."""
    inverse = [list(order).index(d) for d in range(4)]
    return b("ttir.permute", b("ttir.reshape", x, shape=list(nhwc)), permutation=inverse)

"""Matrix products with a sum: of integers, and of narrow floats, which are rounded once, at the end."""

from __future__ import annotations

from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import NARROW, decomposes

aten = torch.ops.aten


def _sum(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """If beta is 0, `x` does not count, even if it is NaN. For integers, the factors are cut to integers."""
    if not product.is_floating_point() and not product.is_complex():
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    return (x if beta == 1 else x * beta) + product if beta else product


def _is_float(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


@decomposes(aten.addmm.default)
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor | NotImplementedType:
    """If `beta` is 0, NaN and infinities of `x` do not count."""
    if _is_float(x) and beta:
        return NotImplemented
    if x.dtype in NARROW and alpha != 1:  # rounded once, at the end
        a, b = a.to(torch.float32), b.to(torch.float32)
    return _sum(x, a @ b, beta, alpha).to(x.dtype)


@decomposes(aten.baddbmm.default)
def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor | NotImplementedType:
    if x.dtype in NARROW:
        wide = (v.to(torch.float32) for v in (x, a, b))
        return aten.baddbmm(*wide, beta=beta, alpha=alpha).to(x.dtype)
    return NotImplemented if _is_float(x) and beta else _sum(x, torch.bmm(a, b), beta, alpha)


@decomposes(aten.addbmm.default)
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """One longer product also computes the sum over the batch."""
    dtype = x.dtype
    if dtype in NARROW:
        x, a, b = (v.to(torch.float32) for v in (x, a, b))
    rows = a.transpose(0, 1).flatten(1)
    return _sum(x, rows @ b.flatten(0, 1), beta, alpha).to(dtype)


@decomposes(aten._trilinear.default)
def trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor | NotImplementedType:
    """The sum over `sumdim` of a product of three tensors, each of which lacks the dimensions `expand...`. As in eager,
    a and b are multiplied first, and summed over what c lacks. Another order may multiply an infinity by zero."""
    dims = range(a.dim() + len(expand1))
    own = [[d for d in dims if d not in lacking] for lacking in (expand1, expand2, expand3)]
    if not set(dims) <= {d for each in own for d in each}:
        return NotImplemented
    first = [d for d in dims if d in {*own[0], *own[1]} and not (d in sumdim and d in expand3)]
    letters = ["".join("abcdefghijkl"[d] for d in each) for each in (*own, first, [d for d in dims if d not in sumdim])]
    x, y, z = (v.to(torch.float32) if v.dtype in NARROW else v for v in (a, b, c))
    pair = torch.einsum(f"{letters[0]},{letters[1]}->{letters[3]}", x, y)
    return torch.einsum(f"{letters[3]},{letters[2]}->{letters[4]}", pair, z).to(a.dtype)

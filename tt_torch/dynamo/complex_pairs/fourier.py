"""Fourier transforms as products with matrices. A long transform is split by two factors of its length.

X[k] = sum_j x[j] exp(-2 pi i j k / n); the inverse has the sign + in the exponent. With n = p q, j = q a + b and
k = c + p d, this becomes three steps (Cooley and Tukey, 1965): a transform of length p over a, a rotation by
exp(-2 pi i b c / n), and a transform of length q over b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NotImplementedType

import sympy
import torch
from torch import Tensor

from tt_torch.dynamo.complex_pairs.arithmetic import _product
from tt_torch.dynamo.complex_pairs.pairs import RULES, Pair

aten = torch.ops.aten

DIRECT = 64  # lengths up to this are one product with a matrix
LONGEST_PRIME = 4096  # its matrix has 64 MB; transforms with a longer prime run on the host


@RULES(aten._fft_c2c.default)
def fft_c2c(x: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair | NotImplementedType:
    if any(prime > LONGEST_PRIME for d in dim for prime in sympy.primefactors(x.re.shape[d])):
        return NotImplemented
    for d in dim:
        x = _transform(x, d, -1 if forward else 1)
    return _normalized(x, math.prod(x.re.shape[d] for d in dim), normalization)


@RULES(aten._fft_r2c.default)
def fft_r2c(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Pair | NotImplementedType:
    full = fft_c2c(Pair(x, torch.zeros_like(x)), dim, normalization, True)
    if full is NotImplemented or not onesided:
        return full
    return full.each(lambda part: part.narrow(dim[-1], 0, x.shape[dim[-1]] // 2 + 1))


@RULES(aten._fft_c2r.default)
def fft_c2r(x: Pair, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor | NotImplementedType:
    """The missing half of the last dimension is the conjugate of the given half, in reversed order."""
    if dim[:-1]:
        first = fft_c2c(x, dim[:-1], 0, False)
        if first is NotImplemented:
            return first
        x = first
    last, given = dim[-1], last_dim_size // 2 + 1
    x = x.each(lambda part: part.narrow(last, 0, given))
    rest = x.each(lambda part: part.narrow(last, 1, last_dim_size - given).flip(last))
    whole = Pair(torch.cat([x.re, rest.re], last), torch.cat([x.im, -rest.im], last))
    result = fft_c2c(whole, [last], 0, False)
    if result is NotImplemented:
        return result
    count = math.prod(result.re.shape[d] for d in dim)
    return _normalized(result, count, normalization).re


def _normalized(x: Pair, count: int, normalization: int) -> Pair:
    """Normalizes by ATen's numbers: 0 does nothing, 1 divides by the square root of the count, 2 by the count."""
    if not normalization:
        return x
    scale = 1 / math.sqrt(count) if normalization == 1 else 1 / count
    return x.each(lambda part: part * scale)


def _transform(x: Pair, dim: int, sign: int) -> Pair:
    moved = x.each(lambda part: part.movedim(dim, -1))
    return _last(moved, sign).each(lambda part: part.movedim(-1, dim))


def _last(x: Pair, sign: int) -> Pair:
    """The transform along the last dimension."""
    n = x.re.shape[-1]
    p = _divisor(n)
    if n <= DIRECT or p == 1:
        return _product(x, _roots(n, n, n, sign, x.re.dtype), torch.matmul)
    q = n // p
    columns = x.each(lambda part: part.unflatten(-1, (p, q)).transpose(-1, -2))  # [..., b, a]
    inner = _product(_last(columns, sign), _roots(q, p, n, sign, x.re.dtype))  # [..., b, c]
    outer = _last(inner.each(lambda part: part.transpose(-1, -2)), sign)  # [..., c, d]
    return outer.each(lambda part: part.transpose(-1, -2).flatten(-2))  # k = c + p d


def _roots(rows: int, columns: int, n: int, sign: int, dtype: torch.dtype) -> Pair:
    """exp(sign 2 pi i j k / n) for j below `rows` and k below `columns`, exact to `dtype`.

    Zeros are exact, too. Otherwise the cosine of the rounded half pi would be 6e-17, and a large element would make
    this visible.
    """
    steps = (torch.arange(rows).unsqueeze(1) * torch.arange(columns)) % n
    angles = steps.double() * (sign * 2 * math.pi / n)
    cosine = torch.where((4 * steps == n) | (4 * steps == 3 * n), 0.0, torch.cos(angles))
    sine = torch.where(2 * steps == n, 0.0, torch.sin(angles))
    return Pair(cosine.to(dtype), sine.to(dtype))


def _divisor(n: int) -> int:
    """The largest divisor of n that is at most the square root of n."""
    return next(p for p in range(math.isqrt(n), 0, -1) if n % p == 0)

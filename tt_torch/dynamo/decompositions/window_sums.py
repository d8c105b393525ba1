"""Sums of windows along one dimension, and the reverse: numbers added to all elements of their window.

They use slices and gathered elements, and never products with a matrix of 0 and 1. In such a product, an infinity of
one window would reach the other windows, because 0 * inf is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

aten = torch.ops.aten


def overhang(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How far the last window of ceil mode reaches beyond the padded input. The window must not start in the padding
    after the input."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    steps = math.ceil(span / stride)
    if steps * stride >= size + padding:
        steps -= 1
    return max(0, steps * stride - span)


class Windows(NamedTuple):
    """Equal windows of one dimension. Element `j` of window `i` is at `i * stride - padding + j * dilation`."""

    number: int
    kernel: int
    stride: int
    padding: int = 0
    dilation: int = 1

    @classmethod
    def over(
        cls, size: int, kernel: int, stride: int, padding: int, ceil_mode: bool = False, dilation: int = 1
    ) -> Windows:
        """The windows of a pooling over `size` elements."""
        over = overhang(size, kernel, stride, padding, dilation) if ceil_mode else 0
        count = (size + 2 * padding + over - dilation * (kernel - 1) - 1) // stride + 1
        return cls(count, kernel, stride, padding, dilation)

    @property
    def begin(self) -> Tensor:
        """The first position of each window. Positions in the padding before the first element are negative."""
        return torch.arange(self.number) * self.stride - self.padding

    @property
    def reach(self) -> int:
        """The number of elements from the first one of the first window to the last one of the last window."""
        return (self.number - 1) * self.stride + (self.kernel - 1) * self.dilation + 1


def _padded(x: Tensor, dim: int, before: int, after: int) -> Tensor:
    """`x` with zeros before and after; a negative number removes elements."""
    return aten.constant_pad_nd(x, [0, 0] * (x.dim() - 1 - dim) + [before, after]) if before or after else x


def sums(x: Tensor, dim: int, windows: Windows) -> Tensor:
    """The sum of each window: `x` with `windows.number` elements in dimension `dim`. The padding counts as 0."""
    count, kernel, stride, padding, dilation = windows
    x = _padded(x, dim, padding, windows.reach - padding - x.shape[dim])
    if kernel == stride and dilation == 1:
        return x.unflatten(dim, (count, kernel)).sum(dim + 1)
    first = range(0, kernel * dilation, dilation)
    return reduce(torch.add, (aten.slice(x, dim, i, i + (count - 1) * stride + 1, stride) for i in first))


def scattered(rows: Sequence[Tensor], dim: int, size: int, windows: Windows) -> Tensor:
    """The reverse of `sums`: `size` zeros in dimension `dim`, and element `i` of `rows[j]` added at the position of
    element `j` of window `i`. Each of the rows has `windows.number` elements.

    Positions with the same remainder by the stride form a phase. In a phase, each row is a shifted slice. With kernel 3
    and stride 2, the even positions get row 0, and row 2 shifted by one; the odd positions get row 1.
    """
    count, kernel, stride, padding, dilation = windows
    length = -(-(padding + size) // stride)

    def phase(remainder: int) -> Tensor:
        shifts = [(j, j * dilation // stride) for j in range(kernel) if j * dilation % stride == remainder]
        parts = [_padded(rows[j], dim, shift, length - shift - count) for j, shift in shifts if shift < length]
        return reduce(torch.add, parts) if parts else torch.zeros_like(_padded(rows[0], dim, 0, length - count))

    if kernel == stride and dilation == 1 and all(row is rows[0] for row in rows):
        same = phase(0).unsqueeze(dim + 1)
        phases = same.expand([stride if d == dim + 1 else -1 for d in range(same.dim())])
    else:
        phases = torch.stack([phase(remainder) for remainder in range(stride)], dim + 1)
    return _padded(phases.flatten(dim, dim + 1), dim, -padding, size + padding - length * stride)


def sums_of_chosen(x: Tensor, dim: int, chosen: Tensor, most: int) -> Tensor:
    """Sums of any elements: result `i` adds the elements of `x` for which row `i` of the matrix `chosen` is true. A row
    has at most `most` such elements."""
    order = torch.topk(chosen.to(torch.float32), most, 1)[1]

    def term(i: int) -> Tensor:
        held = chosen.gather(1, order[:, i : i + 1]).reshape([-1] + [1] * (x.dim() - dim - 1))
        return torch.where(held, x.index_select(dim, order[:, i]), 0.0)

    return reduce(torch.add, map(term, range(most)))

"""The parts that rows of the op table are made of: `Row`, and makers of inputs.

    Row("add", lambda x, y: x + y, [(2, 3, 4), (3, 4)])

An input is a shape or a maker. The elements of a shape are drawn for each dtype of the row. A maker is a function from
that dtype to a tensor (`index`, `positive`, `of`, ...). It is used where a function is not defined on all values, and
for operands of another dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Maker = Callable[[torch.dtype], torch.Tensor]

f32, bf16, i32, i64, b1 = torch.float32, torch.bfloat16, torch.int32, torch.int64, torch.bool
FLOATS = (f32, bf16)
INTS = (i64,)  # on the device, int32 is computed in the same way; some rows have both
NUMBERS = (*FLOATS, *INTS)
ALL = (*NUMBERS, b1)
EVERY = (*FLOATS, i32, i64, b1)


X = (2, 3, 5)  # the shape that most element-wise rows use
IMAGE = (3, 4, 9, 8)


@dataclass(frozen=True)
class Row:
    """`fn` over `inputs`, once per dtype. `scale` widens the float32 tolerance where errors add up."""

    name: str
    fn: Callable[..., Any]
    inputs: Sequence[tuple[int, ...] | Maker]
    dtypes: tuple[torch.dtype, ...] = FLOATS
    scale: float = 1.0


def draw(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Normal floats, small signed integers, or booleans."""
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 2, shape).bool() if dtype is b1 else torch.randint(-9, 10, shape, dtype=dtype)


# --- makers -------------------------------------------------------------------------------------


def of(dtype: torch.dtype, *shape: int) -> Maker:
    """A tensor of `dtype`, whatever the row's dtype is."""
    return lambda _: draw(shape, dtype)


def uniform(low: float, high: float, *shape: int) -> Maker:
    return lambda dtype: (torch.rand(shape) * (high - low) + low).to(dtype)


def positive(*shape: int) -> Maker:
    return uniform(0.1, 4, *shape)


def nonzero(*shape: int) -> Maker:
    """Values of both signs, at a distance of at least 1 from zero."""
    return lambda dtype: ((torch.rand(shape) * 4 + 1) * torch.randn(shape).sign()).to(dtype)


def index(low: int, high: int, *shape: int, dtype: torch.dtype = i64) -> Maker:
    return lambda _: torch.randint(low, high, shape, dtype=dtype)


def tensor(values: Any, dtype: torch.dtype | None = None) -> Maker:
    return lambda own: torch.tensor(values, dtype=dtype or own)


def distinct(*shape: int) -> Maker:
    """Integers of which no two are equal, so that orderings have one answer. bf16 holds up to 512 of them exactly."""
    count = torch.Size(shape).numel()
    return lambda dtype: (torch.randperm(count) - count // 2).reshape(shape).to(dtype)


def moved(maker: Maker, change: Callable[[torch.Tensor], torch.Tensor]) -> Maker:
    """The result of `change`, such as a view, on the tensor of another maker."""
    return lambda dtype: change(maker(dtype))

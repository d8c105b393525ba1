"""Polynomial approximations of functions that the device does not have. They are computed here, not copied from tables.

A fit interpolates PyTorch's own float64 function at Chebyshev points. Its error is within a small factor of the error
of the best polynomial of its degree (Trefethen, Approximation Theory and Approximation Practice, 2013, chapter 16).
The degrees are the smallest that reach float32 on their interval; tests/op_table_special.py compares with eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from numpy.polynomial import chebyshev
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.tensors import without_modes
from tt_torch.torch_private.tracing import pw_cast_for_int_to_real, pw_cast_for_opmath


def horner(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The polynomial with these coefficients, lowest degree first."""
    value = torch.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value


@dataclass(frozen=True)
class Fit:
    """A polynomial that approximates `function` between `low` and `high`. The function maps float64 to float64."""

    function: Callable[[Tensor], Tensor]
    low: float
    high: float
    degree: int

    def __call__(self, x: Tensor) -> Tensor:
        """The approximation at `x`, which must be inside of the interval."""
        half, middle = (self.high - self.low) / 2, (self.high + self.low) / 2
        return horner((x - middle) / half, self.coefficients)

    @cached_property
    def coefficients(self) -> list[float]:
        def nodes(t: Any) -> Any:  # arrays
            x = torch.from_numpy((self.low + self.high) / 2 + t * (self.high - self.low) / 2)
            return self.function(x).numpy()

        with without_modes():  # while tracing, tensors have no values
            fitted: list[float] = chebyshev.cheb2poly(chebyshev.chebinterpolate(nodes, self.degree)).tolist()
        return fitted


def series(x: Tensor, count: int) -> Tensor:
    """x, x + 1, ... x + count - 1, along a new first dimension."""
    return x + torch.arange(count).reshape([count] + [1] * x.dim())


# Functions whose formulas lose most of their digits in bfloat16, where they are near a zero or a pole, or because they
# compute positions. Their steps stay in float32 with `dtype="bf16"`. Functions that are registered by `special` join
# them. The set has names, because the copy of a graph has copies of the ops in `meta`.
IN_FLOAT32 = {
    "aten.sinc.default", "aten.mvlgamma.default", "aten.special_log_ndtr.default",
    "aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default",
}  # fmt: skip


def special(*ops: OpOverload) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Registers a real function. As in eager, integers become float32, and bfloat16 is computed in float32."""

    def register(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        computed: Callable[..., Tensor] = pw_cast_for_int_to_real(pw_cast_for_opmath(function))
        decomposes(*ops)(computed)
        IN_FLOAT32.update(map(str, ops))
        return function

    return register

"""Eager PyTorch does not define these results: its own kernels disagree. docs/reliability.md lists them for users."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

# Ops that choose between 0.0 and -0.0, which are equal. The vector loop of a kernel and the loop over the remaining
# elements choose differently, and so do one element and several. In the same way, the gradient of `gelu` below -13 is a
# denormal number or zero.
EITHER_ZERO = re.compile(r"max|min|clamp|sort|topk|kthvalue|median|cumsum|gelu")


@dataclass(frozen=True)
class Quirk:
    """Statements with this text are not made if `given` is true for the values of one of their operands."""

    text: re.Pattern[str]
    given: Callable[[torch.Tensor], bool]


def _has_denormals(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point and bool(((x != 0) & (x.abs() < torch.finfo(torch.float32).tiny)).any())


def _is_not_finite(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point and not x.isfinite().all()


def _is_near_overflow(x: torch.Tensor) -> bool:
    largest = torch.finfo(torch.float32).max
    return x.dtype.is_floating_point and bool((x.isfinite() & (x.double().abs() > largest / 64)).any())


def _has_many_rows(x: torch.Tensor) -> bool:
    return x.dim() > 1 and x.shape[-2] > 25


def _has_nan(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point and bool(x.isnan().any())


def _is_nearly_constant(x: torch.Tensor) -> bool:
    """Whether the numbers differ by few units in the last place, or not at all."""
    finite = x[x.isfinite()].double()
    return bool(finite.numel()) and bool((finite.max() - finite.min()) <= 1e-4 * finite.abs().max())


def _always(x: torch.Tensor) -> bool:
    return True


_REMAINDERS = re.compile(r"%|//|fmod|remainder|floor_divide|rounding_mode")
QUIRKS = (
    # The vector loop gives NaN, and the loop over the remaining elements gives the remainder.
    Quirk(_REMAINDERS, _has_denormals),
    Quirk(re.compile(rf"({_REMAINDERS.pattern}).*1e-45"), _always),
    # NaN in float32, infinity in float16.
    Quirk(re.compile("gelu"), _is_not_finite),
    # The order of the additions decides whether a part of the sum leaves float32, and then gives infinity or NaN.
    Quirk(
        re.compile(r"@|mm\(|mv\(|dot|linear|conv|einsum|sum|mean|var|std|trace|norm|mse_loss|pool1d"), _is_near_overflow
    ),
    # The mean is rounded, so the variance of equal numbers is not always zero.
    Quirk(re.compile("std|var"), _is_nearly_constant),
    # With more than 25 rows, distances come from a matrix product, which loses the small ones.
    Quirk(re.compile("cdist"), _has_many_rows),
    # The kernel for a CPU takes a row of NaN for an empty one.
    Quirk(re.compile("scaled_dot_product_attention"), _is_not_finite),
    # The gradient at NaN is 0 in the vector loop, and that of the result in the loop over the remaining elements.
    Quirk(re.compile(r"hardtanh|\belu\("), _has_nan),
    # IEEE 754 leaves the sign of a NaN open that an operation gives.
    Quirk(re.compile("signbit|copysign"), _has_nan),
    # `sub` adds with the negative of `alpha`, and int64 has no 2**63.
    Quirk(re.compile(r"sub\(.*alpha=-9223372036854775808"), _always),
    # The matrix product multiplies an operand, or the sum of products, by `alpha`: 0 * inf is NaN.
    Quirk(re.compile(r"addmm\(.*alpha=(-?inf|nan)"), _always),
)


def undefined(text: str, operands: Sequence[torch.Tensor]) -> bool:
    """Whether eager's result of a statement depends on which of its kernels runs."""
    return any(quirk.text.search(text) and any(map(quirk.given, operands)) for quirk in QUIRKS)

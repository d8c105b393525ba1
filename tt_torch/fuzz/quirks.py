"""Results that eager PyTorch does not define: its own kernels disagree. docs/reliability.md lists them for users."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tt_torch.dynamo.decompositions.registry import NARROW
from tt_torch.torch_private.tensors import storage_of

WRITES = re.compile(r"\w_\(|\bout=|inplace=True")  # the texts of statements that write to an operand


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


def _is_beyond_int32(x: torch.Tensor) -> bool:
    return x.dtype == torch.int64 and not torch.equal(x, x.int())


def _has_whole_numbers(x: torch.Tensor) -> bool:
    return bool(((x != 0) & (x.double() == x.double().round())).any())


def _is_empty(x: torch.Tensor) -> bool:
    return not x.numel()


def _squares_overflow(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point and bool((x.isfinite() & (x.double().abs() > 1e18)).any())


def _is_permuted(x: torch.Tensor) -> bool:
    return not x.is_contiguous()


def _is_narrow(x: torch.Tensor) -> bool:
    return x.dtype in NARROW


def _is_far_and_narrow(x: torch.Tensor) -> bool:
    return _is_narrow(x) and bool((~(x.abs() < 256)).any())


def _is_below_minus_5(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point and bool((x < -5).any())


def _is_below_minus_88(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point and bool((x < -88).any())


def _is_large_in_training(x: torch.Tensor) -> bool:
    return x.requires_grad and bool((x.abs() > 1e6).any())


def _is_expanded(x: torch.Tensor) -> bool:
    return 0 in x.stride()


def _is_boolean(x: torch.Tensor) -> bool:
    return x.dtype == torch.bool


def _repeats(x: torch.Tensor) -> bool:
    return x.dtype in (torch.int64, torch.int32) and x.unique().numel() < x.numel()


def _repeats_in_training(x: torch.Tensor) -> bool:
    kinds = x.unique().numel() - max(int(x.isnan().sum()) - 1, 0)  # to `unique`, each NaN is another number
    return x.requires_grad and kinds < x.numel()


def _always(x: torch.Tensor) -> bool:
    return True


_REMAINDERS = re.compile(r"%|//|fmod|remainder|floor_divide|rounding_mode")
QUIRKS = (
    # The quotient is infinite. The vector loop gives NaN, and the loop over the remaining elements gives the remainder.
    Quirk(_REMAINDERS, _has_denormals),
    Quirk(_REMAINDERS, _is_near_overflow),
    Quirk(re.compile(rf"({_REMAINDERS.pattern}).*1e-45|1e-45.*rounding_mode"), _always),
    # Not a quirk, but a known difference: the device adds squares in float32, eager PyTorch in float64.
    Quirk(re.compile("std|var|(batch|instance|group|layer)_norm"), _squares_overflow),
    # Known, too: interpolation and Fourier transforms are products with a matrix, and 0 * inf is NaN. The gradients of
    # large numbers may be infinite.
    Quirk(re.compile("interpolate.*(linear|cubic)|upsample_bi|fft"), _is_not_finite),
    Quirk(re.compile("interpolate.*(linear|cubic)|upsample_bi|fft"), _is_large_in_training),
    # Its elements share a place in memory, and it is copied as they lie there.
    Quirk(re.compile("as_strided_scatter"), _is_expanded),
    # Known, too: in bfloat16, the kernel for images keeps 16 bits of the positions.
    Quirk(re.compile("grid_sampl"), _is_far_and_narrow),
    # The kernel computes x * (weight / deviation) - mean * (weight / deviation), where two terms are infinite. The mean
    # of a row with an infinity is NaN for some lengths of the row.
    Quirk(re.compile("(group|batch|instance|layer)_norm"), _is_not_finite),
    # It is 0 for a first operand that is denormal, but the limit is 1.
    Quirk(re.compile("igamma|gammainc"), _has_denormals),
    # When a norm subtracts the mean from a denormal number, only a rounding error remains.
    Quirk(re.compile("_norm"), _has_denormals),
    # The gradient of the absolute value of a complex number divides by it, and the inverse is infinite.
    Quirk(re.compile(r"complex\(.*abs\("), _has_denormals),
    # The result is NaN in float32 and infinity in float16. The vector loop doubles a number before it halves it.
    Quirk(re.compile("gelu"), _is_not_finite),
    Quirk(re.compile("gelu"), _is_near_overflow),
    # The kernel multiplies by six before it divides by six.
    Quirk(re.compile("hardswish"), _is_near_overflow),
    # The sine of a multiple of pi is the rounding error of the product with pi.
    Quirk(re.compile("sinc"), _has_whole_numbers),
    # The C library corrects products of complex infinities, and the vector loop does not.
    Quirk(re.compile(r"complex.* \* "), _is_not_finite),
    # The order of the additions decides whether a part of the sum leaves float32, and then gives infinity or NaN.
    Quirk(
        re.compile(
            r"@|mm\(|mv\(|dot|linear|conv|einsum|sum|prod|mean|var|std|trace|norm|mse_loss|avg_pool|cross|addc(mul|div)"
        ),
        _is_near_overflow,
    ),
    # BLAS's norm of [1, inf, 2] is infinite, that of [1, inf, inf] is NaN, and that of [nan, 1, 1, 1] is a number.
    Quirk(re.compile(r"\bqr\(|geqrf"), _is_not_finite),
    # With an operand of another dtype, the distances from nothing have the dtype of the first operand.
    Quirk(re.compile("cdist"), _is_empty),
    # The vector loop rounds the exponent to float32, which makes it even. A gradient has the exponent minus one.
    Quirk(re.compile(r"(\*\*|pow).*(16777217|214748364[78])"), _always),
    # The kernel fills its blocks with zeros, and 0 * inf is NaN.
    Quirk(re.compile("conv"), _is_not_finite),
    # In the backward pass, oneDNN's kernel for bfloat16 reads memory that is not the tensor's.
    Quirk(re.compile("conv_transpose"), _is_narrow),
    # With more than 25 rows, distances come from a matrix product, which loses the small ones.
    Quirk(re.compile("cdist"), _has_many_rows),
    # The kernel for a CPU treats a row of NaN like an empty one.
    Quirk(re.compile("scaled_dot_product_attention"), _is_not_finite),
    # The gradient at NaN is 0 or NaN in the vector loop, and another one in the loop over the remaining elements.
    Quirk(re.compile(r"hardtanh|\b[cs]?elu\(|hardswish|relu6|hardshrink|softshrink|logit"), _has_nan),
    # The same for a bound that is NaN.
    Quirk(re.compile(r"hardtanh\(.*\bnan\b"), _always),
    # The result of the kernel for gradients has the order of its input in memory. The other kernel's result does not.
    Quirk(re.compile("max_pool1d"), _is_permuted),
    # The kernel sorts by `<`, so a NaN can stay at any place: [2, nan, 1] has the mode 1, and [nan, 2, 1] has NaN.
    Quirk(re.compile(r"\.mode\("), _has_nan),
    # Which of the equal elements is the median, and gets the gradient, follows from how the kernel moves elements.
    Quirk(re.compile(r"median|kthvalue|\.mode\("), _repeats_in_training),
    # Not a quirk, but a known difference: float64 is computed in float32, which has no 1e300.
    Quirk(re.compile(r"celu\(.*e\+300"), _always),
    # The kernel counts in the dtype of the operand, and bfloat16 has no 257.
    Quirk(re.compile("histc"), _is_narrow),
    # The kernel moves elements in a copy that has the memory of the whole. If a view repeats elements, this copy has no
    # place for each of them.
    Quirk(re.compile("median"), _is_expanded),
    # The kernel writes in an order that depends on the strides, so another source may be the last one.
    Quirk(re.compile(r"index_put_?\(((?!accumulate=True).)*$"), _repeats),
    # The kernel reads elements that it has written before.
    Quirk(re.compile(r"(\b\w+)\.masked_scatter_\(\w+, \1\)"), _always),
    # In the same way, if elements of the two do not lie beside each other in memory. PyTorch finds this only for some
    # strides, and raises an error then.
    Quirk(re.compile(r"(\b\w+)\.mT\.add_\(\1\)|(\b\w+)\.copy_\(\2\.mT\)"), _always),
    # A write to the bits of booleans makes other numbers than 0 and 1, which PyTorch reads as 1 or as they are.
    Quirk(re.compile(r"\.view\(torch\."), _is_boolean),
    Quirk(re.compile(r"\.view\(torch\.bool\)"), _always),
    # IEEE 754 does not define the sign of a NaN that an operation gives.
    Quirk(re.compile("signbit|copysign"), _has_nan),
    # The kernel takes the exponent as a C int, which is undefined for other numbers.
    Quirk(re.compile("ldexp"), _is_beyond_int32),
    # `sub` adds with the negative of `alpha`, and int64 has no 2**63.
    Quirk(re.compile(r"sub\(.*alpha=-9223372036854775808"), _always),
    # The matrix product multiplies an operand, or the sum of products, by `alpha`: 0 * inf is NaN.
    Quirk(re.compile(r"addmm\(.*alpha=(-?inf|nan|1e-45)"), _always),
    # With 0, some kernels leave the product out, and others multiply by it.
    Quirk(re.compile(r"(addmm|addmv|bmm)\(.*alpha=-?0(\.0)?\b(?!\.)"), _is_not_finite),
    # A product that is added in one step does not leave float32 before the addition. A product with `beta` may be left
    # out, as with 0, or be one with a denormal number.
    Quirk(re.compile("(alpha|beta|value)=1e-45"), _always),
    Quirk(re.compile("alpha="), _is_near_overflow),
    # The kernel adds 1 to a tanh that rounds to -1. What is left is zero, where other formulas have a tiny number.
    Quirk(re.compile("gelu.*tanh"), _is_below_minus_5),
    # The kernel divides 1 by an exponential that is infinite. The quotient is zero, and the value is a denormal number.
    Quirk(re.compile("sigmoid|silu|glu"), _is_below_minus_88),
    # The cross product of a vector with itself is the rounding of a product, or zero.
    Quirk(re.compile(r"cross\((\w+), \1"), _always),
)


def undefined(text: str, operands: Sequence[torch.Tensor]) -> bool:
    """Whether eager's result of a statement depends on which of its kernels runs."""
    # The kernel reads elements that it has written before. Those of `masked_scatter_` have no fixed places.
    if WRITES.search(text) and _share_memory(operands, "masked_scatter_" not in text):
        return True
    return any(quirk.text.search(text) and any(map(quirk.given, operands)) for quirk in QUIRKS)


def _share_memory(operands: Sequence[torch.Tensor], but_equal: bool) -> bool:
    """Whether two of them are in one memory; with `but_equal`, only if they are not the same elements in one order."""
    places = [(storage_of(x), x.shape, x.stride(), x.storage_offset(), x.dtype) for x in operands if x.numel()]
    return len({*places} if but_equal else places) > len({place[0] for place in places})

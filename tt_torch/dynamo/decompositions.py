"""ATen ops that are taken apart while tracing, because torch-mlir does not lower them or lowers them wrongly.

What torch-mlir decomposes itself, in C++, is left to it: tracing decompositions in Python is what costs time.
Rewrites that must see the whole graph, or become one op of the device, are in `passes/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._decomp import get_decompositions
from torch._decomp.decompositions import pw_cast_for_int_to_real, pw_cast_for_opmath

aten = torch.ops.aten

# PyTorch's own.
TAKEN = [
    # Functional forms with several results, which torch-mlir does not know.
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
    aten.native_batch_norm.default,
    aten._batch_norm_with_update_functional.default,
    # Computes on views whose strides a functional graph does not keep.
    aten._unsafe_view.default,
    # torch-mlir gets the broadcast of their operands wrong.
    aten.addcmul.default,
    aten.addcdiv.default,
    # Unknown to torch-mlir, or not lowered to StableHLO.
    aten._adaptive_avg_pool2d.default,
    aten._fused_rms_norm.default,
    aten._prelu_kernel.default,
    aten._unsafe_masked_index.default,
    aten._unsafe_masked_index_put_accumulate.default,
    aten.addmv.default,
    aten.adaptive_max_pool2d.default,
    aten.count_nonzero.default,
    aten.diag_embed.default,
    aten.im2col.default,
    aten.log_sigmoid_forward.default,
    aten.logsumexp.default,
    aten.nan_to_num.default,
    aten.nll_loss_forward.default,
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.smooth_l1_loss.default,
    aten.unbind.int,
    aten.upsample_bilinear2d.default,
    aten.upsample_bilinear2d.vec,
    aten.upsample_nearest2d.default,
    aten.upsample_nearest2d.vec,
    aten.xlogy.Tensor,
    aten.xlogy.Scalar_Self,
    aten.xlogy.Scalar_Other,
    # Backward formulas.
    aten._log_softmax_backward_data.default,
    aten._softmax_backward_data.default,
    aten.elu_backward.default,
    aten.embedding_dense_backward.default,
    aten.gelu_backward.default,
    aten.hardsigmoid_backward.default,
    aten.hardswish_backward.default,
    aten.hardtanh_backward.default,
    aten.leaky_relu_backward.default,
    aten.log_sigmoid_backward.default,
    aten.max_pool2d_with_indices_backward.default,
    aten.mse_loss_backward.default,
    aten.native_batch_norm_backward.default,
    aten.native_dropout.default,
    aten.native_group_norm_backward.default,
    aten.native_layer_norm_backward.default,
    aten.nll_loss_backward.default,
    aten.select_backward.default,
    aten.sigmoid_backward.default,
    aten.silu_backward.default,
    aten.slice_backward.default,
    aten.smooth_l1_loss_backward.default,
    aten.softplus_backward.default,
    aten.tanh_backward.default,
    aten.threshold_backward.default,
]
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = get_decompositions(TAKEN)


def decomposes(*ops: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        DECOMPOSITIONS.update(dict.fromkeys(ops, function))
        return function

    return register


def _lengths(x: Tensor, dim: int) -> tuple[int, int]:
    """A dimension counted from the front, and its size."""
    dim = dim % max(x.dim(), 1)
    return dim, x.shape[dim] if x.dim() else 1


# --- element-wise


@decomposes(aten.sinh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def sinh(x: Tensor) -> Tensor:
    grown = torch.expm1(x)  # exact near zero, where e^x - e^-x cancels
    return 0.5 * (grown + grown / (grown + 1))


@decomposes(aten.cosh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def cosh(x: Tensor) -> Tensor:
    return 0.5 * (torch.exp(x) + torch.exp(-x))


@decomposes(aten.atanh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def atanh(x: Tensor) -> Tensor:
    return 0.5 * (torch.log1p(x) - torch.log1p(-x))


@decomposes(aten.acosh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def acosh(x: Tensor) -> Tensor:
    return torch.log(x + torch.sqrt(x - 1) * torch.sqrt(x + 1))


@decomposes(aten.hypot.default)
@pw_cast_for_opmath
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Scaled by the larger one, so that squares do not overflow."""
    high, low = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = low / torch.where(high == 0, 1, high)
    return high * torch.sqrt(1 + ratio * ratio)


@decomposes(aten.fmax.default)
def fmax(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x != x, y, torch.where(y != y, x, torch.maximum(x, y)))


@decomposes(aten.fmin.default)
def fmin(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x != x, y, torch.where(y != y, x, torch.minimum(x, y)))


@decomposes(aten.copysign.Tensor)
@pw_cast_for_int_to_real
def copysign(x: Tensor, sign: Tensor) -> Tensor:
    """A zero's sign shows in its reciprocal."""
    negative = (sign < 0) | ((sign == 0) & (1 / sign < 0))
    return torch.where(negative, -x.abs(), x.abs())


@decomposes(aten.__lshift__.Scalar, aten.bitwise_left_shift.Tensor_Scalar)
def shift_left(x: Tensor, bits: int) -> Tensor:
    return x * (1 << bits)


@decomposes(aten.__rshift__.Scalar, aten.bitwise_right_shift.Tensor_Scalar)
def shift_right(x: Tensor, bits: int) -> Tensor:
    """Arithmetic: towards minus infinity."""
    return torch.div(x, 1 << bits, rounding_mode="floor")


# --- data movement


@decomposes(aten.slice_scatter.default)
def slice_scatter(
    x: Tensor, source: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """torch-mlir's needs unbounded memory for an `end` beyond the dimension."""
    dim, size = _lengths(x, dim)
    begin, stop, _ = slice(start, end).indices(size)
    if step != 1:
        rows = aten.index_put(x.movedim(dim, 0), [torch.arange(begin, stop, step)], source.movedim(dim, 0))
        return rows.movedim(0, dim)
    stop = max(begin, stop)
    parts = [x.narrow(dim, 0, begin), source, x.narrow(dim, stop, size - stop)]
    return torch.cat([p for p in parts if p.shape[dim]], dim)


@decomposes(aten.select_scatter.default)
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    dim, size = _lengths(x, dim)
    return slice_scatter(x, source.unsqueeze(dim), dim, index % size, index % size + 1)


@decomposes(aten.squeeze.dims)
def squeeze(x: Tensor, dims: Sequence[int]) -> Tensor:
    dropped = {_lengths(x, d)[0] for d in dims}
    return x.reshape([s for d, s in enumerate(x.shape) if d not in dropped or s != 1])


@decomposes(aten.diagonal.default)
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Equally spaced elements of the flattened matrices."""
    x = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    first = offset if offset >= 0 else -offset * columns
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    places = first + torch.arange(count) * (columns + 1)
    return x.flatten(-2).index_select(-1, places)


@decomposes(aten.unfold.default)
def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    dim, length = _lengths(x, dim)
    starts = torch.arange(0, length - size + 1, step)
    places = starts.unsqueeze(1) + torch.arange(size)
    return x.index_select(dim, places.flatten()).unflatten(dim, places.shape).movedim(dim + 1, -1)


@decomposes(aten.as_strided.default)
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Any:
    """Looked up in the flattened tensor, whose elements are where the program thinks if it is contiguous."""
    if not x.is_contiguous():
        return NotImplemented
    places = torch.full((), offset if offset is not None else int(x.storage_offset()))
    for i, (count, step) in enumerate(zip(size, stride, strict=True)):
        places = places + (torch.arange(count) * step).reshape([-1] + [1] * (len(size) - 1 - i))
    return x.reshape(-1).index_select(0, places.flatten()).reshape(list(size))


@decomposes(aten.constant_pad_nd.default)
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: float = 0) -> Any:
    """A crop is a slice; what grows is left to torch-mlir."""
    if not any(p < 0 for p in pad) or not any(p > 0 for p in pad):
        return NotImplemented
    for i, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - i
        x = x.narrow(dim, max(0, -low), x.shape[dim] - max(0, -low) - max(0, -high))
    return aten.constant_pad_nd(x, [max(0, p) for p in pad], value)


# --- indexing


@decomposes(aten._unsafe_index.Tensor)
def unsafe_index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return aten.index(x, indices)


@decomposes(aten.take.default)
def take(x: Tensor, index: Tensor) -> Tensor:
    return x.reshape(-1)[index]


def _along(index: Tensor, source: Tensor, dim: int) -> Tensor:
    """Positions along one dimension, for each element of `source`."""
    return index.reshape([-1 if d == dim else 1 for d in range(source.dim())]).expand(source.shape)


@decomposes(aten.index_copy.default)
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    dim, _ = _lengths(x, dim)
    return x.scatter(dim, _along(index, source, dim), source)


@decomposes(aten.index_add.default)
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    dim, _ = _lengths(x, dim)
    return x.scatter_add(dim, _along(index, source, dim), source if alpha == 1 else source * alpha)


@decomposes(aten.index_fill.int_Scalar)
def index_fill(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    dim, size = _lengths(x, dim)
    hit = (torch.arange(size).unsqueeze(1) == index.reshape(1, -1)).any(1)
    return torch.where(hit.reshape([-1 if d == dim else 1 for d in range(x.dim())]), value, x)


@decomposes(aten.scatter.value)
def scatter_value(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    return x.scatter(dim, index, torch.full(index.shape, value, dtype=x.dtype))


# --- pooling


def _pair(value: Sequence[int], default: Sequence[int] = (0, 0)) -> tuple[int, int]:
    value = tuple(value) or tuple(default)
    return (value[0], value[-1])


def _overhang(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How far the last window of ceil mode reaches over the padded input; the window must start inside of it."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    steps = math.ceil(span / stride)
    if steps * stride >= size + padding:
        steps -= 1
    return max(0, steps * stride - span)


@decomposes(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> Any:
    """torch-mlir ignores ceil mode and does not take images without a batch."""
    kernel, padding, dilation = _pair(kernel), _pair(padding), _pair(dilation)
    stride = _pair(stride, kernel)
    if x.dim() == 3:
        values, indices = aten.max_pool2d_with_indices(x.unsqueeze(0), kernel, stride, padding, dilation, ceil_mode)
        return values.squeeze(0), indices.squeeze(0)
    if not ceil_mode:
        return NotImplemented
    over = [_overhang(x.shape[d - 2], kernel[d], stride[d], padding[d], dilation[d]) for d in (0, 1)]
    if not any(over):
        return aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, False)
    (top, left), (bottom, right), width = padding, over, x.shape[-1]
    x = F.pad(x, (left, left + right, top, top + bottom), value=-math.inf)
    values, indices = aten.max_pool2d_with_indices(x, kernel, stride, (0, 0), dilation, False)
    row, column = indices // x.shape[-1] - top, indices % x.shape[-1] - left
    return values, row * width + column


@decomposes(aten.avg_pool2d.default)
def avg_pool2d(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """Divisors that differ from window to window come from pooling ones; ceil mode is padding."""
    kernel, padding = _pair(kernel), _pair(padding)
    stride = _pair(stride, kernel)
    over = [_overhang(x.shape[d - 2], kernel[d], stride[d], padding[d]) if ceil_mode else 0 for d in (0, 1)]
    if not (any(over) or divisor_override or ceil_mode):
        return NotImplemented
    (top, left), (bottom, right) = padding, over
    ring, rest = (left, left, top, top), (0, right, 0, bottom)

    def window_means(image: Tensor) -> Tensor:
        return aten.avg_pool2d(F.pad(image, rest), kernel, stride, (0, 0), False, True, None)

    means = window_means(F.pad(x, ring))
    if divisor_override:
        return means * (kernel[0] * kernel[1] / divisor_override)
    ones = torch.ones(x.shape[-2:], dtype=x.dtype)[None, None]
    counted = F.pad(ones, ring, value=1.0 if count_include_pad else 0.0)
    return means / window_means(counted).reshape(means.shape[-2:])

"""Transposed convolutions, and the gradients of convolutions as convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import NARROW, decomposes
from tt_torch.torch_private.tracing import pw_cast_for_opmath

aten = torch.ops.aten

Ints = Sequence[int]


@pw_cast_for_opmath
def transposed_convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """Computes a transposed convolution without padding, and then crops or pads the result. torch-mlir would exchange
    the dimensions of the output padding."""
    none = [0] * len(stride)
    result = aten.convolution(x, weight, None, stride, none, dilation, True, none, groups)
    for i, (low, extra) in enumerate(zip(padding, output_padding, strict=True)):
        kept = result.shape[2 + i] - 2 * low + extra
        result = result.narrow(2 + i, low, min(kept, result.shape[2 + i] - low))
        missing = kept - result.shape[2 + i]
        if missing:
            result = aten.constant_pad_nd(result, [0, 0] * (len(stride) - 1 - i) + [0, missing])
    return result if bias is None else result + bias.reshape([1, -1] + [1] * len(stride))


@decomposes(aten.convolution.default)
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor | NotImplementedType:
    """Transposed convolutions of one and two dimensions become composites. Narrow floats are rounded once."""
    if not transposed or len(stride) < 3 or not (any(output_padding) or x.dtype in NARROW):
        return NotImplemented
    return transposed_convolution(x, weight, bias, stride, padding, output_padding, dilation, groups)


@decomposes(aten.convolution_backward.default)
def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients for the input, the weight and the bias. A gradient is None if `output_mask` does not ask for it."""
    window = (list(stride), list(padding), list(dilation))
    to_input = to_weight = to_bias = None
    if output_mask[0]:
        to_input = _to_input(grad, x, weight, *window, transposed, groups)
    if output_mask[1]:
        images = (grad, x) if transposed else (x, grad)
        to_weight = _to_weight(*images, weight, *window, groups)
    if output_mask[2]:
        to_bias = grad.sum([0, *range(2, grad.dim())])
    return to_input, to_weight, to_bias


def _to_input(
    grad: Tensor, x: Tensor, weight: Tensor, stride: Ints, padding: Ints, dilation: Ints, transposed: bool, groups: int
) -> Tensor:
    """The gradient for the input: the opposite convolution (transposed or not) with the same weight."""
    none = [0] * len(stride)
    if transposed:
        result = aten.convolution(grad, weight, None, stride, padding, dilation, False, none, groups)
        return _cut(result, x.shape[2:])
    spans = zip(grad.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True)
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in spans]
    extra = [size - own for size, own in zip(x.shape[2:], sizes, strict=True)]
    return aten.convolution(grad, weight, None, stride, padding, dilation, True, extra, groups)


def _to_weight(
    x: Tensor, grad: Tensor, weight: Tensor, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The gradient for the weight: a convolution in which images and channels are exchanged.

    `x` is convolved with `grad`, with a dilation of `stride` and a stride of `dilation`. Channels of a group only use
    the gradients of that group.
    """
    batch, channels, *size = x.shape
    images = x.reshape(batch, groups, channels // groups, *size).transpose(0, 2).flatten(1, 2)
    none = [0] * len(stride)
    result = aten.convolution(images, grad.transpose(0, 1), None, dilation, padding, stride, False, none, groups)
    return _cut(result.transpose(0, 1), weight.shape[2:])


def _cut(x: Tensor, sizes: Ints) -> Tensor:
    for i, size in enumerate(sizes):
        x = x.narrow(2 + i, 0, size) if x.shape[2 + i] != size else x
    return x

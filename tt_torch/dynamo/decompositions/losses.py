"""Losses of classes."""

from __future__ import annotations

from types import NotImplementedType

import torch
from torch import Tensor
from torch.nn.modules import linear_cross_entropy as _defines_its_ops  # noqa: F401

from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS, NARROW, decomposes
from tt_torch.dynamo.types import Argument
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.tracing import pw_cast_for_opmath

aten = torch.ops.aten
torch_nn = torch.ops.torch_nn


@decomposes(aten._softmax.default)
def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor | NotImplementedType:
    """The softmax of a scalar, which torch-mlir would rewrite again and again, without an end."""
    return NotImplemented if x.dim() else torch.where(x.isfinite(), 1.0, torch.nan).to(x.dtype)


@decomposes(aten._softmax_backward_data.default)
@pw_cast_for_opmath
def softmax_backward(gradient: Tensor, softmax: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    """Subtracts before it multiplies, as eager does. After the products, an infinite gradient would be NaN in all
    elements of its row."""
    return ((gradient - (gradient * softmax).sum(dim, True)) * softmax).to(input_dtype)


@decomposes(aten._log_softmax.default)
def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor | NotImplementedType:
    """Rounds narrow floats only once. The device keeps the first 24 bits of a float64. Results near zero stay exact to
    these bits, because log1p takes the sum of the exponentials without the largest one, which is 1."""
    if not x.dim():
        return torch.where(x.isfinite(), 0.0, torch.nan).to(x.dtype)
    if x.dtype in (torch.bfloat16, torch.float16):
        return aten._log_softmax(x.to(torch.float32), dim, False).to(torch.float32 if half_to_float else x.dtype)
    if x.dtype is not torch.float64 or not x.numel():
        return NotImplemented
    below = x - x.amax(dim, True)
    largest = below == 0
    others = torch.where(largest, 0, torch.exp(below)).sum(dim, True)
    return below - torch.log1p(others + (largest.to(x.dtype).sum(dim, True) - 1))


_of_elements = DECOMPOSITIONS[aten.huber_loss.default]


@decomposes(aten.huber_loss.default)
def huber_loss(x: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    """The losses have the dtype of `x`, also beside a wider target, and are reduced in it."""
    if x.dtype == target.dtype:
        return _of_elements(x, target, reduction, delta)
    losses = _of_elements(x, target, 0, delta).to(x.dtype)
    return (losses, losses.mean(), losses.sum())[reduction]


@decomposes(aten.mse_loss.default)
def mse_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor | NotImplementedType:
    """The reduced losses of float16. torch-mlir would divide by their number in float16, which may be infinite."""
    if reduction == 0 or torch.result_type(x, target) is not torch.float16:
        return NotImplemented
    losses = aten.mse_loss(x, target, 0)
    return losses.mean() if reduction == 1 else losses.sum()


@decomposes(aten.smooth_l1_loss_backward.default)
@pw_cast_for_opmath
def smooth_l1_loss_backward(gradient: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    """The slope at a difference of NaN is NaN. PyTorch's formula takes the sign of NaN as zero."""
    difference = x - target
    gradient = gradient / x.numel() if reduction == 1 else gradient
    far = difference.abs() >= beta
    return torch.where(far, gradient * torch.sign(difference), gradient * difference / beta)


_nll_loss = {op: DECOMPOSITIONS[op] for op in (aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)}


def _counted_in_float32(op: OpOverload) -> None:
    """Divides the sum of narrow floats in float32. The number of rows may be infinite in float16."""

    @decomposes(op)
    def nll_loss(
        x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
    ) -> tuple[Tensor, Tensor]:
        if x.dtype not in NARROW:
            return _nll_loss[op](x, target, weight, reduction, ignore_index)
        wide = None if weight is None else weight.to(torch.float32)
        loss, total_weight = _nll_loss[op](x.to(torch.float32), target, wide, reduction, ignore_index)
        return loss.to(x.dtype), total_weight.to(x.dtype)


for _op in _nll_loss:
    _counted_in_float32(_op)


@decomposes(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def nll_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """The gradient is 0.0 for each class that is not the target. PyTorch's formula multiplies the gradient by zero
    instead. This keeps its sign, so it may give -0.0, and it gives NaN for an infinite gradient."""
    dim = min(x.dim() - 1, 1)
    classes = torch.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    chosen = (classes == target.unsqueeze(dim)) & (target != ignore_index).unsqueeze(dim)
    if reduction == 1:
        total = _weighted(target, weight, ignore_index)[1].sum() if x.dtype in NARROW else total_weight
        gradient = gradient / total
    gradient = -(gradient.unsqueeze(dim) if gradient.dim() else gradient)
    if weight is not None:
        gradient = gradient * weight.reshape(classes.shape)
    return torch.where(chosen, gradient, 0.0).to(x.dtype)


def _weighted(target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The class of each row, and its weight; the weight of an ignored row is 0."""
    kept = target != ignore_index
    classes = torch.where(kept, target, 0)
    own = torch.ones_like(classes, dtype=torch.float32) if weight is None else weight[classes].to(torch.float32)
    return classes, torch.where(kept, own, 0)


def _logits(x: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    logits = x.to(torch.float32) @ matrix.to(torch.float32).mT
    return logits if bias is None else logits + bias.to(torch.float32)


def _at(x: Tensor, classes: Tensor) -> Tensor:
    return x.gather(1, classes.unsqueeze(1)).squeeze(1)


@decomposes(torch_nn._linear_cross_entropy_batch_chunked.default)
def linear_cross_entropy(
    x: Tensor,
    matrix: Tensor,
    target: Tensor,
    bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: torch.dtype,
    allow_retain_graph: bool,
    to_x: bool,
    to_matrix: bool,
    to_bias: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor] | NotImplementedType:
    """Cross entropy of the logits x (rows, features) @ matrix.mT, with matrix (classes, features), and its gradients.
    All rows are computed together, and not in chunks."""
    if label_smoothing or not x.shape[0] or x.dtype is torch.float64:
        return NotImplemented
    logits = _logits(x, matrix, bias)
    classes, weights = _weighted(target, weight, ignore_index)
    scaled = weights / weights.sum() if reduction == "mean" else weights
    loss = -(_at(torch.log_softmax(logits, 1), classes) * scaled).sum()
    hit = classes.unsqueeze(1) == torch.arange(matrix.shape[0])
    slope = (torch.softmax(logits, 1) - hit.to(torch.float32)) * scaled.unsqueeze(1)
    return (
        loss.to(x.dtype),
        (slope @ matrix.to(torch.float32)).to(x.dtype) if to_x else x.new_zeros((0, 0)),
        (slope.mT @ x.to(torch.float32)).to(x.dtype) if to_matrix else x.new_zeros((0, 0)),
        slope.sum(0).to(x.dtype) if to_bias else x.new_zeros((0,)),
    )


@decomposes(torch_nn._linear_cross_entropy_batch_chunked_no_reduction.default)
def linear_cross_entropy_of_rows(
    x: Tensor,
    matrix: Tensor,
    target: Tensor,
    bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    *how: Argument,
) -> Tensor | NotImplementedType:
    if not x.shape[0] or x.dtype is torch.float64:
        return NotImplemented
    classes, weights = _weighted(target, weight, ignore_index)
    return (-_at(torch.log_softmax(_logits(x, matrix, bias), 1), classes) * weights).to(x.dtype)

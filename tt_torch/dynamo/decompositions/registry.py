"""The table that the families of this folder fill, with PyTorch's own decompositions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tt_torch.dynamo.types import Argument, Decompositions, Function, Result
from tt_torch.torch_private.ops import OpOverload, schema
from tt_torch.torch_private.tensors import storage_of
from tt_torch.torch_private.tracing import get_decompositions
from tt_torch.torch_private.trees import tree_leaves, tree_map_only

aten = torch.ops.aten
NARROW = (torch.bfloat16, torch.float16)  # computed in float32, and rounded once

# Ops for which we use PyTorch's own decompositions.
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
    # torch-mlir computes the logarithm of a sigmoid that may be zero, and folds `1 - target` to a wrong constant.
    aten.binary_cross_entropy_with_logits.default,
    # Unknown to torch-mlir, or not lowered to StableHLO.
    aten._adaptive_avg_pool2d.default,
    aten._fused_rms_norm.default,
    aten._prelu_kernel.default,
    aten._unsafe_masked_index.default,
    aten._unsafe_masked_index_put_accumulate.default,
    aten._weight_norm_interface.default,
    aten.addmv.default,
    aten.affine_grid_generator.default,
    aten.count_nonzero.default,
    aten.diag_embed.default,
    aten.im2col.default,
    aten.leaky_relu.default,
    aten.log_sigmoid_forward.default,
    aten.logsumexp.default,
    aten.mvlgamma.default,
    aten.nan_to_num.default,
    aten.nll_loss_forward.default,
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.sinc.default,
    aten.smooth_l1_loss.default,
    aten.special_entr.default,
    aten.special_log_ndtr.default,
    aten.special_xlog1py.default,
    aten.special_xlog1py.other_scalar,
    aten.special_xlog1py.self_scalar,
    aten.unbind.int,
    aten.xlogy.Tensor,
    aten.xlogy.Scalar_Self,
    aten.xlogy.Scalar_Other,
    aten._chunk_cat.default,
    aten._euclidean_dist.default,
    aten.addr.default,
    aten.alias_copy.default,
    aten.all.dims,
    aten.any.dims,
    aten.channel_shuffle.default,
    aten.new_empty_strided.default,
    aten.clamp_max.Tensor,
    aten.clamp_min.Tensor,
    aten.clamp.Tensor,
    aten.dist.default,
    aten.expand_copy.default,
    aten.isin.Scalar_Tensor,
    aten.isin.Tensor_Scalar,
    aten.isin.Tensor_Tensor,
    aten.multi_margin_loss.default,
    aten.multilabel_margin_loss_forward.default,
    aten.nansum.default,
    aten.norm.Scalar,
    aten.norm.ScalarOpt_dim,
    aten.narrow_copy.default,
    aten.huber_loss.default,
    aten.renorm.default,
    aten.soft_margin_loss.default,
    aten.std_mean.correction,
    aten.trace.default,
    aten.unsafe_split.Tensor,
    aten.unsafe_split_with_sizes.default,
    aten.nll_loss2d_forward.default,
    aten.permute_copy.default,
    aten.rsub.Tensor,
    aten.binary_cross_entropy.default,
    aten.linalg_vector_norm.default,
    aten.linspace.Scalar_Tensor,
    aten.linspace.Tensor_Scalar,
    aten.linspace.Tensor_Tensor,
    aten.logspace.Scalar_Tensor,
    aten.logspace.Tensor_Scalar,
    aten.logspace.Tensor_Tensor,
    aten.split_with_sizes_copy.default,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.t_copy.default,
    aten.transpose_copy.int,
    aten.unbind_copy.int,
    aten.unsqueeze_copy.default,
    aten.vdot.default,
    aten.view_copy.default,
    # Backward formulas.
    aten._prelu_kernel_backward.default,
    aten.batch_norm_backward.default,
    aten.binary_cross_entropy_backward.default,
    aten.diagonal_backward.default,
    aten.glu_backward.default,
    aten.huber_loss_backward.default,
    aten.logit_backward.default,
    aten.mish_backward.default,
    aten.reflection_pad1d_backward.default,
    aten.reflection_pad2d_backward.default,
    aten.reflection_pad3d_backward.default,
    aten.rrelu_with_noise_backward.default,
    aten.soft_margin_loss_backward.default,
    aten.unfold_backward.default,
    aten._log_softmax_backward_data.default,
    aten.elu_backward.default,
    aten.embedding_dense_backward.default,
    aten.gelu_backward.default,
    aten.hardsigmoid_backward.default,
    aten.hardswish_backward.default,
    aten.hardtanh_backward.default,
    aten.leaky_relu_backward.default,
    aten.log_sigmoid_backward.default,
    aten.mse_loss_backward.default,
    aten.native_batch_norm_backward.default,
    aten.native_dropout_backward.default,
    aten.native_group_norm_backward.default,
    aten.native_layer_norm_backward.default,
    aten.select_backward.default,
    aten.sigmoid_backward.default,
    aten.silu_backward.default,
    aten.slice_backward.default,
    aten.softplus_backward.default,
    aten.tanh_backward.default,
    aten.threshold_backward.default,
]
DECOMPOSITIONS: Decompositions = get_decompositions(TAKEN)


def decomposes(*ops: OpOverload) -> Callable[[Function], Function]:
    """Registers a function as the decomposition of these ops. If it returns NotImplemented, the op stays as it is."""

    def register(function: Function) -> Function:
        for op in ops:
            is_view = any(result.alias_info for result in schema(op).returns)
            DECOMPOSITIONS[op] = _beside_operands(function if is_view else _in_new_memory(function))
        return function

    return register


def _in_new_memory(function: Function) -> Function:
    """Copies results that share memory with an operand. For example, the maximum of a single number gets new memory."""

    @functools.wraps(function)
    def call(*args: Argument, **kwargs: Argument) -> Result:
        taken = {storage_of(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        return tree_map_only(Tensor, lambda x: x.clone() if storage_of(x) in taken else x, function(*args, **kwargs))

    return call


def _beside_operands(function: Function) -> Function:
    """Makes new tensors on the device that the op names, or else on the device of its operands."""

    @functools.wraps(function)
    def call(*args: Argument, **kwargs: Argument) -> Result:
        with kwargs.get("device") or device_of((args, kwargs)):
            return function(*args, **kwargs)

    return call


def device_of(values: Argument) -> torch.device:
    """The device of the first tensor that is not on the CPU, or the CPU if there is none. A `with` of this device makes
    new tensors there, even if the user has another default device."""
    devices = (v.device for v in tree_leaves(values) if isinstance(v, Tensor))
    return next((device for device in devices if device.type != "cpu"), torch.device("cpu"))


def lengths(x: Tensor, dim: int) -> tuple[int, int]:
    """A dimension counted from the front, and its size. For a scalar, they are 0 and 1."""
    dim = dim % max(x.dim(), 1)
    return dim, x.shape[dim] if x.dim() else 1


def memory_order(x: Tensor) -> list[int]:
    """The dimensions in the order of memory, from the outermost to the innermost."""
    return sorted(range(x.dim()), key=lambda d: x.stride(d), reverse=True)


def from_memory_order(x: Tensor, order: Sequence[int]) -> Tensor:
    """The reverse of `permute(order)`."""
    return x.permute([order.index(d) for d in range(x.dim())])


def strided_like(result: Tensor, x: Tensor) -> Tensor:
    """`result` with the order of dimensions that `x` has in memory, which later views by PyTorch rely on."""
    if x.is_contiguous():
        return result.contiguous()
    order = memory_order(x)
    return from_memory_order(result.permute(order).clone(memory_format=torch.contiguous_format), order)

"""Ops of DTensors without a rule whose operands PyTorch's dispatcher cannot gather, while this process has a mesh of
chips: ops with tensors in lists or by name, and ops that write to `out=`.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Replicate

from tt_torch.errors import MeshError
from tt_torch.torch_private.ops import OpOverload, is_random, schema
from tt_torch.torch_private.sharded_masks import READS
from tt_torch.torch_private.sharded_norms import as_dtensor, handles, local
from tt_torch.torch_private.trees import tree_leaves, tree_map_only


def refuse_size_of_values(op: OpOverload, kwargs: Mapping[str, Any]) -> None:
    """Raises MeshError for an op whose results have sizes that depend on values, such as `nonzero`. Elements that an
    index chooses have the sizes of the index; `of_mask` refuses masks."""
    if torch.Tag.dynamic_output_shape in op.tags and op not in READS and kwargs.get("output_size") is None:
        raise MeshError(f"{op} of a DTensor has a size that depends on values; use it on x.full_tensor()")


# 2.13.0: without it the error would not say what to do.
@handles(torch.ops.aten.as_strided.default)
def _as_strided(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    x, size, stride, *offset = args
    if x.shape == tuple(size) and x.stride() == tuple(stride) and (offset or [None])[0] in (None, x.storage_offset()):
        return torch.ops.aten.alias.default(x)
    why = "the memory of the chips has other strides than the whole tensor"
    raise MeshError(f"{op} of a DTensor, which fill_diagonal_ uses, too: {why}; use it on x.full_tensor()")


# 2.13.0: without it the error would be that these ops have no rule.
@handles(torch.ops.aten.resize_.default, torch.ops.aten.resize_as_.default)
def _resize(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    x, form, *_ = args
    size = tuple(form.shape if isinstance(form, torch.Tensor) else form)
    if size == x.shape:
        return x
    raise MeshError(f"{op} of a DTensor of shape {tuple(x.shape)} to {size}; use view, or a slice, or x.full_tensor()")


def may_be_whole(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the results of an op may be computed with whole tensors. A view of a gathered copy would lose writes."""
    aliases = [a.alias_info.is_write for a in schema(op).arguments if a.alias_info and not a.is_out]
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, DTensor)]
    are_whole = all(p.is_replicate() for x in tensors if x.numel() for p in x.placements)
    return not any(aliases) and (are_whole or not aliases) and not is_random(op)


@torch.no_grad()
def of_whole_tensors(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The results of an op on each chip, after each chip got the whole tensors. Results given as `out=` get them."""
    outs = [argument.name for argument in schema(op).arguments if argument.is_out]
    if not may_be_whole(op, args, kwargs):
        raise MeshError(f"PyTorch has no rule for {op} of a DTensor; use it on x.full_tensor()")
    mesh = next(x.device_mesh for x in tree_leaves((args, kwargs)) if isinstance(x, DTensor))
    whole = [Replicate()] * mesh.ndim
    given, named = tree_map_only(torch.Tensor, lambda x: local(x, mesh, whole), (args, dict(kwargs)))
    # An `out=` of a wrong shape becomes larger in eager PyTorch. A new tensor is not known to the user.
    made = op(*given, **named | {name: torch.empty_like(named[name]) for name in outs})
    made = tree_map_only(torch.Tensor, lambda x: as_dtensor(x, mesh), made)
    if not outs:
        return made
    for name, result in zip(outs, tree_leaves(made), strict=True):
        if result.shape != kwargs[name].shape:
            raise MeshError(f"{op} gives a DTensor of shape {tuple(result.shape)}, and `out` has another one")
        kwargs[name].copy_(result)
    return kwargs[outs[0]] if len(outs) == 1 else tuple(kwargs[name] for name in outs)

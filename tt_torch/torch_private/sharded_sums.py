"""Sums, products, norms and largest values over the chips, of which each chip has a part: their casts, and writes.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate
from torch.distributed.tensor import _dispatch as _of_operands  # 2.13.0: for PATCHES
from torch.distributed.tensor._dtensor_spec import DTensorSpec  # 2.13.0: for _by_whole_values
from torch.distributed.tensor._op_schema import OpSchema, OpStrategy  # 2.13.0: for makes_norms, _of_whole_norms
from torch.distributed.tensor._ops import _math_ops as _of_reductions  # 2.13.0: for PATCHES
from torch.distributed.tensor._ops import _tensor_ops as _of_casts  # 2.13.0: for PATCHES
from torch.distributed.tensor._ops._math_ops import _NormPartial  # 2.13.0: for write

from tt_torch.errors import MeshError
from tt_torch.torch_private.trees import tree_leaves


def write(result: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Gives `x` these values. Only a whole tensor becomes the parts of a sum. Raises MeshError for a norm over the
    chips: its parts are the norms of the chips, which add up to no negative number."""
    if 0 in x.shape:  # PyTorch refuses the copy if the results without elements are on all chips
        return x
    if isinstance(x, DTensor) and any(isinstance(p, _NormPartial) for p in x.placements):
        advice = "redistribute it to [Replicate()] before, or compute another tensor"
        raise MeshError(f"an op in place writes to a DTensor that is a norm over the chips; {advice}")
    if isinstance(x, DTensor) and isinstance(result, DTensor) and any(p.is_partial() for p in x.placements):
        result = result.redistribute(placements=[Replicate()] * result.device_mesh.ndim)
    return x.copy_(result)


def becomes_parts(x: torch.Tensor, new: torch.Tensor) -> bool:
    """Whether a copy of `new` would have to become the parts of a sum or of a norm over the chips, and is not whole."""
    is_partial = isinstance(x, DTensor) and any(p.is_partial() for p in x.placements)
    return is_partial and isinstance(new, DTensor) and not all(p.is_replicate() for p in new.placements)


def makes_norms(asked: OpSchema, sent: OpSchema | None) -> bool:
    """Whether values that are no norm would become parts of a norm over the chips, which loses their signs."""
    return sent is not None and _norms(sent) > _norms(asked)


def _norms(op: OpSchema) -> int:
    specs = [x for x in tree_leaves(op.args_schema) if isinstance(x, DTensorSpec)]
    return sum(isinstance(p, _NormPartial) for spec in specs for p in spec.placements)


# 2.13.0: without it ops in place, or with `out=`, could not write a split tensor to a sum over the chips.
def _by_whole_values(of: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def redistribute_local_tensor(part: torch.Tensor, now: DTensorSpec, then: DTensorSpec, **how: Any) -> torch.Tensor:
        pairs = zip(now.placements, then.placements, strict=True)
        placements = tuple(Replicate() if type(b) is Partial and a != b else a for a, b in pairs)
        if placements != now.placements:
            whole = DTensorSpec(now.mesh, placements, tensor_meta=now.tensor_meta)
            part, now = of(part, now, whole, **how), whole
        return of(part, now, then, **how)

    return redistribute_local_tensor


# 2.13.0: without it the smallest of -2 and 0 as uint8 would be 0 instead of 254, and a product of 0 and -1 as a float
# would be -0.0, if the two are on different chips.
def _or_of_another_kind(of: Callable[..., bool]) -> Callable[..., bool]:
    def _partial_needs_reduce_for_dtype_cast(reduction: str, now: torch.dtype, then: torch.dtype | None) -> bool:
        wraps = then is not None and not then.is_floating_point
        gets_a_sign = then is not None and then.is_floating_point and not now.is_floating_point
        of_parts = {"max": wraps, "min": wraps, "product": gets_a_sign}
        return of(reduction, now, then) or of_parts.get(reduction, False)

    return _partial_needs_reduce_for_dtype_cast


# 2.13.0: without it the sum of norms over the chips would be the norm of the chips' sums.
def _of_whole_norms(of: Callable[..., OpStrategy]) -> Callable[..., OpStrategy]:
    def common_reduction_strategy(given: OpStrategy, dims: list[int], *options: Any, **named: Any) -> OpStrategy:
        placements = [p for each in given.strategies for p in each.output_spec.placements]
        is_sum = named.get("reduction_op", "sum") == "sum"
        if is_sum and any(isinstance(p, _NormPartial) for p in placements):
            named["reduction_linear"] = False
        return of(given, dims, *options, **named)

    return common_reduction_strategy


PATCHES: Sequence[tuple[Any, str, Callable[[Any], Any]]] = (
    (_of_operands, "redistribute_local_tensor", _by_whole_values),
    (_of_reductions, "common_reduction_strategy", _of_whole_norms),
    (_of_casts, "_partial_needs_reduce_for_dtype_cast", _or_of_another_kind),
)

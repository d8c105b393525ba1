"""Ops that write to a DTensor in place, while this process has a mesh of chips.

PyTorch's rules refuse such an op if its result would be split in another way than the tensor, or has no rule. For some
ops, they give the tensor the new placements, and its values stay as they were. Here, the result is computed apart, and
then written to the tensor. An op that changes the shape in place gives the DTensor the view that has this shape.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from tt_torch.torch_private.moved_views import before_reshape
from tt_torch.torch_private.ops import OpOverload, is_random, schema
from tt_torch.torch_private.sharded_sums import write

aten = torch.ops.aten
# Ops that change the shape of a tensor, and write nothing, with the op that makes a view of this shape.
RESHAPES = {
    aten.squeeze_: aten.squeeze,
    aten.unsqueeze_: aten.unsqueeze,
    aten.transpose_: aten.transpose,
    aten.t_: aten.t,
}
_AS_THEY_ARE = (aten.copy_, aten.as_strided_)  # the first one sends the new values to where the tensor is


def apart(op: OpOverload) -> OpOverload | None:
    """The op that computes what an op in place would write to its first argument. None for other ops."""
    name, overload = schema(op).name.partition("::")[2], schema(op).overload_name or "default"
    packet = getattr(aten, name.removesuffix("_"), None)
    if op.namespace != "aten" or not name.endswith("_") or packet is None or is_random(op):
        return None
    if op.overloadpacket in _AS_THEY_ARE:
        return None
    return getattr(packet, overload if overload in packet.overloads() else "default", None)


# 2.13.0: without it `squeeze_` would keep the shape that the DTensor says, and the others would have no rule.
@torch.no_grad()
def reshaped(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """Gives a DTensor the shape of a view of it. The elements stay where they are."""
    x = args[0]
    before_reshape(op, x)
    if not x.dim() and op.overloadpacket is aten.transpose_:  # DTensor's rule does not know this dimension
        return x
    view = RESHAPES[op.overloadpacket](*args, **kwargs)
    x.data = view  # the sizes and strides that the DTensor says
    x._local_tensor, x._spec = view._local_tensor, view._spec
    return x


@torch.no_grad()
def in_place(of: Any, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], *rest: Any) -> Any:
    """Runs an op in place by PyTorch's rules. If the rules refuse it, or would change the placements of the tensor, the
    op is computed apart, and the tensor is returned.

    The rules refuse by errors of these two types, which have no class of their own. A mistake of the user raises them,
    too: then the op apart raises it again, or its result does not fit the tensor, and the error of the rules is raised.
    """
    x, op_apart = args[0], apart(op)
    assert op_apart is not None
    try:
        made = of(op, args, kwargs, *rest)
    except (NotImplementedError, RuntimeError):
        result = op_apart(*args, **kwargs)
        if result.shape != x.shape or not torch.can_cast(result.dtype, x.dtype):
            raise  # eager PyTorch refuses it, too
        return write(result, x)
    if not isinstance(x, DTensor) or x.placements == getattr(made.output_spec, "placements", None):
        return made
    return write(op_apart(*args, **kwargs), x)

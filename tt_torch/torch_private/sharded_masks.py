"""Elements of DTensors that a boolean mask chooses, while this process has a mesh of chips.

PyTorch's rule takes a mask for an index of one dimension, and splits dimensions that the mask chooses from.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Replicate

from tt_torch.errors import MeshError
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.sharded_norms import as_dtensor, local, named

aten = torch.ops.aten
READS = (aten.index.Tensor,)
WRITES = (aten.index_put.default, aten.index_put_.default)


def has_mask(op: OpOverload, args: Sequence[Any]) -> bool:
    """Whether an op reads or writes the elements that a mask chooses."""
    return op in READS + WRITES and any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1])


# 2.13.0: without it `x[mask] = value` of a DTensor would be an IndexError.
@torch.no_grad()
def of_mask(op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor:
    """Writes to the elements that a mask chooses.

    Raises MeshError for an op that reads them: their number is known only after the mask was computed, and the parts of
    chips need sizes.
    """
    if op in READS:
        raise MeshError("x[mask] of a DTensor has a size that depends on values; use torch.where, or x.full_tensor()")
    a = named(op, args, kwargs)
    x, indices, value = a["self"], a["indices"], a["values"]
    if not isinstance(x, DTensor):
        x = as_dtensor(x, next(each for each in (*indices, value) if isinstance(each, DTensor)).device_mesh)
    add = bool(a["accumulate"])
    if _fills(x, indices, value):
        mask = indices[0].reshape(*indices[0].shape, *[1] * (x.dim() - indices[0].dim()))
        made = torch.where(mask, x + value if add else value, x)
    else:
        made = _whole(x, indices, value, add)
    return x.copy_(made) if op is aten.index_put_.default else made


def _fills(x: DTensor, indices: Sequence[Any], value: torch.Tensor) -> bool:
    """Whether one mask of the first dimensions chooses elements that all get one value. This needs no exchange."""
    mask, *others = indices
    if others or mask is None or mask.dtype != torch.bool or value.numel() != 1 or value.dtype != x.dtype:
        return False
    return mask.shape == x.shape[: mask.dim()] and value.dim() <= x.dim() - mask.dim() + 1


def _whole(x: DTensor, indices: Sequence[torch.Tensor | None], value: torch.Tensor, add: bool) -> DTensor:
    """The result of the op on each chip, after each chip got the whole tensors."""
    mesh = x.device_mesh
    whole = [Replicate()] * mesh.ndim
    chosen = [None if each is None else local(each, mesh, whole) for each in indices]
    made = aten.index_put(local(x, mesh, whole), chosen, local(value, mesh, whole), add)
    return DTensor.from_local(made, mesh, whole, run_check=False)

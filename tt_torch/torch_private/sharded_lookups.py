"""Look-ups in a DTensor that is split along the dimension of the look-up, as in an embedding of words.

Each chip looks up what it has, and gives zeros for the rest. The result is a sum over the chips. In PyTorch, a chip
writes these zeros only when the sum is computed, with a mask that all look-ups of a form share. So these are errors in
PyTorch: a second look-up before the sum of the first, and a look-up and its sum in two compiled graphs. A mask that was
made before its positions were gathered gives wrong numbers.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._op_schema import OutputSharding  # 2.13.0: for is_masked
from torch.distributed.tensor.placement_types import _MaskPartial  # 2.13.0: the same

from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.sharded_norms import local

aten = torch.ops.aten
# For each op, the positions of the tensor and of the places among its arguments.
LOOKUPS = {aten.embedding.default: (0, 1), aten.gather.default: (0, 2)}


def is_masked(op: OpOverload, made: object) -> bool:
    """Whether the rules, which say `made`, let each chip look up what it has."""
    if op not in LOOKUPS or not isinstance(made, OutputSharding):
        return False
    return any(isinstance(placement, _MaskPartial) for placement in getattr(made.output_spec, "placements", ()))


@torch.no_grad()
def look_up(op: OpOverload, args: tuple[Any, ...], made: Any) -> DTensor:
    """Looks up what each chip has. Places outside of the whole tensor stay outside, so that they are errors."""
    (of_tensor, of_places), mesh = LOOKUPS[op], made.output_spec.mesh
    dim = args[1] % args[0].dim() if op is aten.gather.default else 0
    asked = [spec for spec in made.redistribute_schema.args_schema if hasattr(spec, "placements")]
    tensor, places = args[of_tensor], args[of_places]
    own = local(tensor, mesh, asked[0].placements)
    given = local(places, mesh, [Replicate() if isinstance(p, _MaskPartial) else p for p in asked[1].placements])
    whole, part = tensor.shape[dim], own.shape[dim]
    split = [Shard(0) if getattr(p, "dim", None) == dim else Replicate() for p in asked[0].placements]
    first = local(torch.arange(0, whole, part, device=given.device), mesh, split).squeeze(0)
    elsewhere = ((given < first) & (given >= 0)) | ((given >= first + part) & (given < whole))
    changed = list(args)
    changed[of_tensor], changed[of_places] = own, torch.where(elsewhere, 0, given - first)
    found = op(*changed)
    zeros = elsewhere.reshape(*elsewhere.shape, *[1] * (found.dim() - elsewhere.dim()))
    sums = [Partial("sum") if isinstance(p, _MaskPartial) else p for p in made.output_spec.placements]
    return DTensor.from_local(torch.where(zeros, 0, found), mesh, sums, run_check=False)

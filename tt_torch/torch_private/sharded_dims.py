"""How DTensor splits ops along a dimension for which PyTorch's rules are wrong, while this process has a mesh of chips.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from tt_torch.torch_private.chips import parts_of
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.sharded_norms import handles, local, named

aten = torch.ops.aten
Sharding: TypeAlias = tuple[list[Any], list[Any]]  # the placements of the results, then the placements of the arguments


def _even(x: Any) -> list[int]:
    """The dimensions that all chips can split into parts of one size. A program for all chips needs such parts."""
    return [dim for dim, size in enumerate(x.shape) if size % x.mesh.size() == 0]


def scan(x: Any, dim: int, **options: Any) -> list[Sharding]:
    """The ways to split a scan: whole, or along another dimension than its own."""
    others = [Shard(each) for each in _even(x) if each != dim % len(x.shape)]
    rest = [None] * (1 + len(options))
    return [([placement], [placement, *rest]) for placement in (Replicate(), *others)]


# 2.13.0: PyTorch's rule for scans takes a negative dimension for none of the tensor's.
def scans(rules: Mapping[OpOverload, Any]) -> list[OpOverload]:
    """The ops for which PyTorch has the rule of `cumsum`."""
    return [op for op, rule in rules.items() if rule is rules[aten.cumsum.default]]


def select_gradient(gradient: Any, sizes: Sequence[int], dim: int, index: int) -> list[Sharding]:
    """The ways to split the gradient of a selection: whole, as a sum over chips, or along another dimension."""
    others = [each for each in range(len(sizes)) if each != dim % len(sizes)]
    pairs: list[tuple[Placement, Placement]] = [(Replicate(), Replicate()), (Partial(), Partial())]
    pairs += [(Shard(before), Shard(others[before])) for before in _even(gradient)]
    return [([after], [before, None, None, None]) for before, after in pairs]


# PyTorch has handlers for these beside its rules. They fail if both axes of a mesh split a tensor.
WITHOUT_HANDLER = [aten.argmax.default, aten.argmin.default]
_SHIFTS = {aten.__lshift__: aten.bitwise_left_shift, aten.__rshift__: aten.bitwise_right_shift}


# 2.13.0: DTensor takes an op whose name ends with an underscore for one in place, and returns its operand.
@handles(*(getattr(packet, name) for packet in _SHIFTS for name in ("Tensor", "Scalar")))
def _shift(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DTensor:
    return _SHIFTS[op.overloadpacket](*args)


# 2.13.0: DTensor's result is a sum of the chips' booleans, which each chip converts before they are added: True is 2.0.
@handles(aten.any.default, aten.any.dim, aten.any.dims)
def _any(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    a = named(op, args, kwargs)
    x, dim = a["self"], a.get("dim")
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    reduce = torch.amax if x.numel() else torch.sum  # amax needs an element
    flags = (x != 0).to(torch.int32)
    found = reduce(flags, dims, keepdim=bool(a.get("keepdim"))) if dims else flags
    assert isinstance(found, DTensor)
    whole = [Replicate() if p.is_partial() else p for p in found.placements]
    return found.redistribute(x.device_mesh, whole).to(torch.uint8 if x.dtype == torch.uint8 else torch.bool)


# 2.13.0: without it `x.sum().item()` of a split tensor would be an error: each chip would give its own part of the sum.
@handles(aten._local_scalar_dense.default)
def number(op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The Python number of a tensor of one element, which all chips have after an exchange."""
    (x,) = args
    whole = local(x, x.device_mesh, [Replicate()] * x.device_mesh.ndim)
    first, *_ = parts_of(whole) or [whole]
    return first.item()

"""Random numbers of DTensors, and new DTensors, while this process has a mesh of chips.

The numbers of the whole tensor are drawn, as one chip would draw them, and each chip takes its part. So they do not
depend on how a tensor is split. In a program, each chip computes its part only: `dynamo/own_parts.py`.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.device_mesh import (
    DeviceMesh,
    _mesh_resources,  # 2.13.0: for new_of_a_mesh
)
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from tt_torch.torch_private.chips import RUNNING, of_parts, require_equal_parts
from tt_torch.torch_private.marks import part_of_graphs
from tt_torch.torch_private.ops import OpOverload, schema
from tt_torch.torch_private.sharded_norms import as_dtensor, handles, local, named
from tt_torch.torch_private.tensors import FakeTensor

aten = torch.ops.aten


def _overloads(names: str) -> list[OpOverload]:
    packets = [getattr(aten, name) for name in names.split()]
    of_each = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return [op for op in of_each if not any(argument.is_out for argument in schema(op).arguments)]


# These read the form of their first argument only, or write all of its elements.
OF_A_FORM = [
    aten.bernoulli.p,
    aten.bernoulli_.float,
    *_overloads("cauchy cauchy_ exponential exponential_ geometric geometric_ log_normal log_normal_ normal_"),
    *_overloads("normal_functional rand_like randn_like randint_like random random_ uniform uniform_"),
]
# These read values, such as probabilities. They get whole tensors.
OF_VALUES = [
    aten.bernoulli.default,
    aten.bernoulli.Tensor,
    aten.bernoulli_.Tensor,
    aten.normal.Tensor_Tensor,
    aten.normal.Tensor_float,
    aten.normal.float_Tensor,
    *_overloads("_standard_gamma binomial multinomial poisson"),
]


def _placements(x: DTensor) -> list[Placement]:
    """The split of numbers that belong to the elements of `x`. A sum over chips has no elements to split."""
    return [Replicate() if p.is_partial() else p for p in x.placements]


def _of_form(x: DTensor) -> torch.Tensor:
    """A plain tensor, which all chips have, with the form of the whole DTensor and without values."""
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _require_same(drawn: torch.Tensor) -> None:
    """Raises MeshError if another process that shares the mesh has drawn other numbers."""
    if not isinstance(drawn, FakeTensor):  # a graph that is captured has no values
        RUNNING[-1].require_same([drawn], "the random numbers of a DTensor, which follow from torch.manual_seed,")


def _split(drawn: torch.Tensor, like: DTensor) -> DTensor:
    _require_same(drawn)
    placements = _placements(like)
    return DTensor.from_local(local(drawn, like.device_mesh, placements), like.device_mesh, placements, run_check=False)


def _written(x: DTensor, drawn: torch.Tensor) -> DTensor:
    _require_same(drawn)
    mesh, placements = x.device_mesh, x.placements
    x.copy_(DTensor.from_local(local(drawn, mesh, placements), mesh, placements, run_check=False))
    return x


@handles(*OF_A_FORM)
def _of_a_form(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DTensor:
    x, *rest = args
    drawn = op(_of_form(x), *rest, **kwargs)
    return _written(x, drawn) if schema(op).is_mutable else _split(drawn, x)


@handles(*OF_VALUES)
def _of_values(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DTensor:
    like = next(x for x in args if isinstance(x, DTensor))
    mesh = like.device_mesh
    everywhere = [Replicate()] * mesh.ndim
    given = [local(x, mesh, everywhere) if isinstance(x, torch.Tensor) else x for x in args]
    if schema(op).is_mutable:
        return _written(as_dtensor(args[0], mesh), op(given[0].clone(), *given[1:], **kwargs))
    drawn = op(*given, **kwargs)
    return _split(drawn, like) if drawn.shape == like.shape else as_dtensor(drawn, mesh)


@handles(aten.native_dropout.default)
def _dropout(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.Tensor, DTensor]:
    a = named(op, args, kwargs)
    x: DTensor = a["input"]
    x = x.redistribute(x.device_mesh, _placements(x))
    _, kept = op(_of_form(x), a["p"], a["train"])
    mask, factor = _split(kept, x), 1 / (1 - a["p"]) if a["p"] < 1 else 0.0
    if a["train"] is False:
        return x.clone(), mask
    own, mesh = x.to_local(), x.device_mesh
    result = torch.where(mask.to_local(), own * factor, 0)
    return DTensor.from_local(result, mesh, x.placements, run_check=False), mask


# 2.13.0: without it `torch.distributed.tensor.rand` and `randn` would ask the device for a kind of state that it lacks,
# and a write to `zeros` and others that are split would be an error, because all chips would share the memory of their
# parts. Dynamo would fail in these functions, because it does not know numbers with a value per chip.
def new_of_a_mesh(
    init_op: Any, size: Sequence[int], device_mesh: Any = None, placements: Any = None, **named: Any
) -> torch.Tensor:
    """Makes the DTensors of `torch.distributed.tensor.zeros` and others. Random ones are drawn as the ops above do."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    placements = placements or [Replicate()] * mesh.ndim
    shape, traced = _part_of(size, mesh, placements), torch.compiler.is_compiling()
    requires_grad = named.pop("requires_grad")
    given = {**named, "device": mesh.device_type}
    if init_op in (torch.rand, torch.randn):
        drawn = init_op(size, **given)
        if not traced:
            _require_same(drawn)
        whole = DTensor.from_local(drawn, mesh, [Replicate()] * mesh.ndim, run_check=False)
        return whole.redistribute(mesh, placements).requires_grad_(requires_grad)
    if traced or shape == list(size):
        own = init_op(shape, **given)
    else:
        own = of_parts([init_op(shape, **given) for _ in RUNNING[-1].ranks])
    return DTensor.from_local(own, mesh, placements, run_check=False).requires_grad_(requires_grad)


part_of_graphs(new_of_a_mesh)


def _part_of(size: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> list[int]:
    """The shape of a chip's part. Raises ShardingError if the parts have several sizes."""
    shape = list(size)
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            require_equal_parts(shape, placement.dim, mesh.size(axis))
            shape[placement.dim] //= mesh.size(axis)
    return shape

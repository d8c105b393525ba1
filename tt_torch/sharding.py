"""Shardings of single tensors over a mesh of chips, with tt-xla's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard, distribute_tensor

from tt_torch.errors import ShardingError

Axis: TypeAlias = str | int  # a dimension of the mesh: its name or its position


def mark_sharding(tensor: torch.Tensor, mesh: DeviceMesh, spec: Sequence[Axis | Sequence[Axis] | None]) -> torch.Tensor:
    """A DTensor of a tensor that is split over the chips of a mesh. The DTensor of a parameter is a parameter:

        model.up.weight = tt_torch.mark_sharding(model.up.weight, mesh, ("tp", None))

    `spec` has an entry for each dimension of the tensor. It is the axis of the mesh that splits the dimension, a
    sequence of axes, or None. In a sequence, each axis splits the parts that the axis before it gives. Plain tensors
    beside a DTensor are on each chip.
    Raises ShardingError if `spec` does not fit the tensor and the mesh.
    """
    placements = placements_of(tuple(tensor.shape), mesh, spec)
    split = distribute_tensor(_whole(tensor.detach()), mesh, placements).requires_grad_(tensor.requires_grad)
    return torch.nn.Parameter(split, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else split


def sharding_constraint(
    tensor: torch.Tensor, mesh: DeviceMesh, spec: Sequence[Axis | Sequence[Axis] | None]
) -> torch.Tensor:
    """The same tensor with this sharding, inside of a model. `spec` and errors are as in `mark_sharding`."""
    placements = placements_of(tuple(tensor.shape), mesh, spec)
    if not isinstance(tensor, DTensor):
        tensor = DTensor.from_local(tensor, mesh, [Replicate()] * mesh.ndim, run_check=False)
    return tensor.redistribute(mesh, placements)


def placements_of(
    shape: tuple[int, ...], mesh: DeviceMesh, spec: Sequence[Axis | Sequence[Axis] | None]
) -> list[Placement]:
    """DTensor's placements, one for each dimension of the mesh. Raises ShardingError as `mark_sharding` does."""
    if len(spec) != len(shape):
        raise ShardingError(
            shape, f"the spec {tuple(spec)} has {len(spec)} entries, and the tensor {len(shape)} dimensions"
        )
    names = mesh.mesh_dim_names or ()
    found: dict[int, Placement] = {}
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, (str, int)) else entry
        positions = [names.index(a) if a in names else a for a in axes]
        if not all(isinstance(p, int) and 0 <= p < mesh.ndim for p in positions):
            raise ShardingError(shape, f"{entry!r} is no axis of the mesh {names or tuple(range(mesh.ndim))}")
        if any(p in found for p in positions) or positions != sorted(set(positions), key=int):
            raise ShardingError(shape, f"in {tuple(spec)}, each axis of the mesh stands once, and they are in order")
        found |= dict.fromkeys(map(int, positions), Shard(dim))
    return [found.get(position, Replicate()) for position in range(mesh.ndim)]


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

"""The parts that the chips of a mesh have of a weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard  # 2.13.0: Transformers splits joined weights with it

from tt_torch.torch_private.chips import hosts, of_parts, parts_of, require_equal_parts
from tt_torch.torch_private.released import defer_memory


def parts_of_chips(x: DTensor) -> list[torch.Tensor]:
    """The part of each chip of this process, or the only tensor, if all chips have it."""
    return parts_of(x._local_tensor) or [x._local_tensor]


def sharding_of(x: DTensor) -> tuple[int | None, int | None] | None:
    """The dimensions that the rows and the columns of the mesh split; None if they split the tensor in another way."""
    mesh, root, found = x.device_mesh, x.device_mesh._get_root_mesh(), list[int | None]()
    axes = _axes(mesh)
    if axes is None or axes != sorted(axes) or root.ndim > 2 or not all(map(_is_plain, x.placements)):
        return None
    for axis in range(root.ndim):
        placement = x.placements[axes.index(axis)] if axis in axes else None
        found.append(placement.dim if isinstance(placement, Shard) else None)
    rows, columns = found if len(found) == 2 else (None, *found)
    return rows, columns


def deferred(whole: torch.Tensor, form: DTensor, name: str) -> torch.nn.Parameter:
    """A parameter with the placements of `form`, whose parts are read from `whole` when a program first needs them.

    In two cases the parts are copies, as `distribute_tensor` makes them: the mesh is a part of a mesh and has no name
    there, or a placement is no even split. Raises ShardingError for parts of several sizes.
    """
    views = parts_by_placement(whole, form, form.placements) if all(map(_is_plain, form.placements)) else None
    if views is None:
        return torch.nn.Parameter(distributed(whole, form), form.requires_grad)
    nothing = torch.full((), math.nan, dtype=whole.dtype, device=form.device_mesh.device_type)
    blank = [nothing.expand(view.shape) for view in views]
    local = of_parts(blank) if isinstance(parts_of(form._local_tensor), list) else blank[0]
    made: Any = torch.nn.Parameter(DTensor(local, form._spec, requires_grad=False), form.requires_grad)
    for part, view in zip(parts_of_chips(made), views, strict=True):
        defer_memory(part, name, view)
    return made


def distributed(whole: torch.Tensor, form: DTensor) -> DTensor:
    """A DTensor with the placements of `form` and the values of `whole`."""
    return distribute_tensor(whole, form.device_mesh, form.placements)


def parts_by_placement(
    whole: torch.Tensor, form: DTensor, placements: Sequence[Placement]
) -> list[torch.Tensor] | None:
    """The parts of a tensor, one for each chip of this process, or one if all chips of the mesh of `form` have all of
    it. They are views if the placements are even splits. None if the mesh is a part of a mesh and has no name there."""
    root, axes = form.device_mesh._get_root_mesh(), _axes(form.device_mesh)
    if axes is None:
        return None
    if all(placement.is_replicate() for placement in placements):
        return [whole]
    own, splits = hosts(), list(zip(axes, placements, strict=True))
    places = {int(rank): place for place, rank in np.ndenumerate(root.mesh.numpy())}
    return [_part(whole, places[rank], splits, root.shape) for rank in (own.own if own else sorted(places))]


def _axes(mesh: DeviceMesh) -> list[int] | None:
    """The axes of the whole mesh that a mesh has; None if it has others."""
    root = mesh._get_root_mesh()
    names, known = mesh.mesh_dim_names or (), root.mesh_dim_names or ()
    axes = list(range(root.ndim)) if mesh == root else [known.index(name) for name in names if name in known]
    return axes if len(axes) == mesh.ndim else None


def _is_plain(placement: Placement) -> bool:
    return type(placement) is Shard or placement.is_replicate()


def _part(
    whole: torch.Tensor, place: Sequence[int], splits: Sequence[tuple[int, Placement]], mesh: Sequence[int]
) -> torch.Tensor:
    """The part of the chip at a place of the mesh. `splits` has axes of the mesh, each with the placement along it."""
    for axis, placement in splits:
        if isinstance(placement, _StridedShard):
            groups, dim = int(placement.split_factor), placement.dim
            require_equal_parts(whole.shape, dim, groups * mesh[axis])
            whole = torch.cat([group.chunk(mesh[axis], dim)[place[axis]] for group in whole.chunk(groups, dim)], dim)
        elif isinstance(placement, Shard):
            require_equal_parts(whole.shape, placement.dim, mesh[axis])
            whole = whole.chunk(mesh[axis], placement.dim)[place[axis]]
    return whole

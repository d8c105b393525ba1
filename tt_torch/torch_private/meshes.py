"""Meshes of chips that one process has, or that the processes of a launcher share."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist
from torch.distributed import device_mesh
from torch.distributed.device_mesh import DeviceMesh

from tt_torch.errors import MeshError
from tt_torch.torch_private.distributed import one_process

_LEAVE_OUT = "which gives each process one chip; leave it out: init_device_mesh finds the other processes by itself"
_MOST_CHIPS = 64  # runtime/src/device.cpp opens no more of them


# 2.13.0: without it `init_device_mesh("tt", shape)` would need a launcher or variables of the environment.
def meshes_of_one_process() -> None:
    """Lets DeviceMesh("tt", ...) have the chips of this process if nobody has started `torch.distributed`.

    If a launcher has started fewer processes than the mesh has chips, each of them has a part of the chips.
    """
    before = DeviceMesh._setup_world_group_and_device

    def _setup_world_group_and_device(self: Any) -> Any:
        chips, processes = self._layout.numel(), int(os.environ.get("WORLD_SIZE", "1"))
        of_processes = dist.is_initialized() or ("RANK" in os.environ and chips <= processes)
        if self._device_type == "tt" and self._root_mesh is None and (one_process() or not of_processes):
            _require_all_chips_in_order(self, one_process() and dist.get_world_size())
        if self._device_type == "tt" and not dist.is_initialized():
            from tt_torch.torch_private import hosts  # they import much
            from tt_torch.torch_private import one_process as door

            if "RANK" not in os.environ:
                door.begin(chips)
            elif chips > processes:
                door.begin_with_others(self._layout.top_level_sizes)
            elif chips == processes > 1:
                hosts.compare(self._layout.top_level_sizes)
        elif self._device_type == "tt" and not one_process() and chips > dist.get_world_size():
            raise MeshError(f"a mesh of {chips} chips after init_process_group, {_LEAVE_OUT}")
        if one_process() and self._layout.numel() <= dist.get_world_size():
            if self._device_type == "tt" and chips == dist.get_world_size():
                one_process().running().mesh = self
            return dist.group.WORLD
        return before(self)  # type: ignore[no-untyped-call]

    DeviceMesh._setup_world_group_and_device = _setup_world_group_and_device  # type: ignore[method-assign]
    checked = _of_possible_sizes(device_mesh.init_device_mesh)
    for module in (device_mesh, dist):
        vars(module)["init_device_mesh"] = checked


def _of_possible_sizes(before: Callable[..., DeviceMesh]) -> Callable[..., DeviceMesh]:
    """`init_device_mesh` that raises MeshError for sizes of which PyTorch computes before it looks at them."""

    @functools.wraps(before)
    def init_device_mesh(device_type: str, mesh_shape: Any, *args: Any, **options: Any) -> DeviceMesh:
        if device_type == "tt" and not _are_sizes(mesh_shape):
            wanted = "positive numbers of type int, such as (2, 4)"
            raise MeshError(f"init_device_mesh takes {wanted}, and not {mesh_shape!r}")
        if device_type == "tt" and math.prod(mesh_shape) > _MOST_CHIPS:
            raise MeshError(f"a mesh has at most {_MOST_CHIPS} chips, and {mesh_shape!r} has {math.prod(mesh_shape)}")
        return before(device_type, mesh_shape, *args, **options)

    return init_device_mesh


def _are_sizes(shape: Any) -> bool:
    """PyTorch's layouts take no other kinds of integers, such as those of NumPy."""
    return isinstance(shape, Sequence) and len(shape) > 0 and all(type(size) is int and size > 0 for size in shape)


def _require_all_chips_in_order(mesh: DeviceMesh, there: int | None) -> None:
    """Raises MeshError for a mesh that is not all chips of this process, or has them in another order.

    PyTorch's collectives take the parts of a mesh such as [1, 0] in the order 0, 1, which gives wrong values.
    """
    numbers = mesh.mesh.flatten().tolist()
    if there and len(numbers) != there:
        end = "torch.distributed.destroy_process_group() ends the earlier mesh"
        raise MeshError(
            f"a mesh of {len(numbers)} chips, while there is one of {there}; {end}, and its parts are in mesh[name]"
        )
    if not mesh.ndim or numbers != list(range(len(numbers))):
        raise MeshError(f"a mesh has its chips in the order 0, 1, 2, ..., and not {mesh.mesh.tolist()}")

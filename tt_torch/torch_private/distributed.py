"""Process groups of `torch.distributed` that are made by hand, and meshes of chips that one process has."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (
    FakeProcessGroup,  # 2.13.0: without it a mesh would need a process per chip
    _resolve_process_group,  # 2.13.0: without it graphs of DTensor, which name groups, could not be compiled
)
from torch.distributed import ProcessGroup, ProcessGroupGloo
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import Store

from tt_torch.errors import MeshError
from tt_torch.torch_private.modes import without_modes

_ONE_PROCESS = "tt_torch.torch_private.one_process"  # imports much, so this file only names it
_LEAVE_OUT = "which gives each process one chip; leave it out: init_device_mesh finds the other processes by itself"
_HOSTS = "tt_torch.torch_private.hosts"  # imports this file


# 2.13.0: the public way to make a group, `new_group`, makes it with all processes together.
def give_gloo(group: ProcessGroup, gloo: ProcessGroupGloo) -> None:
    """Makes gloo the backend of a group for tensors on the CPU."""
    kind = ProcessGroup.BackendType.GLOO
    group._set_default_backend(kind)
    group._register_backend(torch.device("cpu"), kind, gloo)


def gloo_of(store: Store, rank: int, size: int, timeout: timedelta) -> ProcessGroupGloo:
    gloo = ProcessGroupGloo(store, rank, size, timeout=timeout)
    gloo._set_sequence_number_for_group()
    return gloo


def one_process() -> Any:
    """The module `one_process` while this process has all chips of a mesh, otherwise None."""
    module = sys.modules.get(_ONE_PROCESS)
    return module if module and module.running() else None


def ranks_of(group: Any) -> list[int]:
    """The ranks of a process group, or of the group with this name."""
    found = _resolve_process_group(group) if isinstance(group, str) else group  # type: ignore[arg-type]
    return dist.get_process_group_ranks(found)


# The group of a mesh and a dimension may be gone, because DTensor keeps what it has planned for equal meshes.
def ranks_along(mesh: DeviceMesh, dim: int) -> list[int]:
    """The chips of the line of a mesh along a dimension in which the first chip of the mesh is."""
    with without_modes():  # a graph may be traced with fake tensors
        return mesh.mesh.movedim(dim, -1).reshape(-1, mesh.size(dim))[0].tolist()


def of_all_chips(x: torch.Tensor) -> torch.Tensor:
    """The values of all chips in a new first dimension, for a tensor with a value per chip. Others stay as they are."""
    module = sys.modules.get(_ONE_PROCESS)
    parts = module.parts_of(x) if module else None
    return x if parts is None else torch.stack(parts)


# 2.13.0: without it a compiled function would return PyTorch's stand-in for a DeviceMesh.
def real_object(value: Any) -> Any:
    """The object for which a traced graph has a stand-in; everything else is returned as it is."""
    return getattr(value, "real_obj", value)


def group_of_one_process(rank: int, size: int) -> FakeProcessGroup:
    """A group for chips of this process. DeviceMesh asks it for ranks; it exchanges nothing by itself."""
    return FakeProcessGroup._create_internal(rank, size)


# 2.13.0: without it `init_device_mesh("tt", shape)` would need a launcher or variables of the environment.
def meshes_of_one_process() -> None:
    """Lets DeviceMesh("tt", ...) have the chips of this process if nobody has started `torch.distributed`.

    If a launcher has started fewer processes than the mesh has chips, each of them has a part of the chips.
    """
    before = DeviceMesh._setup_world_group_and_device

    def _setup_world_group_and_device(self: Any) -> Any:
        chips, processes = self._layout.numel(), int(os.environ.get("WORLD_SIZE", "1"))
        if self._device_type == "tt" and not dist.is_initialized():
            if "RANK" not in os.environ:
                import_module(_ONE_PROCESS).begin(chips)
            elif chips > processes:
                import_module(_ONE_PROCESS).begin_with_others(self._layout.top_level_sizes)
            elif chips == processes > 1:
                import_module(_HOSTS).compare(self._layout.top_level_sizes)
        elif self._device_type == "tt" and not one_process() and chips > dist.get_world_size():
            raise MeshError(f"a mesh of {chips} chips after init_process_group, {_LEAVE_OUT}")
        if one_process() and self._layout.numel() <= dist.get_world_size():
            return dist.group.WORLD
        return before(self)  # type: ignore[no-untyped-call]

    DeviceMesh._setup_world_group_and_device = _setup_world_group_and_device  # type: ignore[method-assign]

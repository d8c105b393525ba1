"""Process groups of `torch.distributed` that are made by hand, and facts about meshes of one process."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType
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

from tt_torch.torch_private.modes import without_modes

_one_process: list[ModuleType] = []  # the module of this name, after something has imported it; it imports much


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


def set_one_process(module: ModuleType) -> None:
    """Makes `one_process` known to the functions below. The module calls this itself when it is imported."""
    _one_process.append(module)


def one_process() -> Any:
    """The module `one_process` while this process has all chips of a mesh, otherwise None."""
    return next((module for module in _one_process if module.running()), None)


def ranks_of(group: Any) -> list[int]:
    """The ranks of a process group, or of the group with this name."""
    found = _resolve_process_group(group) if isinstance(group, str) else group  # type: ignore[arg-type]
    return dist.get_process_group_ranks(found)


# The group of a mesh and a dimension may be gone, because DTensor keeps what it has planned for equal meshes.
def ranks_along(mesh: DeviceMesh, dim: int) -> list[int]:
    """The chips of one line of a mesh along a dimension: the line that has the first chip of the mesh."""
    with without_modes():  # a graph may be traced with fake tensors
        return mesh.mesh.movedim(dim, -1).reshape(-1, mesh.size(dim))[0].tolist()


def of_all_chips(x: torch.Tensor) -> torch.Tensor:
    """The values of all chips in a new first dimension, for a tensor with a value per chip. Others stay as they are."""
    parts = next((module.parts_of(x) for module in _one_process), None)
    return x if parts is None else torch.stack(parts)


# 2.13.0: without it a compiled function would return PyTorch's stand-in for a DeviceMesh.
def real_object(value: Any) -> Any:
    """The object for which a traced graph has a stand-in; everything else is returned as it is."""
    return getattr(value, "real_obj", value)


def group_of_one_process(rank: int, size: int) -> FakeProcessGroup:
    """A group for chips of this process. DeviceMesh asks it for ranks; it exchanges nothing by itself."""
    return FakeProcessGroup._create_internal(rank, size)

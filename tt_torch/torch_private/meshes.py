"""Meshes of chips that one process has, or that the processes of a launcher share."""

from __future__ import annotations

import os
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from tt_torch.errors import MeshError
from tt_torch.torch_private.distributed import one_process

_LEAVE_OUT = "which gives each process one chip; leave it out: init_device_mesh finds the other processes by itself"


# 2.13.0: without it `init_device_mesh("tt", shape)` would need a launcher or variables of the environment.
def meshes_of_one_process() -> None:
    """Lets DeviceMesh("tt", ...) have the chips of this process if nobody has started `torch.distributed`.

    If a launcher has started fewer processes than the mesh has chips, each of them has a part of the chips.
    """
    before = DeviceMesh._setup_world_group_and_device

    def _setup_world_group_and_device(self: Any) -> Any:
        chips, processes = self._layout.numel(), int(os.environ.get("WORLD_SIZE", "1"))
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

"""The backend "tt" of `torch.distributed`. It takes tensors on device "tt" and on the CPU.

gloo runs its collectives. Tensors on "tt" are copied to the CPU first, and written tensors are copied back.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store

from tt_torch.torch_private.distributed import (
    give_gloo,
    gloo_of,
    group_of_one_process,
    one_process,
)
from tt_torch.torch_private.marks import never_traced
from tt_torch.torch_private.meshes import meshes_of_one_process
from tt_torch.torch_private.trees import tree_leaves, tree_map

# The collectives of a ProcessGroup. They write the tensors of their first argument, except `send`, which writes none.
COLLECTIVES = (
    "all_gather_single", "all_gather_single_coalesced", "all_to_all_single", "allgather", "allgather_coalesced",
    "allreduce", "allreduce_coalesced", "alltoall", "broadcast", "gather", "recv", "recv_anysource", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_single_coalesced", "scatter", "send",
)  # fmt: skip
NO_TIMEOUT = timedelta(0)


class StagedWork(dist.Work):
    """A collective that runs on copies on the CPU. `wait` copies what it has written to the tensors on the device."""

    def __init__(self, work: dist.Work, written: list[torch.Tensor], copies: list[torch.Tensor]) -> None:
        super().__init__()
        self.work, self.written, self.copies = work, written, copies

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        done = self.work.wait(timeout)
        for tensor, copy in zip(self.written, self.copies, strict=True):
            if copy is not tensor:
                tensor.detach().copy_(copy)  # autograd does not record a collective
        self.copies = self.written
        return done

    def is_completed(self) -> bool:
        return self.work.is_completed()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Waits for the collective, and returns a complete future with the written tensors."""
        self.wait()
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        future.set_result(self.written)
        return future


class StagedGroup(dist.ProcessGroup):
    """A process group whose tensors may be on the CPU or on "tt"."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]  # only this form makes a base of a Python class
        gloo = gloo_of(store, rank, size, timeout)
        give_gloo(self, gloo)
        self.on_host = dist.ProcessGroup(store, rank, size)
        give_gloo(self.on_host, gloo)

    def barrier(self, *args: Any, **kwargs: Any) -> dist.Work:
        return self.on_host.barrier(*args, **kwargs)


def staged(name: str) -> Callable[..., dist.Work]:
    """The collective of this name, for tensors on the CPU and on "tt"."""

    @never_traced("it waits for other processes")
    def run(self: StagedGroup, *args: Any, **kwargs: Any) -> dist.Work:
        host = tree_map(on_host, args)
        work = getattr(self.on_host, name)(*host, **kwargs)
        written = 0 if name == "send" else 1
        return StagedWork(work, tree_leaves(args[:written]), tree_leaves(host[:written]))

    return run


def on_host(value: Any) -> Any:
    """A copy on the CPU of a tensor on "tt". Every other value is returned unchanged."""
    is_on_device = isinstance(value, torch.Tensor) and value.device.type == "tt"
    return value.detach().cpu() if is_on_device else value


for collective in COLLECTIVES:
    setattr(StagedGroup, collective, staged(collective))


def register() -> None:
    """Registers the backend "tt", which `init_process_group()` also uses if it gets no name. Enables meshes of chips
    that this process has."""
    dist.Backend.register_backend("tt", _group, devices=["tt", "cpu"])
    meshes_of_one_process()


def _group(store: Store, rank: int, size: int, timeout: timedelta) -> Any:
    return group_of_one_process(rank, size) if one_process() else StagedGroup(store, rank, size, timeout)

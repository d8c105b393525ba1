"""Process groups of `torch.distributed` that are made by hand."""

from __future__ import annotations

from datetime import timedelta

import torch
from torch.distributed import ProcessGroup, ProcessGroupGloo
from torch.distributed.distributed_c10d import Store


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

"""Ops that call graphs, while this process has a mesh: they run for plain tensors, and are refused for DTensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

FORMS: dict[str, Callable[[Any], Any]] = {
    "while_loop": lambda x: while_loop(lambda y: y.sum() < 100, lambda y: (y * 2,), (x,))[0],
    "scan": lambda x: scan(lambda c, y: (c + y, c * 1), torch.zeros_like(x[0]), x)[1],
    "cond": lambda x: torch.cond(x.sum() > 1, lambda x: x + 1, lambda x: x * 2, (x,)),
}


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("name", FORMS)
def test_ops_that_call_graphs(name: str) -> None:
    mesh, x, run = init_device_mesh("tt", (4,)), torch.rand(8, 4), torch.compile(FORMS[name], backend="tt")
    for placement in (Shard(0), Replicate()):
        split = distribute_tensor(x, mesh, [placement])
        with pytest.raises(Exception, match=rf"MeshError: {name} calls graphs(?s:.)*test_sharded_graphs.py"):
            run(split)
        torch.testing.assert_close(run(split.full_tensor()).cpu(), FORMS[name](x))

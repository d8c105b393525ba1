"""Meshes that cannot be: each is an error of ours, and the next mesh works."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed import device_mesh
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Shard, distribute_tensor

from tt_torch.errors import MeshError


@pytest.fixture(autouse=True)
def the_next_mesh_works():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()
    x = torch.randn(4, 4)
    split = distribute_tensor(x, dist.init_device_mesh("tt", (2, 2)), [Shard(0), Shard(1)])
    assert torch.equal(split.full_tensor().cpu(), x)
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "shape", [(), (0,), (-1, 2), (2, 0), ("2",), "24", (2.0,), (True,), (np.int64(2),), 4, None], ids=str
)
def test_sizes_are_positive_integers(shape):
    for call in (dist.init_device_mesh, device_mesh.init_device_mesh):
        with pytest.raises(MeshError, match="takes positive numbers of type int"):
            call("tt", shape)
    assert not dist.is_initialized()


# PyTorch would make a list of all chips: 2^40 of them do not fit into memory, and 2^26 of them take minutes.
@pytest.mark.parametrize("shape", [(65,), (2**26,), (2**40,), (2**40, 2**40)], ids=str)
def test_a_mesh_has_at_most_64_chips(shape):
    with pytest.raises(MeshError, match="at most 64 chips"):
        dist.init_device_mesh("tt", shape)
    assert not dist.is_initialized()


# PyTorch's collectives take the parts of [1, 0] in the order 0, 1. So such a mesh gave wrong values.
@pytest.mark.parametrize(
    "chips", [[1, 0], [0, 0], [0, 2], [-1, 0], [1], 3, [[3, 1], [2, 0]], [[0, 2], [1, 3]]], ids=str
)
def test_chips_are_in_order(chips):
    with pytest.raises(MeshError, match="has its chips in the order 0, 1, 2"):
        DeviceMesh("tt", chips)
    assert not dist.is_initialized()


def test_there_is_one_mesh_at_a_time():
    first = dist.init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))
    for shape in (1,), (4,), (2, 2), (16,):
        with pytest.raises(MeshError, match=r"while there is one of 8; torch.distributed.destroy_process_group\(\)"):
            dist.init_device_mesh("tt", shape)
    same = [
        dist.init_device_mesh("tt", (4, 2)),
        DeviceMesh("tt", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        first["dp", "tp"]._flatten(),
    ]
    assert [mesh.size() for mesh in same] == [8, 8, 8]

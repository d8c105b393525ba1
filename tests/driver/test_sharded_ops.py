"""Ops of DTensors for which PyTorch gives wrong numbers or an error."""

import itertools

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

SPLITS = list(itertools.product([Replicate(), Shard(0), Shard(1), Shard(2)], repeat=2))
ALONG_DIMENSIONS = {
    "sums": lambda x: x.cumsum(-1),
    "products": lambda x: x.cumprod(-3, dtype=torch.float64),
    "sums of powers": lambda x: x.logcumsumexp(-2),
    "shifts": lambda x: ((x * 9).clamp(-9, 9).int() << 3) >> (x > 0).int(),
}


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def whole(x):
    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu()


def with_gradient(function, x):
    """The result of a function, and the gradient of its square."""
    x = x.detach().requires_grad_()
    result = function(x)
    if result.requires_grad:
        (result * result).sum().backward()
    return whole(result), x.grad if x.grad is None else whole(x.grad)


@pytest.mark.parametrize("name", ALONG_DIMENSIONS)
def test_ops_along_dimensions_that_are_split(name):
    function, x = ALONG_DIMENSIONS[name], torch.randn(8, 4, 8)
    expected, mesh = with_gradient(function, x), init_device_mesh("tt", (2, 2))
    for split in SPLITS:
        found = with_gradient(function, distribute_tensor(x, mesh, split))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, msg=lambda text, s=split: f"{s}: {text}")
    found = with_gradient(torch.compile(function, backend="tt"), distribute_tensor(x, mesh, [Shard(0), Shard(2)]))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_the_whole_tensor_of_nan():
    x = torch.tensor([1.0, torch.nan, torch.nan, 2.0])
    mesh = init_device_mesh("tt", (2,))
    for split in (Replicate(), Shard(0)):
        torch.testing.assert_close(whole(distribute_tensor(x, mesh, [split])), x, equal_nan=True)

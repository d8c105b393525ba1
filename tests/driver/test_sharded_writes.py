"""Ops that write to DTensors in place: the values get to the tensor, and it stays split as it was."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

N = 8
WRITES: dict[str, Callable[..., torch.Tensor]] = {
    "add_": lambda x, y, at, row, dim: x.add_(y),
    "mul_ by a row": lambda x, y, at, row, dim: x.mul_(y[0]),
    "scatter_": lambda x, y, at, row, dim: x.scatter_(dim, at, y),
    "scatter_ a number": lambda x, y, at, row, dim: x.scatter_(dim, at, 3.0),
    "scatter_add_": lambda x, y, at, row, dim: x.scatter_add_(dim, at, y),
    "scatter_reduce_": lambda x, y, at, row, dim: x.scatter_reduce_(dim, at, y, "amax"),
    "index_add_": lambda x, y, at, row, dim: x.index_add_(dim, row, y),
    "index_copy_": lambda x, y, at, row, dim: x.index_copy_(dim, row, y),
    "index_fill_": lambda x, y, at, row, dim: x.index_fill_(dim, row[:2], 1.5),
    "index_reduce_": lambda x, y, at, row, dim: x.index_reduce_(dim, row, y, "prod"),
    "put_": lambda x, y, at, row, dim: x.put_(row, y[0]),
    "cumsum_": lambda x, y, at, row, dim: x.cumsum_(dim),
    "products so far": lambda x, y, at, row, dim: x.cumprod_(dim),
    "floor_divide_": lambda x, y, at, row, dim: x.floor_divide_(y),
    "masked_fill_": lambda x, y, at, row, dim: x.masked_fill_(y > 0, 2.0),
    "masked_scatter_": lambda x, y, at, row, dim: x.masked_scatter_(y > 0, y),
    "eq_": lambda x, y, at, row, dim: x.eq_(y),
    "addmm_": lambda x, y, at, row, dim: x.addmm_(y, y),
    "tril_": lambda x, y, at, row, dim: x.tril_(1),
    "renorm_": lambda x, y, at, row, dim: x.renorm_(2, dim, 1.0),
    "to a sum": lambda x, y, at, row, dim: (x @ y).add_(1).mul_(y),
}


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def split(draw: random.Random, x: torch.Tensor, mesh: DeviceMesh) -> DTensor:
    """The tensor, split at random. Each dimension of it has `N` elements, which all axes together divide."""
    placements = [draw.choice([Replicate(), *map(Shard, range(x.dim()))]) for _ in range(mesh.ndim)]
    return distribute_tensor(x.clone(), mesh, placements)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("seed", range(2))
def test_writes_in_place(name: str, seed: int) -> None:
    write, draw = WRITES[name], random.Random(f"{name} {seed}")
    torch.manual_seed(seed)
    for shape, run in (((2, 2), write), ((2, 4), write), ((4,), write), ((2, 2), torch.compile(write, backend="tt"))):
        x, y, dim = torch.randn(N, N), torch.randn(N, N), draw.choice([0, 1, -1])
        at = torch.argsort(torch.rand(N, N), dim)
        row = torch.randperm(N)
        mesh = init_device_mesh("tt", shape)
        given: list[Any] = [split(draw, each, mesh) for each in (x, y, at, row)]
        before, said = given[0].placements, [each.placements for each in given]
        result = run(*given, dim)
        expected = write(x, y, at, row, dim)
        for found, right in ((result, expected), (given[0], x)):
            assert torch.allclose(found.full_tensor().cpu(), right, rtol=1e-4, atol=1e-5, equal_nan=True), said
        assert given[0].placements == before
        dist.destroy_process_group()


def test_what_eager_pytorch_refuses_is_refused() -> None:
    mesh = init_device_mesh("tt", (4,))
    x = distribute_tensor(torch.arange(8), mesh, [Shard(0)])
    with pytest.raises(RuntimeError, match=r"Promotion of int.add/sub_\(float\) in in-place ops"):
        x.add_(torch.rand(8, device="tt"))
    with pytest.raises(RuntimeError, match=r"output with shape .* doesn't match the broadcast shape"):
        x.mul_(torch.ones(2, 8, dtype=torch.int64, device="tt"))
    assert torch.equal(x.full_tensor().cpu(), torch.arange(8))


TO_SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda x, y: x.add_(y),
    "copy_": lambda x, y: x.copy_(y),
    "lerp_": lambda x, y: x.lerp_(y, 0.3),
    "out": lambda x, y: torch.add(x, y, out=x),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", TO_SUMS)
def test_split_values_are_written_to_a_sum_over_the_chips(name: str, compiled: bool) -> None:
    def form(x: Any, y: Any) -> Any:
        return TO_SUMS[name](x @ x, y)

    x, y, mesh = torch.randn(8, 8), torch.randn(8, 8), init_device_mesh("tt", (1, 2))
    for dim in (0, 1):
        columns, part = distribute_tensor(x, mesh, [Shard(0), Shard(1)]), distribute_tensor(y, mesh, [Shard(dim)] * 2)
        found = (torch.compile(form, backend="tt") if compiled else form)(columns, part)
        assert torch.allclose(found.full_tensor().cpu(), form(x, y), rtol=1e-4, atol=1e-5)

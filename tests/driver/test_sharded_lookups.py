"""Look-ups in DTensors that are split along the dimension of the look-up, forward and backward."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

TABLES = list(itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2))
PLACES = ([Replicate(), Replicate()], [Shard(0), Replicate()], [Replicate(), Shard(0)])
LOOKUPS: dict[str, Callable[..., torch.Tensor]] = {
    "a sum of two": lambda w, i, j: F.embedding(i, w) + F.embedding(j, w),
    "two that are joined": lambda w, i, j: torch.cat([F.embedding(i, w), F.embedding(j, w)]),
    "one, then a product": lambda w, i, j: F.embedding(i, w).relu() @ w.t(),
    "elements": lambda w, i, j: torch.gather(w, 0, i.reshape(1, -1)) * 2,
    "rows at an index": lambda w, i, j: w[i] * w[j.flip(0)],
    "columns at an index": lambda w, i, j: w[:, i % 8],
    "elements at two indices": lambda w, i, j: w[None, i, j % 8],
    "elements of rows": lambda w, i, j: torch.gather(w.t(), -1, j.reshape(-1, 1)),
}


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def with_gradient(function: Callable[..., torch.Tensor], w: torch.Tensor, *places: torch.Tensor) -> list[torch.Tensor]:
    w = w.detach().requires_grad_()
    result = function(w, *places)
    result = result.full_tensor() if isinstance(result, DTensor) else result
    result.square().sum().backward()
    assert w.grad is not None
    return [x.detach().cpu() for x in (result, w.grad.full_tensor() if isinstance(w.grad, DTensor) else w.grad)]


@pytest.mark.parametrize("name", LOOKUPS)
def test_lookups(name: str) -> None:
    function, mesh = LOOKUPS[name], init_device_mesh("tt", (2, 2))
    for number, (table, places) in enumerate(itertools.product(TABLES, PLACES)):
        w, i, j = torch.randn(16, 8), torch.randint(16, (8,)), torch.randint(16, (8,))
        expected = with_gradient(function, w, i, j)
        given = distribute_tensor(w, mesh, table), *(distribute_tensor(x, mesh, places) for x in (i, j))
        for run in (function, torch.compile(function, backend="tt")) if number % 4 == 0 else (function,):
            torch.testing.assert_close(
                with_gradient(run, *given), expected, rtol=1e-5, atol=1e-5, msg=lambda m, p=(table, places): f"{p}: {m}"
            )


def test_a_sum_of_lookups_in_another_graph() -> None:
    w, mesh = torch.randn(16, 4), init_device_mesh("tt", (4,))
    split = distribute_tensor(w, mesh, [Shard(0)])
    run = torch.compile(lambda x: x.redistribute(placements=[Replicate()]) * 2, backend="tt")
    for shape in ((8,), (8,), (5,), ()):
        places = torch.randint(16, shape)
        found = F.embedding(places.to("tt"), split)
        assert found.placements == (Partial("sum"),)
        assert torch.equal(run(found).full_tensor().cpu(), w[places] * 2)


@pytest.mark.parametrize("place", [16, -1])
def test_places_outside_are_refused(place: int) -> None:
    split = distribute_tensor(torch.randn(16, 4), init_device_mesh("tt", (4,)), [Shard(0)])
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        F.embedding(torch.tensor([3, place], device="tt"), split)

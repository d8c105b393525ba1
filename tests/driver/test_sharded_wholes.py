"""Ops of DTensors without a rule, changes of shape in place, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard, distribute_tensor

from tt_torch.errors import CollectiveError, MeshError


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def whole(x: torch.Tensor) -> torch.Tensor:
    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu()


def ops(x: torch.Tensor, edges: torch.Tensor) -> list[torch.Tensor]:
    ordered = torch.arange(8, device=x.device)
    found = torch.searchsorted(edges, x), torch.searchsorted(edges, x, sorter=ordered), torch.bucketize(x, edges)
    tiles = [torch.block_diag(x, edges), torch.cartesian_prod(x[0], edges), F.interpolate(x[None], scale_factor=2)]
    return [*found, *tiles, *(row * 2 for row in x.unbind(0))]


def results_given(x: torch.Tensor, edges: torch.Tensor) -> list[torch.Tensor]:
    given = torch.empty_like(x, dtype=torch.int64)
    torch.searchsorted(edges, x, out=given)
    return [torch.cumprod(x, 0, out=torch.empty_like(x)), given]


def new_shapes(x: torch.Tensor, edges: torch.Tensor) -> list[torch.Tensor]:
    y, z, column = x.clone(), x.clone(), x[:, :1].contiguous()
    later = y.mT
    y.t_().mul_(2)
    z.unsqueeze_(0).transpose_(1, -1).add_(1)
    quantiles = x.quantile(0.3), x.nanquantile(0.3, 1, keepdim=True), torch.quantile(x, edges.sigmoid(), 0)
    return [y, later + 0, z, column.squeeze_(1) + 1, edges.unsqueeze_(0) * 2, edges + 0, *quantiles]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("function", [ops, results_given, new_shapes])
def test_values(function: Callable[..., Any], compiled: bool) -> None:
    torch.manual_seed(0)
    x, edges, mesh = torch.randn(4, 8), torch.randn(8).sort()[0], init_device_mesh("tt", (2, 2))
    run = torch.compile(function, backend="tt") if compiled else function
    splits: list[list[Placement]] = [[Shard(1), Shard(0)], [Shard(0), Replicate()]]
    for split in splits[: 1 if compiled else 2]:
        of_edges = [Replicate(), Shard(0)]
        found = run(distribute_tensor(x.clone(), mesh, split), distribute_tensor(edges.clone(), mesh, of_edges))
        torch.testing.assert_close([*map(whole, found)], function(x.clone(), edges.clone()))


def test_an_input_gets_a_new_shape() -> None:
    x = distribute_tensor(torch.arange(8.0).reshape(2, 4), init_device_mesh("tt", (2,)), [Shard(1)])
    torch.compile(lambda x: x.t_().mul_(2), backend="tt")(x)
    assert x.placements == (Shard(0),)
    assert torch.equal(whole(x), torch.arange(8.0).reshape(2, 4).t() * 2)


SIZES: dict[str, Callable[[torch.Tensor], Any]] = {
    "nonzero": torch.nonzero,
    "_unique2": torch.unique,
    "masked_select": lambda x: x.masked_select(x > 0),
    "bincount": lambda x: x.flatten().abs().long().bincount(),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_depends_on_values_is_refused(name: str) -> None:
    x = distribute_tensor(torch.randn(4, 8), init_device_mesh("tt", (2,)), [Shard(0)])
    said = f"{name}.* of a DTensor has a size that depends on values"
    with pytest.raises(MeshError, match=said):
        SIZES[name](x)
    with pytest.raises(RuntimeError, match=said):
        torch.compile(SIZES[name], backend="tt")(x)
    with pytest.raises(MeshError, match=r"as_strided.* of a DTensor, which fill_diagonal_ uses"):
        x.fill_diagonal_(1.0)


def test_a_write_after_a_new_shape_is_not_lost() -> None:
    mesh = init_device_mesh("tt", (2,))
    x = distribute_tensor(torch.zeros(4, 4), mesh, [Shard(0)])
    row = x[0]  # a copy, because one chip has it
    for part in (x, row):
        with pytest.raises(MeshError, match=r"a part of a split dimension, or has such a part; use .* t\(\)"):
            part.unsqueeze_(0)
    row.add_(1)
    assert whole(x)[0].sum() == 4
    y = distribute_tensor(torch.zeros(4, 4), mesh, [Shard(0)])
    y.t_()
    with pytest.raises(CollectiveError, match="would be lost after a change of shape in place"):
        y[:, 0].add_(1)


def test_a_write_of_nothing() -> None:
    x = distribute_tensor(torch.zeros(0, 8), init_device_mesh("tt", (2,)), [Shard(0)])
    assert x.floor_divide_(3).shape == (0, 8)
    assert x.copy_(x.flip(0)).shape == (0, 8)  # the copied values are on all chips


@pytest.mark.parametrize("compiled", [False, True])
def test_a_write_to_a_sum_of_all_integers(compiled: bool) -> None:
    def of_a_sum(x: torch.Tensor) -> torch.Tensor:
        return x.sum().floor_divide_(10)

    x = distribute_tensor(torch.full((4, 4), 9), init_device_mesh("tt", (2,)), [Shard(1)])
    assert whole((torch.compile(of_a_sum, backend="tt") if compiled else of_a_sum)(x)) == 14


def test_the_result_of_an_op_in_place_is_the_input() -> None:
    x = distribute_tensor(torch.zeros(4), init_device_mesh("tt", (2,)), [Shard(0)])
    assert torch.compile(lambda x: x.add_(1), backend="tt")(x) is x
    assert whole(x).tolist() == [1] * 4


def test_scalars_in_isin() -> None:
    mesh = init_device_mesh("tt", (2,))
    three, x = (distribute_tensor(each, mesh, [Replicate()]) for each in (torch.tensor(3), torch.arange(4)))
    compiled = torch.compile(lambda a, x: (torch.isin(a, a), torch.isin(x, a)), backend="tt", fullgraph=True)
    assert [whole(each).tolist() for each in compiled(three, x)] == [True, [False, False, False, True]]


def test_resize_to_another_shape_is_refused():
    x = distribute_tensor(torch.randn(4, 4), init_device_mesh("tt", (2,)), [Shard(0)])
    assert x.resize_(4, 4) is x
    for resize in (lambda: x.resize_(2, 4), lambda: x.resize_as_(x[:2])):
        with pytest.raises(MeshError, match=r"of a DTensor of shape \(4, 4\) to \(2, 4\); use view"):
            resize()

"""DTensors whose split dimension was joined with the one before it: each chip has several runs of the elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Placement, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard, _StridedShardOffsetMode

# Two rows have no four parts, so the second axis does not split them.
SPLITS = list(itertools.product([Replicate(), Shard(0), Shard(1), Shard(2)], [Replicate(), Shard(1), Shard(2)]))
SPLITS.remove((Shard(1), Shard(1)))
JOINS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "all": lambda x: x.flatten(),
    "two": lambda x: x.flatten(0, 1) * 2,
    "apart again": lambda x: (x.reshape(-1) + 1).reshape(x.shape),
    "an element": lambda x: x.flatten()[3] * x.reshape(8, 8)[1:3, ::2],
    "a sum": lambda x: (x.flatten(1) * 2).sum(0),
    "a product": lambda x: x.flatten(0, 1) @ x.flatten(0, 1).t(),
}


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.parametrize("name", JOINS)
def test_joined_dimensions(name: str) -> None:
    function, x = JOINS[name], torch.randn(2, 4, 8)
    mesh = init_device_mesh("tt", (2, 4))
    for placements in SPLITS:
        given = distribute_tensor(x, mesh, placements)
        for run in (function, torch.compile(function, backend="tt")):
            found = run(given).full_tensor().cpu()  # type: ignore[attr-defined]
            assert torch.allclose(found, function(x), rtol=1e-5, atol=1e-6), placements


def write_to_views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.flatten()
    z = y.view(2, 4, 8)
    z[1].add_(100)
    y.mul_(2)
    return x, y, z


@pytest.mark.parametrize("placements", [(Shard(0), Shard(1)), (Shard(1), Replicate()), (Shard(2), Shard(1))])
def test_writes_to_joined_dimensions(placements: tuple[Placement, ...]) -> None:
    x = torch.randn(2, 4, 8)
    mesh = init_device_mesh("tt", (2, 4))
    for run in (write_to_views, torch.compile(write_to_views, backend="tt")):
        given, expected = distribute_tensor(x.clone(), mesh, placements), write_to_views(x.clone())
        for found, right in zip((given, *run(given)), (expected[0], *expected), strict=True):
            assert torch.equal(found.full_tensor().cpu(), right)


@pytest.mark.parametrize("placements", [(Shard(0), Shard(0)), (Shard(0), Replicate()), (Shard(0), Shard(1))])
def test_attention_of_a_split_batch(placements: tuple[Placement, ...]) -> None:
    """Its input has the batch first, and its products have it second."""
    layer, x = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval(), torch.randn(4, 6, 16)

    def attention(x: torch.Tensor) -> torch.Tensor:
        return layer(x, x, x, need_weights=False)[0]

    whole = x.clone().requires_grad_()
    expected = attention(whole)
    expected.square().sum().backward()
    mesh = init_device_mesh("tt", (2, 2))
    distribute_module(layer, mesh)
    given = distribute_tensor(x, mesh, placements).requires_grad_()
    result = torch.compile(attention, backend="tt")(given).full_tensor()
    result.square().sum().backward()
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(given.grad.full_tensor().cpu(), whole.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("blocks", "chips", "run"), itertools.product((1, 2, 3), (1, 2, 4), (1, 3)))
def test_the_places_of_parts_are_those_that_pytorch_finds(blocks: int, chips: int, run: int) -> None:
    """PyTorch reads them from a tensor of numbers."""
    placement, size = _StridedShard(0, split_factor=blocks), blocks * chips * run
    asked = [(size, chips, chip, mode) for chip in range(chips) for mode in _StridedShardOffsetMode]
    expected = [placement.local_shard_size_and_offset(*each) for each in asked]
    before = _StridedShard.local_shard_size_and_offset
    init_device_mesh("tt", (4,))
    assert _StridedShard.local_shard_size_and_offset is not before
    assert [placement.local_shard_size_and_offset(*each) for each in asked] == expected

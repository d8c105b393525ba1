"""States of programs for several chips, such as a cache whose heads are split: each chip updates its part in place."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import tt_torch.runtime.mesh_executable as meshes


@pytest.fixture
def mesh():
    yield init_device_mesh("tt", (2, 4))
    dist.destroy_process_group()


@pytest.fixture
def runs(monkeypatch):
    """The inputs and the results of all calls of programs for several chips."""
    seen, run = [], meshes.MeshExecutable._run

    def noted(self, inputs, *rest):
        results = run(self, inputs, *rest)
        seen.append((inputs, results))
        return results

    monkeypatch.setattr(meshes.MeshExecutable, "_run", noted)
    return seen


def step(cache, position, new):
    cache.index_copy_(2, position, new)
    return (cache * 2).amax((2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("ways", [[Replicate(), Shard(1)], [Shard(0), Replicate()], [Shard(1), Shard(0)]], ids=str)
def test_a_split_cache(mesh, runs, ways, dtype):
    whole = torch.zeros(4, 8, 64, 16, dtype=dtype)
    cache, run = distribute_tensor(whole, mesh, ways), torch.compile(step, backend="tt")
    for position in torch.tensor([[0], [7], [63], [7]]):
        new = torch.randn(4, 8, 1, 16).to(dtype)
        expected = step(whole, position, new)
        found = run(cache, position, distribute_tensor(new, mesh, ways))
        assert torch.equal(found.full_tensor().cpu(), expected) and torch.equal(cache.full_tensor().cpu(), whole)
    assert len(runs) == 4
    assert all(a is b for inputs, results in runs for a, b in zip(inputs[0], results[0], strict=True))


def test_tensors_that_all_chips_have_are_written_once(mesh):
    def function(x, plain, whole):
        plain.add_(1)
        whole.mul_(2)
        return x * plain + whole

    x = torch.randn(8, 8)
    split = distribute_tensor(x, mesh, [Shard(0), Shard(1)])
    plain, whole = torch.zeros(8, 8), distribute_tensor(torch.ones(8, 8), mesh, [Replicate(), Replicate()])
    run, mine, yours = torch.compile(function, backend="tt"), torch.zeros(8, 8), torch.ones(8, 8)
    for _ in range(3):
        expected = function(x, mine, yours)
        torch.testing.assert_close(run(split, plain, whole).full_tensor().cpu(), expected)
        assert torch.equal(plain, mine) and torch.equal(whole.full_tensor().cpu(), yours)


def test_a_write_between_calls_is_seen(mesh):
    whole, position = torch.zeros(4, 8, 64, 16), torch.tensor([3])
    cache, run = distribute_tensor(whole, mesh, [Replicate(), Shard(1)]), torch.compile(step, backend="tt")
    for number in range(3):
        new = torch.full((4, 8, 1, 16), float(number))
        row = distribute_tensor(new, mesh, [Replicate(), Shard(1)])
        for x in (whole, cache):
            x.add_(1)
        expected = step(whole, position, new)
        assert torch.equal(run(cache, position, row).full_tensor().cpu(), expected)
        assert torch.equal(cache.full_tensor().cpu(), whole)

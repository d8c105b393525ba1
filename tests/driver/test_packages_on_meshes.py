"""Packages of programs for several chips: they take and give whole tensors, and need no mesh of PyTorch."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
import torch
import torch.distributed as dist
from nights import often_if
from sharded_programs import Program
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tt_torch
from tt_torch.errors import PackagingError

MESHES = [(2,), (8,), (2, 2), (2, 4)]


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    end()


def end():
    if dist.is_initialized():
        dist.destroy_process_group()


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.register_buffer("seen", torch.zeros(32))

    def forward(self, x):
        self.seen += x.mean(0)
        return self.down(torch.relu(self.up(x))) + self.seen


def summed(x):
    """The tensor, whose sums over chips are complete."""
    return x.full_tensor() if any(p.is_partial() for p in x.placements) else x


def close(found, expected):
    torch.testing.assert_close(found.cpu(), expected.detach(), rtol=1e-5, atol=1e-5)


def test_a_parallel_module(tmp_path):
    model, x = MLP().eval(), torch.randn(4, 32)
    parallel = copy.deepcopy(model)
    mesh = init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))
    parallelize_module(parallel, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    compiled = tt_torch.compile_model(parallel, (x,))
    compiled.save(tmp_path / "m.ttpkg")
    data = pickle.dumps(compiled)
    compiled.save(tmp_path / "empty.ttpkg", weights=False)
    end()
    loaded = tt_torch.load(tmp_path / "m.ttpkg")
    assert {name: w.shape for name, w in loaded.state_dict().items()} == {
        name: w.shape for name, w in model.state_dict().items()
    }
    empty = tt_torch.load(tmp_path / "empty.ttpkg")
    empty.load_state_dict(model.state_dict())
    for _ in range(2):  # each call writes to a buffer
        expected = model(x)
        for one in (loaded, empty):
            close(one(x), expected)
    close(pickle.loads(data)(x), MLP.forward(fresh(model), x))


def fresh(model):
    again = copy.deepcopy(model)
    again.seen.zero_()
    return again


def test_a_split_batch(tmp_path):
    model, x = nn.Linear(16, 4).eval(), torch.randn(8, 16)
    tt_torch.compile_model(model, (x,), mesh=(2, 4)).save(tmp_path / "m.ttpkg")
    close(tt_torch.load(tmp_path / "m.ttpkg")(x), model(x))


@pytest.mark.parametrize(
    ("mesh", "seed"), often_if(lambda _, seed: seed == 4000, itertools.product(MESHES, range(4000, 4010)))
)
def test_random_programs(tmp_path, mesh, seed):
    program = Program(seed, 6, len(mesh))
    given = program.distributed(init_device_mesh("tt", mesh))
    tt_torch.compile_model(lambda *values: [summed(x) for x in program(*values)], given).save(tmp_path / "m.ttpkg")
    end()
    found = tt_torch.load(tmp_path / "m.ttpkg")(*(x.to("tt") for x in program.inputs))
    for one, expected in zip(found, program(*program.inputs), strict=True):
        torch.testing.assert_close(one.cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda d: d.to_local() * 2, "a result has a value per chip"),
        (lambda d: DTensor.from_local(d.to_local(), d.device_mesh, [Replicate(), Replicate()]) + 1, "has a value per"),
        (lambda d: d.sum(0), r"a result has the placements \(Partial\(sum\), Replicate\(\)\)"),
        (lambda d: d.to_local().sum(), "a result has a value per chip"),
    ],
)
def test_values_of_chips_are_refused(tmp_path, function, said):
    d = distribute_tensor(torch.randn(8, 16), init_device_mesh("tt", (2, 2)), [Shard(0), Replicate()])
    with pytest.raises(PackagingError, match=said):
        tt_torch.compile_model(function, (d,)).save(tmp_path / "m.ttpkg")
    assert not (tmp_path / "m.ttpkg").exists()


def test_arguments_of_chips_are_refused(tmp_path):
    mesh = init_device_mesh("tt", (2,))
    part = distribute_tensor(torch.randn(8, 16), mesh, [Shard(0)]).to_local()
    partial = DTensor.from_local(part, mesh, [Partial()])
    for x, said in ((part, "x has a value per chip"), (partial, r"x has the placements \(Partial\(sum\),\)")):
        compiled = tt_torch.compile_model(lambda x: x * 2, (x,))
        with pytest.raises(PackagingError, match=said):
            compiled.save(tmp_path / "m.ttpkg")


def test_training_ahead_of_time(tmp_path):
    model, x = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 32)), torch.randn(4, 32)
    parallel = copy.deepcopy(model)
    parallelize_module(parallel, init_device_mesh("tt", (4,)), {"0": ColwiseParallel(), "1": RowwiseParallel()})
    compiled = tt_torch.compile_model(parallel, (x,), training=True)
    compiled(x).square().sum().backward()
    model(x).square().sum().backward()
    for mine, yours in zip(parallel.parameters(), model.parameters(), strict=True):
        close(mine.grad.full_tensor(), yours.grad)
    with pytest.raises(PackagingError, match="the programs of training are for several chips"):
        compiled.save(tmp_path / "m.ttpkg")

"""Models whose tensors PyTorch's tools have split, with device="ttnn".

A stand-in for Tenstorrent's library computes here, because the library's mock devices give zeros. The last test asks
the library itself.
"""

from __future__ import annotations

import sys

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from ttnn_devices import STAND_IN, asked, network

import tt_torch
from tt_torch.codegen import environment
from tt_torch.codegen.device import TtnnDevice
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.errors import InputCountError, InputShapeError

ANNOTATED = """module {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x4xf32> {
    %0 = stablehlo.add %x, %x : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}"""
SPLIT = {"0": ColwiseParallel(), "2": RowwiseParallel()}


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.fixture
def mesh():
    return init_device_mesh("tt", (2, 2), mesh_dim_names=("dp", "tp"))


@pytest.fixture
def device(monkeypatch):
    """Four chips of the stand-in."""
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    with TtnnDevice(python=sys.executable, mesh_shape=(2, 2), fabric=True) as opened:
        yield opened


def on(device: TtnnDevice, function):
    return torch.compile(function, backend="tt", options=BackendOptions(devices=[device]))


def test_a_split_model_has_its_values(mesh, device, monkeypatch):
    whole, model = network(), parallelize_module(network(), mesh["tp"], SPLIT)
    x = torch.randn(4, 16)
    rows = distribute_tensor(x, mesh["dp"], [Shard(0)]).to_local()
    with torch.no_grad():
        for mine, yours in zip(model.parameters(), whole.parameters(), strict=True):
            yours.copy_(mine.full_tensor().cpu())
        run = on(device, model)
        torch.testing.assert_close(run(x).cpu(), whole(x))
        commands = asked(device, monkeypatch)
        torch.testing.assert_close(run(2 * x).cpu(), whole(2 * x))
        assert commands == ["run"]
        model[0].weight.mul_(2)
        whole[0].weight.mul_(2)
        torch.testing.assert_close(run(x).cpu(), whole(x))
        assert commands[1:] == ["keep", "forget", "run"]
        of_rows = DTensor.from_local(run(rows), mesh["dp"], [Shard(0)])
        torch.testing.assert_close(of_rows.full_tensor().cpu(), whole(x))
    assert device.statistics()["kept"] == 4


@pytest.mark.parametrize("ways", [[Shard(0), Shard(1)], [Shard(1), Shard(0)], [Shard(0), Replicate()]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_each_chip_has_its_value(mesh, device, ways, dtype):
    x = torch.arange(32).reshape(4, 8).to(dtype)
    split = distribute_tensor(x, mesh, ways)
    run = on(device, lambda v, scalar: (v + v, v.to_local() + 1, scalar + scalar))
    for value in (split, 3 * split):
        scalar = value.to_local().sum().to(dtype)
        doubled, more, twice = run(value, scalar)
        assert torch.equal(doubled.full_tensor().cpu(), 2 * value.full_tensor().cpu())
        assert torch.equal(DTensor.from_local(more, mesh, ways).full_tensor().cpu(), value.full_tensor().cpu() + 1)
        assert torch.equal(twice.cpu(), (scalar + scalar).cpu())


def test_a_batch_is_split(device):
    model, x = network(), torch.randn(8, 16)
    run = tt_torch.compile_model(model, (x,), options=BackendOptions(devices=[device]), mesh=(2, 2))
    for _ in range(2):
        torch.testing.assert_close(run(x), model(x).detach())


def test_annotated_values_are_split(device):
    pytest.importorskip("jaxlib", reason="the extra `jax` is not installed")
    run = tt_torch.compile_stablehlo(ANNOTATED, CompilerConfig(device="ttnn"), device=device)
    x = torch.randn(8, 4)
    assert torch.equal(run(x), x + x)


def test_values_that_do_not_fit_are_refused(mesh, device):
    x = distribute_tensor(torch.ones(4, 8), mesh, [Shard(0), Shard(1)])
    compiled = tt_torch.compile_model(lambda v: v + v, (x,))
    run = device.load(compiled.binary, each=[0])
    with pytest.raises(InputCountError, match="input 0: got the values of 3 chips, and the mesh has 4"):
        run([[torch.ones(2, 4)] * 3])
    with pytest.raises(InputShapeError, match=r"input 0: got shape \[2, 5\], expected \[2, 4\]"):
        run([[torch.ones(2, 4)] * 3 + [torch.ones(2, 5)]])


@pytest.mark.needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_the_library_takes_a_split_model(ttnn_folder, monkeypatch):
    """On a mock device, the results are zeros."""
    for name, value in environment.variables(ttnn_folder, "n300", (1, 2)).items():
        monkeypatch.setenv(name, value)
    mesh = init_device_mesh("tt", (2,))
    model = parallelize_module(network(), mesh, SPLIT)
    with TtnnDevice(mesh_shape=(1, 2), fabric=True) as device:
        run = on(device, model)
        for _ in range(2):
            result = run(torch.randn(4, 16, requires_grad=True))
        assert result.shape == (4, 4)
        result.sum().backward()
        assert model[0].weight.grad.full_tensor().shape == (8, 16)

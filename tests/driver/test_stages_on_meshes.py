"""`device_map` with a mesh of chips per stage: results equal one chip's results, and errors leave devices usable."""

from __future__ import annotations

import copy
import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tt_torch
from tt_torch import BackendOptions, CompilerConfig
from tt_torch.errors import DeviceError, DeviceMemoryError
from tt_torch.runtime import Device
from tt_torch.torch_private.dynamo import BackendCompilerFailed

MAP = {"0": 0, "1": 1}
PLAN = {"0.0": ColwiseParallel(), "0.2": RowwiseParallel(), "1.0": ColwiseParallel(), "1.2": RowwiseParallel()}


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)) for _ in range(2)))


def two_parts(**options: int) -> list[Device]:
    whole = Device(mesh_shape=(2, 4), **options)
    return [whole.submesh((1, 4), (row, 0)) for row in (0, 1)]


def compiled(model: nn.Module, devices: list[Device] | None = None, device_map=MAP, **named):
    config = CompilerConfig(device_map=device_map, **named.pop("config", {}))
    options = BackendOptions(compiler_config=config, devices=devices or [None], **named)
    return torch.compile(model, backend=tt_torch.backend, dynamic=False, options=options)


def plain(x: torch.Tensor) -> torch.Tensor:
    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu()


def trained(model: nn.Module, run, x: torch.Tensor) -> list[torch.Tensor]:
    """The results of three steps, and the weights and gradients after them."""
    optimizer, results = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(3):
        optimizer.zero_grad()
        results.append(run(x))
        results[-1].sin().sum().backward()
        optimizer.step()
    return [plain(t) for t in (*results, *model.parameters(), *(p.grad for p in model.parameters()))]


MAPS = {
    "a stage per block": MAP,
    "back and forth": {"0.0": 1, "0.1": 0, "0.2": 1, "1": 0},
    "the parts of an exchange": {"": 0, "0.2": 1},
    "one stage": {"": 1},
}


@pytest.mark.parametrize("name", MAPS)
def test_training_with_split_layers_follows_one_chip(name: str) -> None:
    model, x = make_model(), torch.randn(4, 16)
    expected = trained(alone := copy.deepcopy(model), alone, x)
    parallelize_module(model, init_device_mesh("tt", (4,)), PLAN)
    run = compiled(model, two_parts() if len(set(MAPS[name].values())) == 2 else None, MAPS[name])
    torch.testing.assert_close(trained(model, run, x), expected)


@pytest.mark.parametrize("name", MAPS)
def test_training_with_a_split_batch_follows_one_chip(name: str) -> None:
    model, x = make_model(), torch.randn(8, 16)
    expected = trained(alone := copy.deepcopy(model), alone, x)
    run = compiled(model, device_map=MAPS[name], config={"mesh_shape": (1, 4), "automatic_parallelization": True})
    torch.testing.assert_close(trained(model, run, x), expected)


def test_batch_layers_and_stages_are_split_at_once() -> None:
    model, x = make_model(), torch.randn(4, 16)
    expected = model(x)
    mesh = init_device_mesh("tt", (2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], PLAN)
    part = distribute_tensor(x, mesh["dp"], [Shard(0)]).to_local()
    result = DTensor.from_local(compiled(model)(part), mesh["dp"], [Shard(0)])
    torch.testing.assert_close(plain(result), expected.detach())


def test_a_part_has_the_weights_of_its_stage_only() -> None:
    model, parts = make_model().requires_grad_(False), two_parts()
    parallelize_module(model, init_device_mesh("tt", (4,)), {"0.0": ColwiseParallel(), "0.2": RowwiseParallel()})
    run = compiled(model, parts)
    run(torch.randn(4, 16))
    shapes = [sorted(name.split()[3] for name, _ in part.memory_stats()["dram"]["live"]) for part in parts]
    assert shapes == [["16", "16x8", "8", "8x16"], ["16", "16x32", "32", "32x16"]]


@pytest.mark.parametrize("split", ["batch", "layers"])
def test_batches_that_overlap_give_their_own_results(split: str) -> None:
    model, batches = make_model().eval(), [torch.randn(4, 16) for _ in range(12)]
    with torch.no_grad():
        expected = [model(batch) for batch in batches]
        config = {"mesh_shape": (1, 4), "automatic_parallelization": True} if split == "batch" else {}
        if split == "layers":
            parallelize_module(model, init_device_mesh("tt", (4,)), PLAN)
        run = compiled(model, async_mode=True, config=config)
        calls = [run(batch) for batch in batches]
        found = [plain(result) for result in tt_torch.to_host(calls)]
    torch.testing.assert_close(found, expected)


def test_a_stage_that_does_not_fit_leaves_nothing_on_the_device() -> None:
    model, x = make_model().requires_grad_(False), torch.randn(4, 16)
    expected, mesh = model(x), init_device_mesh("tt", (4,))
    parallelize_module(model, mesh, PLAN)
    fitting, small = two_parts()[0], two_parts(dram_bank_size=64)[1]
    run = compiled(model, [fitting, small])
    for _ in range(2):
        with pytest.raises(DeviceMemoryError):
            run(x)
    fitting.free_weights()
    assert [part.memory_stats()["dram"]["allocated"] for part in (fitting, small)] == [0, 0]
    torch._dynamo.reset()
    torch.testing.assert_close(plain(compiled(model, [fitting, two_parts()[1]])(x)), expected)
    fitting.free_weights()
    del run
    gc.collect()
    assert fitting.memory_stats()["dram"]["allocated"] == 0


def test_an_error_of_one_batch_is_no_error_of_the_others() -> None:
    model, x = make_model().eval().requires_grad_(False), torch.randn(4, 16)
    parts = two_parts()
    run = compiled(model, parts, async_mode=True, config={"mesh_shape": (1, 4), "automatic_parallelization": True})
    first = run(x)
    tt_torch.to_host(first)
    parts[1].close()
    failed = run(x)
    with pytest.raises(DeviceError, match="closed"):
        tt_torch.to_host(failed)
    torch.testing.assert_close(tt_torch.to_host(first), model(x))
    parts[0].free_weights()
    assert parts[0].memory_stats()["dram"]["allocated"] == 0


def test_programs_on_parts_of_a_mesh_run_at_once() -> None:
    models, parts = [make_model() for _ in range(2)], two_parts()
    inputs = [torch.randn(8, 16) for _ in range(20)]
    runs = [
        compiled(model.eval(), [part], {"": 0}, config={"mesh_shape": (1, 4), "automatic_parallelization": True})
        for model, part in zip(models, parts, strict=True)
    ]
    nn.init.ones_(models[1][0][0].weight)
    with torch.no_grad():
        expected = [[model(x) for x in inputs] for model in models]
        for run in runs:
            run(inputs[0])  # compiles

        def all_of(run) -> list[torch.Tensor]:
            with torch.no_grad():
                return [run(x) for x in inputs]

        with ThreadPoolExecutor(2) as threads:
            torch.testing.assert_close(list(threads.map(all_of, runs)), expected)


def test_devices_of_another_mesh_are_refused() -> None:
    whole = Device(mesh_shape=(2, 4))
    config = {"mesh_shape": (1, 4), "automatic_parallelization": True}
    run = compiled(make_model(), [whole.submesh((1, 4)), whole.submesh((2, 2))], config=config)
    with pytest.raises(BackendCompilerFailed) as caught:
        run(torch.randn(8, 16))
    assert str(caught.value.inner_exception) == (
        "devices[1] is a mesh of (2, 2), and the program is for one of (1, 4); "
        "`mesh.submesh((1, 4), (row, column))` cuts such a part out of a mesh"
    )
    run = compiled(make_model(), device_map={"0": 0, "1": 2}, config=config)
    with pytest.raises(BackendCompilerFailed, match="the part of 4 chips with the number 2, but there are 8 chips"):
        run(torch.randn(8, 16))

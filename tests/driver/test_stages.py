"""`device_map`: each module runs on its chip, the results equal eager PyTorch's, and a wrong map is an error."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch import BackendOptions, CompilerConfig, runtime
from tt_torch.driver.unmatched import DeviceMapWarning
from tt_torch.errors import ConfigError, DeviceError, DeviceMapError
from tt_torch.torch_private.dynamo import BackendCompilerFailed


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
        self.norm = nn.ModuleDict({"a b": nn.LayerNorm(8)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.norm["a b"](self.mlp(x)) * 2


class Model(nn.Module):
    """A model of blocks (one is used twice), an activation without weights, and ops of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.act = nn.Tanh()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = x * self.scale
        for block in [*self.blocks, self.blocks[0]]:
            x = self.act(block(x))
        return x + kept + torch.arange(8), x.argmax(-1)


def compiled(model: nn.Module, device_map: Mapping[str, int | str], devices: list[runtime.Device | None] | None = None):
    config = CompilerConfig(device_map=device_map)
    options = BackendOptions(compiler_config=config, devices=devices or [None])
    return torch.compile(model, backend=tt_torch.backend, options=options)


MAPS = {
    "a stage per block": {"blocks.0": 0, "blocks.1": 1, "blocks.2": 2, "act": 0},
    "one chip": {"": 3},
    "parts of a block": {"blocks.0.mlp.0": 1, "blocks.0.mlp": 0, "": 2},
    "back and forth": {"blocks.0": 1, "blocks.1": 0, "blocks.2": 1, "act": 0},
    "names of devices": {"blocks": "tt:1", "act": "tt:0"},
}


@pytest.mark.parametrize("name", MAPS)
def test_results_and_gradients_are_those_of_eager(name: str) -> None:
    model, x = Model(), torch.randn(5, 8)
    runs = []
    for run in (model, compiled(model, MAPS[name])):
        model.zero_grad()
        y, places = run(x)
        y.sin().sum().backward()
        runs.append([y.detach(), places, *(p.grad for p in model.parameters())])
    for eager, ours in zip(*runs, strict=True):
        torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("seed", range(6))
def test_random_maps(seed: int) -> None:
    model, x, draw = Model().eval(), torch.randn(3, 8), random.Random(seed)
    names = [name for name, _ in model.named_modules()]
    device_map = {"": draw.randrange(8), **{name: draw.randrange(8) for name in draw.sample(names, 5)}}
    with torch.no_grad():
        for expected, got in zip(model(x), compiled(model, device_map)(x), strict=True):
            torch.testing.assert_close(got, expected)


def test_weights_are_on_the_chip_of_their_module() -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512), nn.Linear(512, 8)).eval()
    with runtime.Device(device_ids=[0]) as first, runtime.Device(device_ids=[1]) as second, torch.no_grad():
        run, x = compiled(model, {"0": 0, "1": 0, "2": 1}, [first, second]), torch.randn(2, 512)
        torch.testing.assert_close(run(x), model(x))
        used = [device.memory_stats()["dram"]["allocated"] for device in (first, second)]
    assert used[0] > 2 * 512 * 512 * 4 > 512 * 32 * 4 + 100_000 > used[1] > 512 * 8 * 4


def test_host_ops_inside_of_a_stage() -> None:
    class Sorted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(x @ x.mT) + 1

    model, x = nn.Sequential(nn.Linear(4, 4), Sorted(), nn.Linear(4, 4)).eval(), torch.randn(4, 4)
    with torch.no_grad(), pytest.warns(UserWarning, match="eigh"):
        torch.testing.assert_close(compiled(model, {"0": 0, "1": 1, "2": 2})(x), model(x))


def fails(model: nn.Module, device_map: Mapping[str, int], x: torch.Tensor, **options: object) -> Exception:
    with pytest.raises(BackendCompilerFailed) as caught:
        compiled(model, device_map, **options)(x)  # type: ignore[arg-type]
    return caught.value.inner_exception


def test_wrong_maps_are_errors() -> None:
    x = torch.randn(5, 8)
    error = fails(Model(), {"blocks.0": 0, "blocks.l": 1, "act": 0}, x)
    assert isinstance(error, DeviceMapError) and "'blocks.1.mlp.0'" in str(error) and "'blocks.l'" in str(error)
    error = fails(Model(), {"": 8}, x)
    assert isinstance(error, DeviceError) and "chip 8, but there are 8" in str(error)
    with runtime.Device() as device:
        error = fails(Model(), {"": 1}, x, devices=[device])
    assert isinstance(error, DeviceError) and "`devices` has 1, but" in str(error)
    with runtime.Device(device_ids=[0]) as first, runtime.Device(device_ids=[1]) as second:
        for device_map in ({}, {"": 0}):
            error = fails(Model(), device_map, x, devices=[first, second])
            assert isinstance(error, DeviceError) and "`devices` has 2, but" in str(error)
    for wrong in ({"": "disk"}, {"": -1}, {"": True}, {3: 0}, [""]):
        with pytest.raises(ConfigError, match="device_map"):
            CompilerConfig(device_map=wrong)


def test_an_entry_for_an_absent_module_is_told() -> None:
    device_map = {"": 0, "blocks.1": 1, "blocks.7": 0, "blocks.1.ml": 1}
    with pytest.warns(DeviceMapWarning, match=r"no op of this graph is in 'blocks\.7', 'blocks\.1\.ml'; did you mean"):
        compiled(Model().eval(), device_map)(torch.randn(5, 8))


def test_a_model_with_one_binary_has_no_stages() -> None:
    options = BackendOptions(compiler_config=CompilerConfig(device_map={"": 0}))
    with pytest.raises(ConfigError, match=r"device_map=.*torch\.compile"):
        tt_torch.compile_model(Model().eval(), (torch.randn(5, 8),), options=options)
    with pytest.raises(ConfigError, match=r"async_mode=.*torch\.compile"):
        tt_torch.compile_model(Model().eval(), (torch.randn(5, 8),), options=BackendOptions(async_mode=True))

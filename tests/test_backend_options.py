"""BackendOptions: what is not used is an error, and the caches of weights can be cleared."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import tt_torch
from tt_torch import old_options
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import backend
from tt_torch.errors import ConfigError
from tt_torch.old_options import OldOptionWarning
from tt_torch.runtime import Device
from tt_torch.torch_private.dynamo import BackendCompilerFailed

REFUSED = [
    ("async_mode", 1),
    ("async_mode", "on"),
    ("devices", []),
    ("devices", None),
    ("devices", [None, None]),
    ("devices", ["tt:0"]),
    ("devices", [torch.device("cpu")]),
    ("devices", {None: None}),
    ("compiler_config", {}),
    ("compiler_config", None),
    ("buffer_cache", []),
    ("constant_cache", "on"),
]


@pytest.fixture(autouse=True)
def _nothing_told() -> Iterator[None]:
    old_options._told.clear()
    yield
    old_options._told.clear()


def test_defaults_are_not_shared():
    first, second = BackendOptions(), BackendOptions()
    assert first.devices == [None] and first.devices is not second.devices
    assert first.compiler_config is not second.compiler_config
    given = [None]
    first.devices = second.devices = given
    assert first.devices is not second.devices is not given


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_refuses_at_construction_and_at_assignment(name: str, value: Any):
    options = BackendOptions()
    with pytest.raises(ConfigError, match=f"^{name}=.* is not accepted; it takes "):
        BackendOptions(**{name: value})
    with pytest.raises(ConfigError, match=f"^{name}=.* is not accepted; it takes "):
        setattr(options, name, value)
    assert options == BackendOptions()


def test_several_chips_are_an_error_that_says_what_to_do():
    with Device(mesh_shape=(1, 2)) as mesh:
        chips = [mesh.submesh((1, 1), (0, column)) for column in (0, 1)]
        with pytest.raises(ConfigError, match=r"mesh\.submesh\(\(1, 1\), \(row, column\)\)"):
            BackendOptions(devices=[mesh])
        with pytest.raises(BackendCompilerFailed, match="device_map"):
            torch.compile(lambda x: x + 1, backend=backend, options=BackendOptions(devices=chips))(torch.ones(2))
        torch._dynamo.reset()
        for chip in chips:
            options = BackendOptions(devices=[chip])
            assert torch.compile(lambda x: x + 1, backend=backend, options=options)(torch.ones(2)).tolist() == [2, 2]
            torch._dynamo.reset()
    with pytest.raises(ConfigError, match=r"mesh_shape=\(2, 4\) is not accepted; it takes \(1, 1\): a program runs on"):
        CompilerConfig(mesh_shape=(2, 4))


def test_a_device_that_is_appended_is_an_error_at_the_compilation():
    options = BackendOptions()
    options.devices.append(None)
    with pytest.raises(BackendCompilerFailed, match=r"devices=\[None, None\] is not accepted"):
        torch.compile(lambda x: x + 1, backend=backend, options=options)(torch.ones(2))


def test_misspelt_names():
    with pytest.raises(AttributeError, match="BackendOptions has no option 'device'; did you mean 'devices'"):
        BackendOptions().device = None  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"options='compiler_confg' .*; did you mean 'compiler_config'"):
        BackendOptions.of({"compiler_confg": CompilerConfig()})
    with pytest.raises(ConfigError, match="options='dtype' is not accepted; it takes compiler_config, devices"):
        BackendOptions.of({"dtype": "bf16"})


@pytest.mark.parametrize("name", ["buffer_cache", "constant_cache"])
def test_a_cache_of_the_user_has_no_effect_and_says_so_once(name: str):
    with pytest.warns(OldOptionWarning, match=f"^{name}: no effect: .*clear_caches") as told:
        BackendOptions(**{name: {}})
        setattr(BackendOptions(), name, {})
        BackendOptions.of(BackendOptions(**{name: {}}))
    assert len(told) == 1


def allocated(device: Device) -> int:
    return device.memory_stats()["dram"]["allocated"]


def test_cleared_caches_free_the_memory_of_weights_and_change_no_result():
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 8)).eval()
    x = torch.randn(4, 256)
    with Device() as device, torch.no_grad():
        options = BackendOptions(devices=[device])
        options.clear_caches()  # nothing was compiled yet
        compiled = torch.compile(model, backend=tt_torch.backend, options=options)
        before = allocated(device)
        expected = compiled(x)
        resident = allocated(device)
        assert resident - before >= 4 * 256 * 512
        for _ in range(2):
            options.clear_caches()
            assert allocated(device) == before
            assert torch.equal(compiled(x), expected)
            assert allocated(device) == resident
        model[0].weight.mul_(2)
        options.clear_caches()
        torch.testing.assert_close(compiled(x), model(x))


def test_copies_have_no_caches_of_their_own():
    options = BackendOptions(compiler_config=CompilerConfig(dtype="bf16"))
    torch.compile(lambda x: x + 1, backend=backend, options=options)(torch.ones(2))
    for other in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert other == options
        other.clear_caches()

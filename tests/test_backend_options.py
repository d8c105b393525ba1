"""BackendOptions: what is not used is an error, and the caches of weights can be cleared."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import warnings
from typing import Any

import pytest
import torch
from torch._inductor import list_mode_options
from transformers import CompileConfig, LlamaConfig, LlamaForCausalLM

import tt_torch
from tt_torch import user_code
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import backend
from tt_torch.errors import ConfigError
from tt_torch.modes import MODES
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
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_once", set())


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
        with pytest.raises(BackendCompilerFailed, match=r"mesh\.submesh\(\(1, 1\), \(row, column\)\)"):
            torch.compile(lambda x: x + 1, backend=backend, options=BackendOptions(devices=[mesh]))(torch.ones(2))
        torch._dynamo.reset()
        with pytest.raises(BackendCompilerFailed, match="device_map"):
            torch.compile(lambda x: x + 1, backend=backend, options=BackendOptions(devices=chips))(torch.ones(2))
        torch._dynamo.reset()
        for chip in chips:
            options = BackendOptions(devices=[chip])
            assert torch.compile(lambda x: x + 1, backend=backend, options=options)(torch.ones(2)).tolist() == [2, 2]
            torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match="automatic_parallelization=True, which splits the batch"):
        torch.compile(lambda x: x + 1, backend=backend, options=CompilerConfig(mesh_shape=(2, 4)))(torch.ones(2))


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
    with pytest.raises(ConfigError, match=r"options='dump_debgu' .*; did you mean 'dump_debug'"):
        BackendOptions.of({"dump_debgu": True})
    with pytest.raises(ConfigError, match="options=7 is not accepted; it takes a BackendOptions, a CompilerConfig, or"):
        BackendOptions.of(7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="dtype='bf17' is not accepted"):
        BackendOptions.of({"dtype": "bf17"})


BF16 = CompilerConfig(dtype="bf16")


@pytest.mark.parametrize(
    "options",
    [BF16, {"compiler_config": BF16}, BackendOptions(BF16), {"dtype": "bf16", "buffer_cache": None}],
    ids=["config", "dict", "options", "flat"],
)
def test_each_form_of_options_acts(options: Any):
    x = torch.tensor([1.001])  # 1.0 in bf16
    torch._dynamo.reset()
    assert torch.compile(lambda x: x * 2, backend="tt", options=options)(x) == 2.0
    assert tt_torch.compile_model(lambda x: x * 2, (x,), options=options)(x) == 2.0


def test_flat_options_win_over_a_config_and_share_its_outputs():
    config = CompilerConfig(dtype="bf16", model_name="mine")
    complete = BackendOptions.of({"dtype": "f32", "dump_debug": True, "compiler_config": config}).compiler_config
    assert (complete.dtype, complete.ir_log_level, complete.model_name) == ("f32", "DEBUG", "mine")
    assert complete.outputs is config.outputs and config.dtype == "bf16"


def test_the_modes_are_those_of_pytorch():
    assert {*MODES} == {*list_mode_options()}


def test_a_mode_acts_or_says_once_why_it_does_not(monkeypatch: pytest.MonkeyPatch):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for mode in (None, "default", "reduce-overhead", "reduce-overhead", "lite", "max-autotune"):
            BackendOptions.of({}, mode)
    assert [str(w.message).split(":")[0] for w in told] == [
        f"mode='{mode}' has no effect here" for mode in ("reduce-overhead", "lite", "max-autotune")
    ]
    monkeypatch.setenv("TT_TORCH_DEVICE", "ttnn")
    assert not BackendOptions.of({}).compiler_config.enable_trace
    assert BackendOptions.of({}, "reduce-overhead").compiler_config.enable_trace
    monkeypatch.setenv("TT_TORCH_ENABLE_TRACE", "0")
    assert not BackendOptions.of({}, "reduce-overhead").compiler_config.enable_trace


def test_an_unknown_mode_names_the_nearest_one():
    with pytest.raises(ConfigError, match=r"mode='reduce-overhed' .*did you mean 'reduce-overhead'"):
        tt_torch.compile_model(lambda x: x + 1, (torch.ones(2),), mode="reduce-overhed")
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match="mode='fast' is not accepted; it takes default, "):
        torch.compile(lambda x: x + 1, backend="tt", mode="fast")(torch.ones(2))


def test_the_compile_config_of_transformers_works_in_generate():
    """The sizes are the smallest ones; the mode is "reduce-overhead", which is the default of CompileConfig."""
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=11, num_key_value_heads=1, **sizes)).eval()
    config = CompileConfig(backend="tt", dynamic=False, fullgraph=True)
    config._compile_all_devices = True  # otherwise Transformers compiles for a GPU only
    given = {"max_new_tokens": 3, "do_sample": False, "pad_token_id": 0, "cache_implementation": "static"}
    ids = torch.tensor([[1, 4, 2]])
    expected = model.generate(ids, **given, disable_compile=True)
    with pytest.warns(UserWarning, match="mode='reduce-overhead' has no effect here: only a device of"):
        found = model.generate(ids, **given, compile_config=config)
    assert torch.equal(found, expected)


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


class Attends(torch.nn.Module):
    """A layer, and a buffer that it writes to: a constant and a state of its programs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)
        self.keys: torch.Tensor
        self.register_buffer("keys", torch.zeros(3, 4))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(0, position, self.layer(x))
        return self.keys.sum(0)


def test_dictionaries_of_the_user_keep_what_stays_on_the_device():
    model, x, at = Attends().eval(), torch.randn(1, 8), torch.tensor([1])
    constants, buffers = {}, {}
    with Device() as device, torch.no_grad():
        options = BackendOptions(devices=[device], constant_cache=constants, buffer_cache=buffers)
        compiled = torch.compile(model, backend="tt", options=options)
        expected = copy.deepcopy(model)(x, at)
        for cache in (constants, buffers, None):
            torch.testing.assert_close(compiled(x, at), expected)
            kept = {device: {id(p) for p in model.layer.parameters()}}, {device: {id(model.keys)}}
            assert tuple({at: {*map(id, k.forms)} for at, k in c.items()} for c in (constants, buffers)) == kept
            full = allocated(device)
            (options.clear_caches if cache is None else cache.clear)()
            assert allocated(device) == 0 if cache is None else 0 < allocated(device) < full
        assert constants == buffers == {}
        compiled(x, at)
        del compiled, options, constants, buffers, cache
        torch._dynamo.reset()
        gc.collect()
        assert allocated(device) == 0


def test_a_weight_stays_until_its_last_cache_is_cleared():
    model, x, caches = torch.nn.Linear(8, 4).eval(), torch.randn(2, 8), ({}, {})
    with Device() as device, torch.no_grad():
        for cache in (*caches, caches[0]):
            torch._dynamo.reset()
            options = {"devices": [device], "constant_cache": cache}
            torch.testing.assert_close(torch.compile(model, backend="tt", options=options)(x), model(x))
        alone = allocated(device)
        for cache, left in zip(caches, (alone, 0), strict=True):
            assert len(cache[device]) == 2 and repr(cache[device]) == "<2 tensors on a device>"
            cache.clear()
            assert allocated(device) == left


def step(draw: random.Random, model: torch.nn.Linear, caches: list[BackendOptions], device: Device) -> None:
    """Something that may happen between two calls."""
    with torch.no_grad():
        match draw.randrange(6):
            case 0:
                model.weight.add_(1)
            case 1:
                model.weight = torch.nn.Parameter(torch.randn(4, 8))
            case 2:
                device.free_weights()
            case 3:
                draw.choice(caches).clear_caches()
            case 4:
                draw.choice(draw.choice(caches).caches).clear()
            case 5:
                model.weight.data = torch.randn(4, 8)


@pytest.mark.parametrize("seed", range(3))
def test_results_are_right_whatever_happens_to_the_caches(seed: int):
    draw, models = random.Random(seed), [torch.nn.Linear(8, 4).eval() for _ in range(2)]
    with Device() as device, torch.no_grad():
        caches = [BackendOptions(devices=[device]) for _ in range(3)]
        examples = [torch.randn(2, 8), torch.randn(3, 8)]
        runs = [(m, x, tt_torch.compile_model(m, (x,), options=c)) for m in models for c in caches for x in examples]
        for _ in range(40):
            model, x, run = draw.choice(runs)
            torch.testing.assert_close(run(x), model(x))
            step(draw, model, caches, device)
        for options in caches:
            options.clear_caches()
        assert allocated(device) == 0

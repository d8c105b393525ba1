"""The compile cache returns what a compilation would give, and never anything else."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.compiler._cache import CacheArtifactManager

import tt_torch
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.driver import compile as compiling
from tt_torch.driver.cache import keys
from tt_torch.driver.cache.store import Store
from tt_torch.dynamo.types import Function
from tt_torch.errors import ConfigError
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import SYSTEM_DESC

pytestmark = pytest.mark.usefixtures("cache")

# For each option, a value that is not its default.
OTHER_VALUES: dict[str, Any] = {
    "compile_depth": CompileDepth.STABLEHLO,
    "op_by_op_backend": OpByOpBackend.STABLEHLO,
    "dtype": "bf16",
    "weight_dtype": "bfp8_b",
    "activation_dtype": "bfp8_b",
    "kv_cache_dtype": "bfp8_b",
    "math_fidelity": "lofi",
    "optimization_level": 1,
    "op_model": "ttnn",
    "optimizer_overrides": {"a": {"insert_memreconfig": "0"}},
    "precision": {"a": {"math_fidelity": "lofi"}},
    "fallback": "error",
    "buckets": {"x.0": (8,)},
    "device_map": {"a": 0},
    "arch": "blackhole",
    "device": "ttnn",
    "compiler": "tt-mlir",
    "ir_log_level": "INFO",
    "save_mlir": ("TTIR",),
    "tt_mlir_options": {"optimization_level": "1"},
    "run_global_op_idx": 1,
    "required_pcc": 0.5,
    "schema": "0123456789",
}
# The options that ask for more than a program, or for a program of another compiler.
BYPASS = {
    *("compile_depth", "compiler", "save_mlir", "save_binary", "verify_ir", "ir_log_level"),
    *("enable_intermediate_verification", "bisect", "profile"),
}


def write_system(file: str, chips: int) -> None:
    Path(file).write_bytes(encode(header(SYSTEM_DESC) | {"system_desc": system_desc("wormhole_b0", chips)}))


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one for each module that our stages compile."""
    done: list[str] = []
    by_our_stages = compiling._by_our_stages

    def counted(module: Any, *rest: Any) -> bytes:
        done.append(str(module))
        return by_our_stages(module, *rest)

    monkeypatch.setattr(compiling, "_by_our_stages", counted)
    return done


def again(function: Function, **options: Any) -> Function:
    """The function, compiled as in a new process."""
    torch._dynamo.reset()
    given = BackendOptions(compiler_config=CompilerConfig(**options))
    return torch.compile(function, backend=tt_torch.backend, options=given)


def test_training_starts_from_disk(cache: Store, compilations: list[str]) -> None:
    x, results = torch.randn(4, 8), []
    for _ in range(2):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.LayerNorm(8))
        again(model)(x).square().sum().backward()
        results.append([p.grad for p in model.parameters()])
    assert len(compilations) == 2 and cache.stats().hits == 2  # forward and backward
    assert all(map(torch.equal, *results))


def test_a_model_compiled_ahead_of_time_starts_from_disk(compilations: list[str]) -> None:
    model, x = nn.Linear(8, 8).eval(), torch.randn(4, 8)
    first, second = (tt_torch.compile_model(model, (x,)) for _ in range(2))
    assert len(compilations) == 1 and first.binary == second.binary
    assert torch.equal(first(x), second(x))


def test_every_option_is_in_the_key_or_has_a_reason_not_to_be(tmp_path: Path) -> None:
    seen = {keys.options(CompilerConfig())}
    fields = [field for field in dataclasses.fields(CompilerConfig) if field.name != "mesh_shape"]  # has one value
    for field in fields:
        now = field.default
        other = {bool: not now, int: 7, float: 7.0, str: str(tmp_path / "any")}.get(type(now))
        changed = CompilerConfig(**{field.name: OTHER_VALUES.get(field.name, other)})
        assert getattr(changed, field.name) != now
        if field.name in keys.NOT_IN_KEYS:
            assert keys.options(changed) in seen
            continue
        if field.name == "system_desc":
            with pytest.raises(ConfigError, match=r"system_desc=.* a \.ttsys file: No such file"):
                tt_torch.compile_model(torch.relu, (torch.ones(3),), changed)
            write_system(changed.system_desc, 1)
            seen.add(keys.options(changed))
            write_system(changed.system_desc, 2)
        assert keys.options(changed) not in seen
        seen.add(keys.options(changed))
        assert (keys.usable_store(changed) is None) == (field.name in BYPASS), field.name


def test_options_for_files_and_texts_act_on_every_compilation(tmp_path: Path, compilations: list[str]) -> None:
    for number in range(2):
        again(torch.relu)(torch.ones(3))
        again(torch.relu, save_mlir=("TTNN",), output_mlir_dir=tmp_path / "mlir")(torch.ones(3))
        again(torch.relu, save_binary=True, output_binary_dir=tmp_path / "binary")(torch.ones(3))
        assert len(list((tmp_path / "mlir").iterdir())) == len(list((tmp_path / "binary").iterdir())) == number + 1
    assert len(compilations) == 5


def test_the_owner_of_the_config_gets_the_same_back() -> None:
    texts, depths = [], []
    for _ in range(2):
        config = CompilerConfig()
        config.record_property = lambda name, value: depths.append(value)
        torch._dynamo.reset()
        torch.compile(torch.relu, backend="tt", options={"compiler_config": config})(torch.ones(3))
        config.record_property = None
        torch._dynamo.reset()
        torch.compile(torch.cos, backend="tt", options={"compiler_config": config})(torch.ones(3))
        texts.append((config.torch_mlir_module, config.stablehlo_mlir_module))
    assert texts[0] == texts[1] and "stablehlo.cosine" in texts[0][1]
    assert depths == ["STABLEHLO", "TTNN_IR"] * 2


def test_a_changed_source_file_is_another_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Store
) -> None:
    (tmp_path / "rule.py").write_text("a")
    monkeypatch.setattr(keys, "_FOLDERS", [tmp_path])
    versions = keys.sources.__wrapped__
    first = versions()
    monkeypatch.setattr(keys, "_IMPORTED", float("inf"))
    (tmp_path / "rule.py").write_text("b")
    second = versions()
    (tmp_path / "rule.py").rename(tmp_path / "other.py")
    assert None not in (second, versions()) and len({first, second, versions()}) == 3
    monkeypatch.setattr(keys, "_IMPORTED", 0.0)  # the file is newer than the process
    assert versions() is None
    monkeypatch.setattr(keys, "sources", versions)
    assert keys.usable_store(CompilerConfig.from_env()) is None


def test_artifacts_of_pytorch_carry_the_entries(cache: Store, compilations: list[str]) -> None:
    with CacheArtifactManager.with_fresh_cache():  # without the entries of other tests
        again(torch.relu)(torch.ones(3))
        content, info = torch.compiler.save_cache_artifacts()
    before = cache.clear()
    assert len(info.tt_torch_artifacts) == before.entries > 0
    load = "import torch, sys; assert torch.compiler.load_cache_artifacts(sys.stdin.buffer.read())"
    subprocess.run([sys.executable, "-c", load], input=content, check=True)  # a process that imports only torch
    assert cache.stats().bytes == before.bytes
    again(torch.relu)(torch.ones(3))
    assert len(compilations) == 1

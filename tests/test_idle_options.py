"""Options that act only with another option say so once, when they are set without it."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import pytest
import torch

import tt_torch
from tt_torch import user_code
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.driver.backend import backend
from tt_torch.errors import ConfigError
from tt_torch.idle_options import NEEDS, IdleOptionWarning, tell_idle

# For each option of the table: another value than the default, and options with which it acts.
ROWS: list[tuple[str, Any, dict[str, Any]]] = [
    ("op_by_op_backend", 2, {"compile_depth": CompileDepth.COMPILE_OP_BY_OP}),
    ("single_op_timeout", 9.0, {"compile_depth": CompileDepth.EXECUTE_OP_BY_OP}),
    ("jobs", 2, {"compile_depth": CompileDepth.EXECUTE_OP_BY_OP}),
    ("run_global_op_idx", 0, {"compile_depth": CompileDepth.COMPILE_OP_BY_OP}),
    ("check_all_ops_execute", True, {"compile_depth": CompileDepth.EXECUTE_OP_BY_OP}),
    ("verify_op_by_op", False, {"compile_depth": CompileDepth.EXECUTE_OP_BY_OP}),
    ("required_pcc", 0.9, {"bisect": True}),
    ("required_pcc", 0.9, {"enable_intermediate_verification": True}),
    ("required_pcc", 0.9, {"compile_depth": CompileDepth.EXECUTE_OP_BY_OP}),
    ("results_path", "a", {"enable_intermediate_verification": True}),
    ("consteval_parameters", False, {"enable_consteval": True}),
    ("enable_dram_sharded_matmul", True, {"optimization_level": 2}),
    ("output_mlir_dir", "a", {"save_mlir": ["TTIR"]}),
    ("output_binary_dir", "a", {"save_binary": True}),
    ("trace_region_size", 4096, {"enable_trace": True, "device": "ttnn"}),
    ("ttnn_python", "a", {"device": "ttnn"}),
    ("device_timeout", 9.0, {"device": "ttnn"}),
    ("pjrt_plugin", "a", {"compiler": "tt-mlir"}),
    ("tt_mlir_timeout", 9.0, {"compiler": "tt-mlir"}),
    ("cache_dir", "a", {"cache_size": 1}),
]
WITHOUT: dict[str, dict[str, Any]] = {  # by default, the other option does not leave it idle
    "consteval_parameters": {"enable_consteval": False},
    "cache_dir": {"cache_size": 0},
}
# These act by themselves, are an error where they cannot act, or name what others write.
OTHERS = """compile_depth enable_consteval optimization_level enable_optimizer optimizer_overrides op_model
compare_weights dtype weight_dtype activation_dtype math_fidelity fp32_dest_acc_en precision fallback buckets device_map
kv_cache_dtype arch system_desc device enable_trace mesh_shape automatic_parallelization schema compiler tt_mlir_options
cache_size verify_ir ir_log_level save_mlir save_binary profile_ops model_name repro_dir model_group""".split()


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_once", set())


def told(config: CompilerConfig, environ: dict[str, str] | None = None, of_pytorch: bool = True) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tell_idle(config.with_env(environ or {}), of_pytorch, environ or {})
    assert {each.category for each in found} <= {IdleOptionWarning}
    return [str(each.message) for each in found]


@pytest.mark.parametrize(("name", "value", "needed"), ROWS)
def test_an_option_without_what_it_needs_is_told(name: str, value: Any, needed: dict[str, Any]) -> None:
    (message,) = told(CompilerConfig(**{name: value}, **WITHOUT.get(name, {})))
    assert message.startswith(f"{name}=") and "has no effect on this compilation: it needs " in message
    assert told(CompilerConfig(**{name: value}, **needed)) == []


@pytest.mark.parametrize("name", ["enable_intermediate_verification", "bisect", "profile"])
def test_what_watches_a_run_needs_a_run(name: str) -> None:
    config = CompilerConfig(compile_depth=CompileDepth.TTNN_IR, **{name: "a" if name == "profile" else True})
    (message,) = told(config)
    assert message.startswith(f"{name}=") and message.endswith("it needs compile_depth EXECUTE")


def test_each_option_is_in_a_list() -> None:
    needing = {name for need in NEEDS for name in need.names}
    assert needing == {row[0] for row in ROWS} | {"enable_intermediate_verification", "bisect", "profile"}
    assert sorted([*needing, *OTHERS]) == sorted(field.name for field in dataclasses.fields(CompilerConfig))


def test_what_needs_a_graph_of_pytorch_is_told_of_other_modules() -> None:
    config = CompilerConfig(automatic_parallelization=True, bisect=True, profile="a")
    config.buckets, config.device_map, config.enable_intermediate_verification = {"x.0": (8,)}, {"": 0}, True
    assert sorted(message.partition("=")[0] for message in told(config, of_pytorch=False)) == [
        *("automatic_parallelization", "bisect", "buckets", "device_map", "enable_intermediate_verification"),
        "profile",
    ]
    assert told(config) == told(CompilerConfig(fallback="error"), of_pytorch=False) == []


def test_strict_types_need_a_graph_of_pytorch() -> None:
    config = CompilerConfig(fallback="strict-dtype")
    text = "func.func @main(%x: tensor<f64>) -> tensor<f64> { return %x : tensor<f64> }"
    with pytest.raises(ConfigError, match='"host" or "error" for StableHLO, JAX and ONNX'):
        tt_torch.compile_stablehlo(text, config)
    assert config.for_compilation().fallback == "strict-dtype"


@pytest.mark.parametrize(
    ("variable", "text"),
    [("TT_TORCH_VERIFY_OP_BY_OP", "1"), ("RUN_GLOBAL_OP_IDX", "0"), ("RTI_PCC_FAIL_THRESH", "0.9")],
)
def test_a_variable_is_told_by_its_name(variable: str, text: str) -> None:
    (message,) = told(CompilerConfig(), {variable: text})
    assert message.startswith(f"{variable}={text} has no effect")


def test_a_variable_that_describes_the_machine_is_not_told() -> None:
    assert told(CompilerConfig(), {"TT_TORCH_PJRT_PLUGIN": "a", "TT_TORCH_DEVICE_TIMEOUT": "9"}) == []


def test_a_default_that_was_asked_for_is_told() -> None:
    config = CompilerConfig()
    assert told(config) == []
    config.verify_op_by_op, config.jobs = True, 0
    assert len(told(config)) == 1 and told(config) == []
    user_code._once.clear()
    with pytest.warns(IdleOptionWarning, match="verify_op_by_op=True"):
        BackendOptions.of({"compiler_config": config, "dtype": "bf16"})


def test_a_compilation_tells() -> None:
    options = {"run_global_op_idx": 3}
    with pytest.warns(IdleOptionWarning, match="run_global_op_idx=3"):
        torch.compile(lambda x: x + 1, backend=backend, options=options)(torch.ones(2))

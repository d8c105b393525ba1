"""CompilerConfig and BackendOptions: defaults, validation, environment variables, generated docs."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from pathlib import Path

import pytest
import torch

from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.driver.backend import backend
from tt_torch.errors import ConfigError
from tt_torch.option_kinds import variables
from tt_torch.tools import config_docs

ACCEPTED = [
    ("compile_depth", 3, CompileDepth.TTNN_IR),
    ("dtype", "bf16", "bf16"),
    ("weight_dtype", "bfp8_b", "bfp8_b"),
    ("weight_dtype", "bfp4_b", "bfp4_b"),
    ("activation_dtype", "bfp8_b", "bfp8_b"),
    ("kv_cache_dtype", "bfp8_b", "bfp8_b"),
    ("math_fidelity", "ttnn_default", "ttnn_default"),
    ("save_mlir", ["ttir", "TTNN", "ttir"], ("TTIR", "TTNN")),
    ("mesh_shape", [2, 4], (2, 4)),
    ("arch", "blackhole", "blackhole"),
    (
        "tt_mlir_options",
        {"enable_trace": True, "optimization_level": 1},
        (("enable_trace", "true"), ("optimization_level", "1")),
    ),
    ("schema", "433d79f9", "433d79f9"),
    ("repro_dir", Path("a") / "b", "a/b"),
]

REFUSED = [
    ("compile_depth", 7),
    ("compile_depth", True),
    ("op_by_op_backend", 3),
    ("single_op_timeout", 0),
    ("single_op_timeout", "30"),
    ("jobs", -1),
    ("jobs", 1.5),
    ("jobs", True),
    ("run_global_op_idx", -1),
    ("run_global_op_idx", "3"),
    ("consteval_parameters", None),
    ("enable_consteval", 1),
    ("dtype", "fp16"),
    ("dtype", ["bf16"]),
    ("weight_dtype", "bfp2_b"),
    ("activation_dtype", "bfp4_b"),
    ("kv_cache_dtype", "bfp4_b"),
    ("math_fidelity", None),
    ("fp32_dest_acc_en", 1),
    ("save_mlir", "TTIR"),
    ("save_mlir", ["LLVM"]),
    ("save_mlir", [1]),
    ("mesh_shape", (1,)),
    ("mesh_shape", (0, 1)),
    ("mesh_shape", (1, 2, 2)),
    ("mesh_shape", 2),
    ("schema", "a hash"),
    ("schema", None),
    ("output_mlir_dir", ""),
    ("tt_mlir_options", {"math_fidelity": None}),
    ("tt_mlir_options", {1: "a"}),
    ("model_name", None),
]

VARIABLES = [
    ("TT_TORCH_FALLBACK", "error", "fallback", "error"),
    ("TT_TORCH_BUCKETS", "x.1=32,16; y.0=4", "buckets", (("x.1", (16, 32)), ("y.0", (4,)))),
    ("TT_TORCH_COMPILE_DEPTH", "stablehlo", "compile_depth", CompileDepth.STABLEHLO),
    ("TT_TORCH_COMPILE_DEPTH", "EXECUTE_OP_BY_OP", "compile_depth", CompileDepth.EXECUTE_OP_BY_OP),
    ("TT_TORCH_OP_BY_OP_BACKEND", "stablehlo", "op_by_op_backend", OpByOpBackend.STABLEHLO),
    ("TT_TORCH_OP_TIMEOUT", "2.5", "single_op_timeout", 2.5),
    ("TT_TORCH_JOBS", "2", "jobs", 2),
    ("TT_TORCH_CHECK_ALL_OPS_EXECUTE", "1", "check_all_ops_execute", True),
    ("TT_TORCH_VERIFY_INTERMEDIATES", "1", "enable_intermediate_verification", True),
    ("TT_TORCH_BISECT", "1", "bisect", True),
    ("TT_TORCH_REQUIRED_PCC", "0.999", "required_pcc", 0.999),
    ("RTI_PCC_FAIL_THRESH", "0.9", "required_pcc", 0.9),
    ("RUN_GLOBAL_OP_IDX", "3", "run_global_op_idx", 3),
    ("TT_TORCH_VERIFY_OP_BY_OP", "0", "verify_op_by_op", False),
    ("TT_TORCH_CONSTEVAL_PARAMETERS", "0", "consteval_parameters", False),
    ("TT_TORCH_PROFILE", "/tmp/x", "profile", "/tmp/x"),
    ("TT_TORCH_COMPARE_WEIGHTS", "1", "compare_weights", True),
    ("TT_TORCH_RESULTS_PATH", "/tmp/x", "results_path", "/tmp/x"),
    ("TT_TORCH_CONSTEVAL", "0", "enable_consteval", False),
    ("TT_TORCH_OPTIMIZER", "on", "enable_optimizer", True),
    ("TT_TORCH_OPTIMIZATION_LEVEL", "1", "optimization_level", 1),
    ("TT_TORCH_DRAM_SHARDED_MATMUL", "1", "enable_dram_sharded_matmul", True),
    ("TT_TORCH_OP_MODEL", "ttnn", "op_model", "ttnn"),
    ("TT_TORCH_DTYPE", "none", "dtype", None),
    ("TT_TORCH_WEIGHT_DTYPE", "bfp8_b", "weight_dtype", "bfp8_b"),
    ("TT_TORCH_ACTIVATION_DTYPE", "bfp8_b", "activation_dtype", "bfp8_b"),
    ("TT_TORCH_KV_CACHE_DTYPE", "bfp8_b", "kv_cache_dtype", "bfp8_b"),
    ("TT_TORCH_MATH_FIDELITY", "HiFi2", "math_fidelity", "hifi2"),
    ("TT_TORCH_FP32_DEST_ACC_EN", "0", "fp32_dest_acc_en", False),
    ("TT_TORCH_PRECISION", '{"a": {"weight_dtype": null}}', "precision", (("a", (("weight_dtype", None),)),)),
    (
        "TT_TORCH_OPTIMIZER_OVERRIDES",
        "override-output-layout=a=l1,b=8x8:block_sharded insert-memreconfig=a=0:1",
        "optimizer_overrides",
        (
            ("a", (("override_output_layout", "l1"),)),
            ("b", (("override_output_layout", "8x8:block_sharded"),)),
            ("a", (("insert_memreconfig", "0:1"),)),
        ),
    ),
    ("TT_TORCH_IR_LOG_LEVEL", "debug", "ir_log_level", "DEBUG"),
    ("TT_TORCH_SAVE_MLIR", "STABLEHLO, ttnn", "save_mlir", ("STABLEHLO", "TTNN")),
    ("TT_TORCH_SAVE_BINARY", "true", "save_binary", True),
    ("TT_TORCH_ARCH", "blackhole", "arch", "blackhole"),
    ("TT_TORCH_DEVICE", "ttnn", "device", "ttnn"),
    ("TT_TORCH_TTNN_PYTHON", "/opt/python3.12", "ttnn_python", "/opt/python3.12"),
    ("TT_TORCH_DEVICE_TIMEOUT", "60", "device_timeout", 60.0),
    ("TT_TORCH_ENABLE_TRACE", "1", "enable_trace", True),
    ("TT_TORCH_TRACE_REGION_SIZE", "4096", "trace_region_size", 4096),
    ("TT_TORCH_SCHEMA", "433d79f9", "schema", "433d79f9"),
    ("TT_TORCH_REPRO_DIR", "/tmp/x", "repro_dir", "/tmp/x"),
    ("TT_TORCH_COMPILER", "tt-mlir", "compiler", "tt-mlir"),
    ("TT_TORCH_PJRT_PLUGIN", "/tmp/libtt.so", "pjrt_plugin", "/tmp/libtt.so"),
    (
        "TT_TORCH_TT_MLIR_OPTIONS",
        "math_fidelity=lofi, a=b=1",
        "tt_mlir_options",
        (("math_fidelity", "lofi"), ("a", "b=1")),
    ),
    ("TT_TORCH_TT_MLIR_TIMEOUT", "9", "tt_mlir_timeout", 9.0),
    ("TT_TORCH_SYSTEM_DESC", "/tmp/x.ttsys", "system_desc", "/tmp/x.ttsys"),
    ("TT_TORCH_VERIFY_IR", "yes", "verify_ir", True),
    ("TT_TORCH_CACHE_DIR", "/tmp/x", "cache_dir", "/tmp/x"),
    ("TT_TORCH_CACHE_SIZE", "0", "cache_size", 0),
]

BAD_VARIABLES = [
    ("RTI_PCC_FAIL_THRESH", "high"),
    ("RUN_GLOBAL_OP_IDX", "-1"),
    ("RUN_GLOBAL_OP_IDX", "first"),
    ("TT_TORCH_REQUIRED_PCC", "2"),
    ("TT_TORCH_REQUIRED_PCC", "nan"),
    ("TT_TORCH_REQUIRED_PCC", "inf"),
    ("TT_TORCH_JOBS", "-1"),
    ("TT_TORCH_COMPILE_DEPTH", "OP_BY_OP"),
    ("TT_TORCH_JOBS", "many"),
    ("TT_TORCH_CONSTEVAL", "maybe"),
    ("TT_TORCH_DTYPE", "fp16"),
    ("TT_TORCH_FALLBACK", "cpu"),
    ("TT_TORCH_SAVE_MLIR", "TTIR,LLVM"),
    ("TT_TORCH_SCHEMA", "latest"),
    ("TT_TORCH_TT_MLIR_OPTIONS", "lofi"),
    ("TT_TORCH_TT_MLIR_OPTIONS", "=lofi"),
    ("TT_TORCH_CACHE_SIZE", "1G"),
]


@pytest.mark.parametrize(("name", "given", "stored"), ACCEPTED)
def test_accepts_and_normalises(name, given, stored):
    assert getattr(CompilerConfig(**{name: given}), name) == stored


@pytest.mark.parametrize(("name", "given"), REFUSED)
def test_refuses_with_the_option_and_what_it_takes(name, given):
    with pytest.raises(ConfigError, match=f"{name}=.* is not accepted; it takes "):
        CompilerConfig(**{name: given})


@pytest.mark.parametrize(("variable", "text", "name", "value"), VARIABLES)
def test_variable_wins_over_code(variable, text, name, value):
    base = CompilerConfig(dtype="bf16")
    assert getattr(base.with_env({variable: text}), name) == value
    assert base.with_env({variable: ""}) == base


@pytest.mark.parametrize(("variable", "text"), BAD_VARIABLES)
def test_bad_variable_is_named(variable, text):
    with pytest.raises(ConfigError, match=f"{variable}='{text}' is not accepted; it takes "):
        CompilerConfig().with_env({variable: text})


def test_every_variable_has_a_case():
    declared = {name for field in dataclasses.fields(CompilerConfig) for name in variables(field)}
    assert declared == {row[0] for row in VARIABLES}


def test_our_variable_wins_over_that_of_tt_torch():
    both = {"TT_TORCH_REQUIRED_PCC": "0.9", "RTI_PCC_FAIL_THRESH": "0.5"}
    assert CompilerConfig().with_env(both).required_pcc == 0.9
    assert CompilerConfig().with_env(both | {"TT_TORCH_REQUIRED_PCC": ""}).required_pcc == 0.5


def test_from_env_reads_the_process_environment(monkeypatch):
    monkeypatch.setenv("TT_TORCH_ARCH", "blackhole")
    assert CompilerConfig.from_env().arch == "blackhole"
    assert CompilerConfig.from_env(CompilerConfig(dtype="f32")).dtype == "f32"


@pytest.mark.parametrize(("name", "given", "stored"), ACCEPTED)
def test_assignment_normalises_as_construction_does(name, given, stored):
    config = CompilerConfig()
    setattr(config, name, given)
    assert getattr(config, name) == stored
    assert config == CompilerConfig(**{name: given})


@pytest.mark.parametrize(("name", "given"), REFUSED)
def test_assignment_refuses_with_the_message_of_construction(name, given):
    config = CompilerConfig()
    with pytest.raises(ConfigError) as built:
        CompilerConfig(**{name: given})
    with pytest.raises(ConfigError) as assigned:
        setattr(config, name, given)
    assert str(assigned.value) == str(built.value)
    assert config == CompilerConfig()


def test_no_option_of_an_unknown_name():
    with pytest.raises(AttributeError, match="has no option 'enable_constevall'; did you mean 'enable_consteval'\\?"):
        CompilerConfig().enable_constevall = True
    with pytest.raises(AttributeError, match="no option 'set_compile_depth'; did you mean 'compile_depth'"):
        CompilerConfig().set_compile_depth = 1  # a method


@pytest.mark.parametrize("config", [CompilerConfig(dtype="bf16"), CompilerConfig(dtype="bf16").frozen()])
def test_no_option_can_be_deleted(config):
    with pytest.raises(AttributeError, match="'dtype' cannot be deleted"):
        del config.dtype
    assert config.dtype == "bf16"


def test_a_value_that_went_round_the_check_is_found_at_the_compilation():
    config = CompilerConfig()
    vars(config)["dtype"] = "fp16"
    with pytest.raises(ConfigError, match="dtype='fp16'"):
        config.with_env()


def test_options_that_exclude_each_other_do_so_in_any_order():
    watched, on_ttnn = CompilerConfig(bisect=True), CompilerConfig(device="ttnn")
    with pytest.raises(ConfigError, match=r'device=.*"emulated" if single ops are watched'):
        watched.device = "ttnn"
    with pytest.raises(ConfigError, match=r'device=.*"emulated" if single ops are watched'):
        on_ttnn.bisect = True
    assert (watched.device, on_ttnn.bisect) == ("emulated", False)


def test_a_compilation_reads_a_frozen_copy():
    config = CompilerConfig(dtype="bf16")
    used = config.with_env({})
    config.dtype = "f32"
    assert used.dtype == "bf16"
    for copied in (used, copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        with pytest.raises(dataclasses.FrozenInstanceError, match="'dtype' belongs to a compilation"):
            copied.dtype = "f32"
        assert copied == used and hash(copied) == hash(used)
    with pytest.raises(TypeError, match="has no hash"):
        hash(config)
    changed = dataclasses.replace(used, dtype=None)
    changed.dtype = "f32"


def test_an_assignment_after_the_compilation_changes_nothing():
    config = CompilerConfig()
    config.dtype = "bf16"
    x = torch.tensor([1.001])  # 1.0 in bf16
    doubled = torch.compile(lambda x: x * 2, backend=backend, options=BackendOptions(compiler_config=config))
    before = doubled(x)
    config.dtype = None
    assert before == doubled(x) == 2.0
    torch._dynamo.reset()
    assert doubled(x) == x * 2


def test_config_is_plain_as_dict():
    config = CompilerConfig(save_mlir=("TTIR",), model_name="org/my model")
    assert json.loads(json.dumps(config.to_dict()))["compile_depth"] == "EXECUTE"
    assert config.file_stem == "org_my_model"


def test_docs_are_current():
    page = Path(__file__).parents[1] / "docs" / "controlling.md"
    assert page.read_text(encoding="utf-8") == config_docs.render(), "run python -m tt_torch.tools.config_docs"

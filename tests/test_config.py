"""CompilerConfig and BackendOptions: defaults, validation, environment variables, generated docs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.errors import ConfigError
from tt_torch.tools import config_docs

ACCEPTED = [
    ("compile_depth", 3, CompileDepth.TTNN_IR),
    ("dtype", "bf16", "bf16"),
    ("weight_dtype", "bfp8_b", "bfp8_b"),
    ("save_mlir", ["ttir", "TTNN", "ttir"], ("TTIR", "TTNN")),
    ("mesh_shape", [1, 2], (1, 2)),
    ("arch", "blackhole", "blackhole"),
    ("schema", "433d79f9", "433d79f9"),
    ("repro_dir", Path("a") / "b", "a/b"),
]

REFUSED = [
    ("compile_depth", 7),
    ("op_by_op_backend", 3),
    ("single_op_timeout", 0),
    ("single_op_timeout", "30"),
    ("jobs", -1),
    ("jobs", 1.5),
    ("jobs", True),
    ("enable_consteval", 1),
    ("dtype", "fp16"),
    ("dtype", ["bf16"]),
    ("weight_dtype", "bfp4_b"),
    ("save_mlir", "TTIR"),
    ("save_mlir", ["LLVM"]),
    ("save_mlir", [1]),
    ("mesh_shape", (1,)),
    ("mesh_shape", (0, 1)),
    ("mesh_shape", 2),
    ("schema", "a hash"),
    ("schema", None),
    ("output_mlir_dir", ""),
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
    ("TT_TORCH_PROFILE", "/tmp/x", "profile", "/tmp/x"),
    ("TT_TORCH_COMPARE_WEIGHTS", "1", "compare_weights", True),
    ("TT_TORCH_RESULTS_PATH", "/tmp/x", "results_path", "/tmp/x"),
    ("TT_TORCH_CONSTEVAL", "0", "enable_consteval", False),
    ("TT_TORCH_OPTIMIZER", "on", "enable_optimizer", True),
    ("TT_TORCH_DTYPE", "none", "dtype", None),
    ("TT_TORCH_WEIGHT_DTYPE", "bfp8_b", "weight_dtype", "bfp8_b"),
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
    ("TT_TORCH_SYSTEM_DESC", "/tmp/x.ttsys", "system_desc", "/tmp/x.ttsys"),
    ("TT_TORCH_VERIFY_IR", "yes", "verify_ir", True),
]

BAD_VARIABLES = [
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
    declared = {field.metadata["env"] for field in dataclasses.fields(CompilerConfig)} - {None}
    assert declared == {row[0] for row in VARIABLES}


def test_from_env_reads_the_process_environment(monkeypatch):
    monkeypatch.setenv("TT_TORCH_ARCH", "blackhole")
    assert CompilerConfig.from_env().arch == "blackhole"
    assert CompilerConfig.from_env(CompilerConfig(dtype="f32")).dtype == "f32"


def test_config_is_immutable_hashable_and_plain_as_dict():
    config = CompilerConfig(save_mlir=("TTIR",), model_name="org/my model")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.dtype = "bf16"
    assert hash(config) == hash(dataclasses.replace(config))
    assert json.loads(json.dumps(config.to_dict()))["compile_depth"] == "EXECUTE"
    assert config.file_stem == "org_my_model"


def test_dump_levels():
    levels = [CompilerConfig(ir_log_level=level) for level in (None, "INFO", "DEBUG")]
    assert [(c.dump_info, c.dump_debug) for c in levels] == [(False, False), (True, False), (True, True)]


def test_backend_options():
    first, second = BackendOptions(), BackendOptions()
    assert first.devices == [None] and first.devices is not second.devices
    for bad in ({"async_mode": True}, {"devices": []}, {"devices": None}, {"compiler_config": {}}):
        with pytest.raises(ConfigError):
            BackendOptions(**bad)


def test_docs_are_current():
    page = Path(__file__).parents[1] / "docs" / "controlling.md"
    assert page.read_text(encoding="utf-8") == config_docs.render(), "run python -m tt_torch.tools.config_docs"

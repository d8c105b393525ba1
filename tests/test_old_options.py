"""Names of tt-torch's CompilerConfig: what each sets, returns or refuses, and that none is accepted and ignored."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft202012Validator

import tt_torch
from tt_torch import user_code
from tt_torch.bringup.records import new_record
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.errors import ConfigError, OpByOpError
from tt_torch.old_options import Alias, Always, Foreign, OldOptionWarning, Output, rows
from tt_torch.records.op_by_op import LONGEST_TEXT, SCHEMA
from tt_torch.wire.decode import decode

# Each alias, the value that is assigned to it, its option, and the option's value after the assignment.
ALIASES: list[tuple[str, Any, str, Any]] = [
    ("dump_info", True, "ir_log_level", "INFO"),
    ("dump_debug", True, "ir_log_level", "DEBUG"),
    ("dump_binary", True, "save_binary", True),
    ("save_mlir_override", ["ttir", "TTNN"], "save_mlir", ("TTIR", "TTNN")),
    ("save_mlir_override", "TTIR", "save_mlir", ("TTIR",)),
    ("save_mlir_override", "STABLEHLO, TTNN", "save_mlir", ("STABLEHLO", "TTNN")),
]

# A value that each name refuses.
REFUSED: list[tuple[str, Any]] = [
    ("dump_info", "yes"),
    ("dump_debug", None),
    ("dump_binary", 1),
    ("save_mlir_override", "TTIR,LLVM"),
    ("save_mlir_override", ["LLVM"]),
    ("save_mlir_override", True),
    ("save_mlir_override", False),
    ("record_property", "print"),
    ("unique_ops", None),
    ("runtime_intermediate_cache", []),
    ("torch_mlir_module", 1),
    ("stablehlo_mlir_module", 1),
    ("typecast_inputs", 0),
    ("cache_preprocessed_constants", None),
    ("push_outputs_to_cpu", "no"),
    ("arg_type_map_override", 1),
    ("inline_parameters", 1),
    ("valid_dialects", "TTIR"),
    ("stable_hlo_ops", {}),
    ("xla_mesh", (2, 4)),
    ("xla_mesh", torch.ones(2)),
]


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_once", set())


def named(kind: type) -> list[str]:
    return [name for name, row in rows().items() if isinstance(row, kind)]


def compiled(config: CompilerConfig, function: Any = lambda x: x * 2 + 1) -> Any:
    return torch.compile(function, backend=tt_torch.backend, options=BackendOptions(compiler_config=config))


def test_each_name_has_its_cases():
    assert {row[0] for row in REFUSED} == set(rows())
    assert {row[0] for row in ALIASES} == set(named(Alias))
    assert not set(rows()) & {field.name for field in dataclasses.fields(CompilerConfig)}


@pytest.mark.parametrize(("name", "given", "option", "stored"), ALIASES)
def test_an_alias_writes_and_reads_its_option(name, given, option, stored):
    config = CompilerConfig()
    assert not getattr(config, name)
    setattr(config, name, given)
    assert getattr(config, option) == stored and getattr(config, name)
    setattr(config, name, None if name == "save_mlir_override" else False)
    assert not getattr(config, name)


def test_both_levels_of_printing():
    config, levels = CompilerConfig(), []
    for name, on in (("dump_info", True), ("dump_debug", True), ("dump_info", True), ("dump_debug", False)):
        setattr(config, name, on)
        levels.append((config.ir_log_level, config.dump_info, config.dump_debug))
    assert levels == [("INFO", True, False), ("DEBUG", True, True), ("DEBUG", True, True), ("INFO", True, False)]
    config.dump_info = False
    assert config.ir_log_level is None


@pytest.mark.parametrize(("name", "given"), REFUSED)
def test_a_refused_value_names_what_was_written(name, given):
    config = CompilerConfig()
    before = getattr(config, name)
    with pytest.raises(ConfigError, match=f"^{name}=.* is not accepted; it takes "):
        setattr(config, name, given)
    assert config == CompilerConfig() and getattr(config, name) == before


@pytest.mark.parametrize("name", named(Foreign))
def test_what_only_torch_xla_has_is_refused(name):
    config = CompilerConfig()
    setattr(config, name, copy.copy(getattr(config, name)))  # tt-torch's default
    with pytest.raises(ConfigError, match="because torch_xla is not used here: split tensors as DTensors"):
        setattr(config, name, "given")


@pytest.mark.parametrize("name", named(Always))
def test_a_value_that_does_not_hold_warns_once(name):
    config, row = CompilerConfig(), rows()[name]
    other = (not row.value) if isinstance(row.value, bool) else ["other"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        setattr(config, name, row.value)
    with pytest.warns(OldOptionWarning) as told:
        for _ in range(2):
            setattr(config, name, other)
            setattr(CompilerConfig(), name, other)
    (warning,) = told
    assert str(warning.message).startswith(f"{name}=") and row.reason in str(warning.message)
    assert warning.filename == __file__
    assert getattr(config, name) == row.value


@pytest.mark.parametrize("name", rows())
def test_a_frozen_copy_refuses_each_name(name):
    frozen = CompilerConfig().frozen()
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"'{name}' belongs to a compilation"):
        setattr(frozen, name, getattr(frozen, name))


def test_a_misspelt_name_gets_the_nearest_one():
    with pytest.raises(AttributeError, match="no option 'typecast_input'; did you mean 'typecast_inputs'"):
        CompilerConfig().typecast_input = True


def test_a_variable_of_a_name_without_meaning_warns():
    with pytest.warns(OldOptionWarning, match="^TT_TORCH_INLINE_PARAMETERS=True has no effect here"):
        assert CompilerConfig().with_env({"TT_TORCH_INLINE_PARAMETERS": "1"}) == CompilerConfig()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CompilerConfig().with_env({"TT_TORCH_INLINE_PARAMETERS": "0"})
    with pytest.raises(ConfigError, match="TT_TORCH_INLINE_PARAMETERS='maybe'"):
        CompilerConfig().with_env({"TT_TORCH_INLINE_PARAMETERS": "maybe"})


def test_a_compilation_tells_how_far_it_came():
    told: list[tuple[str, object]] = []
    config = CompilerConfig()
    config.record_property = lambda *what: told.append(what)
    compiled(config)(torch.ones(3))
    depth = "achieved_compile_depth"
    assert told == [(depth, "STABLEHLO"), (depth, "TTNN_IR")]
    del told[:]
    config.compile_depth = CompileDepth.STABLEHLO
    torch._dynamo.reset()
    compiled(config)(torch.ones(3))
    assert told == [(depth, "STABLEHLO")]
    config.record_property = None  # ModelTester without pytest's fixture
    torch._dynamo.reset()
    compiled(config)(torch.ones(3))
    assert len(told) == 1


def test_the_text_of_the_modules_stays_on_the_config():
    config = CompilerConfig()
    assert config.torch_mlir_module is None
    compiled(config)(torch.ones(3))
    assert "torch.aten.mul" in config.torch_mlir_module and "stablehlo." in config.stablehlo_mlir_module
    silent = CompilerConfig()
    silent.set_profile_ops(False)
    torch._dynamo.reset()
    compiled(silent)(torch.ones(3))
    assert silent.torch_mlir_module is silent.stablehlo_mlir_module is None


def test_the_text_is_that_of_the_program_and_not_of_the_check_of_its_integers():
    config = CompilerConfig()
    tt_torch.compile_model(lambda x: (x.exp().to(torch.int64), x.sin()), (torch.randn(3),), config)
    assert "stablehlo.sine" in config.stablehlo_mlir_module


def test_configs_share_no_outputs():
    config = CompilerConfig(dtype="bf16")
    config.unique_ops["a"] = {}
    config.record_property = print
    copies = [copy.copy(config), copy.deepcopy(config), dataclasses.replace(config), CompilerConfig(dtype="bf16")]
    config.record_property = lambda name, value: None  # it cannot be pickled
    copies.append(pickle.loads(pickle.dumps(config)))
    for other in copies:
        assert other == config and other.unique_ops == {} and other.record_property is None
    assert config.frozen(dtype=None).with_env({}).unique_ops is config.unique_ops
    assert "record_property" not in json.dumps(config.to_dict())
    config.reset_unique_ops()
    assert config.unique_ops == {}


def test_recorded_ops_are_saved_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * (LONGEST_TEXT + 7)
    config = CompilerConfig(model_name="org/m", results_path=str(tmp_path), check_all_ops_execute=True)
    executed = new_record(config, "aten.sin.default", 0) | {"compilation_status": 7, "ttnn_graph": long}
    failed = new_record(config, "aten.cos.default", 1) | {"ttnn_graph": long}
    config.unique_ops |= {"sin": executed, "cos": failed}
    with pytest.raises(OpByOpError, match=r"(?s)1 op was not executed; .*org_m_unique_ops.json.*aten.cos.default: not"):
        config.save_unique_ops()
    assert capsys.readouterr().err == f"1/2 ops executed: {tmp_path / 'org_m_unique_ops.json'}\n"
    document = json.loads((tmp_path / "org_m_unique_ops.json").read_text())
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    assert document["ops"]["cos"] == failed and executed["ttnn_graph"] == long
    cut = f"{long[:LONGEST_TEXT]}... [truncated from {len(long)} chars]"
    assert document["ops"]["sin"] == executed | {"ttnn_graph": cut}
    config.dump_info = True
    config.truncate_op_dict_fields(executed)
    assert executed["ttnn_graph"] == long
    config.reset_unique_ops()
    config.save_unique_ops()
    assert json.loads((tmp_path / "org_m_unique_ops.json").read_text())["ops"] == {}
    with pytest.raises(ConfigError, match="the results of the model 'org/m'"):
        CompilerConfig(model_name="org_m", results_path=str(tmp_path)).save_unique_ops()


def test_old_files_of_a_model_are_removed(tmp_path: Path) -> None:
    config = CompilerConfig(output_mlir_dir=str(tmp_path), output_binary_dir=str(tmp_path), model_name="m")
    config.save_mlir_override, config.dump_binary = ["TTIR", "TTNN"], True
    compiled(config)(torch.ones(3))
    others = ("m_1_2_ttir.mlir", "m_1_stablehlo.mlir", "m_x.ttnn", "m_1_2.ttnn", "n_1_ttir.mlir", "m_1_ttirs.mlir")
    for name in others:
        (tmp_path / name).touch()
    assert len(list(tmp_path.iterdir())) == len(others) + 3
    config.dump_binary = False
    config.cleanup_old_files()
    assert len(list(tmp_path.iterdir())) == len(others) + 1
    config.dump_binary = True
    config.cleanup_old_files()
    assert {path.name for path in tmp_path.iterdir()} == {*others}
    config.model_name = ""
    config.cleanup_old_files()


def test_the_other_methods_assign() -> None:
    config = CompilerConfig()
    config.post_init()
    config.set_torch_mlir_module("module")
    config.set_stablehlo_mlir_module("stablehlo")
    assert (config.torch_mlir_module, config.stablehlo_mlir_module) == ("module", "stablehlo")
    with pytest.raises(ConfigError):
        config.set_torch_mlir_module(3)


@pytest.mark.parametrize("name", named(Output))
def test_an_output_can_be_begun_anew(name):
    config = CompilerConfig()
    begun = getattr(config, name)
    setattr(config, name, begun)
    assert getattr(config, name) is begun


def test_environment_overrides_are_assigned(monkeypatch):
    monkeypatch.setenv("TT_TORCH_COMPILE_DEPTH", "TTNN_IR")
    config = CompilerConfig()
    config.set_compile_depth(CompileDepth.STABLEHLO)
    config.apply_environment_overrides()
    assert config.compile_depth == CompileDepth.TTNN_IR
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.frozen().apply_environment_overrides()


class Folded(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.weight.exp() + 1) + torch.arange(8.0).cos()


@pytest.mark.parametrize(("parameters", "fold", "expected"), [(True, True, 1), (False, True, 0), (True, False, 0)])
def test_const_eval_covers_parameters_if_asked(parameters, fold, expected):
    model, x = Folded().eval(), torch.randn(4, 8)
    config = CompilerConfig()
    config.enable_consteval = fold
    config.consteval_parameters = parameters
    program = tt_torch.compile_model(model, (x,), config)
    functions = [p["name"] for p in decode(program.binary)["programs"] if "const_eval" in p["name"]]
    exponentials = {p["name"] for p in decode(program.binary)["programs"] if "exp" in str(p).lower()}
    assert any("const_eval" in name for name in exponentials) == bool(expected), functions
    for _ in range(2):
        torch.testing.assert_close(program(x), model(x))
        with torch.no_grad():
            model.weight.add_(0.5)  # seen at the next call

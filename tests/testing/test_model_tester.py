"""ModelTester: what it compares, records and returns."""

from __future__ import annotations

import json
import types
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from tests.testing.testers import MlpTester, Noting
from tt_torch.config import CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.errors import NoCounterpartError
from tt_torch.testing import ModelTester, OnnxModelTester


class WrongOnce(nn.Module):
    """A model that gives other results when it is compiled."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x if torch.compiler.is_compiling() else x


def made_of(model: object, inputs: object, **options) -> ModelTester:
    loader = types.SimpleNamespace(load_model=lambda: model, load_inputs=lambda: inputs)
    return ModelTester("m", options.pop("mode", "eval"), loader=loader, **options)


# --- results and records --------------------------------------------------------------------------


def test_a_model_that_is_right():
    note = Noting()
    tester = MlpTester("org/mlp", "eval", record_property_handle=note, model_group="red", model_name_suffix="-b3")
    results = tester.test_model()
    torch.testing.assert_close(results, tester.framework_model(tester.inputs))
    tester.finalize()
    assert note.all("achieved_compile_depth") == ["STABLEHLO", "TTNN_IR", "EXECUTE", "PASSED"]
    names = {name: note.all(name) for name in ("model_name", "frontend", "owner", "group")}
    assert names == {"model_name": ["org/mlp-b3"], "frontend": ["tt-torch"], "owner": ["tt-torch"], "group": ["red"]}
    (config,), (tags,) = note.all("config"), note.all("tags")
    assert (config["compiler_config"]["model_name"], config["compiler_config"]["model_group"]) == ("org/mlp", "red")
    assert json.loads(json.dumps(config)) == config
    assert tags["bringup_status"] == "PASSED" and tags["pcc"] == tags["min_pccs"] > 0.9999
    assert tags["model_name"] == "org/mlp-b3" and tags["parallelism"] == "single_device"
    assert (tags["required_pcc"], tags["required_atol"], tags["atol"]) == (0.99, 0.01, tags["atols"][0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "PCC -1.*; difference"),
        ({"assert_atol": False}, "PCC -1"),
        ({"assert_pcc": False}, "difference .* required 0.01"),
        ({"assert_pcc": False, "relative_atol": 0.5}, "required 0.5 of the largest value"),
        ({"assert_pcc": False, "assert_atol": False}, None),
        ({"assert_pcc": False, "relative_atol": 2.0}, None),
    ],
)
def test_a_wrong_result_fails_the_test_after_it_is_recorded(options, message):
    note = Noting()
    tester = made_of(WrongOnce(), torch.randn(8), record_property_handle=note, **options)
    tester.test_model()
    if message is None:
        tester.finalize()
    else:
        with pytest.raises(AssertionError, match=message):
            tester.finalize()
    (tags,) = note.all("tags")
    assert tags["pcc"] == pytest.approx(-1) and tags["atol"] > 0.1
    assert ("PASSED" in note.all("achieved_compile_depth")) == (message is None)
    assert tags["bringup_status"] == ("INCORRECT_RESULT" if message else "PASSED")


def test_what_is_known_is_recorded_before_the_model_is_made():
    note = Noting()

    class Broken(ModelTester):
        def _load_model(self):
            raise OSError("no such model")

    with pytest.raises(OSError, match="no such model"):
        Broken("broken", "eval", record_property_handle=note)
    assert note.all("model_name") == ["broken"] and note.all("config")


def test_without_the_device_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch):
    note = Noting()
    tester = MlpTester("mlp", "eval", record_property_handle=note)
    monkeypatch.setattr(tester, "compile_model", None)
    tester.test_model(on_device=False)
    tester.finalize()
    assert note.all("achieved_compile_depth") == ["EXECUTE", "PASSED"]


def test_shapes_that_differ_are_a_failure():
    class Longer(nn.Module):
        def forward(self, x):
            return torch.cat([x, x]) if torch.compiler.is_compiling() else x

    tester = made_of(Longer(), torch.randn(8))
    tester.test_model()
    with pytest.raises(AssertionError, match="Shape of output 0 differs"):
        tester.finalize()


def test_a_model_without_results_is_a_failure():
    class Nothing(nn.Module):
        def forward(self, x):
            return None

    tester = made_of(Nothing(), torch.randn(8))
    tester.test_model()
    with pytest.raises(AssertionError, match="nothing that can be compared"):
        tester.finalize()
    tester = made_of(lambda x: x if torch.compiler.is_compiling() else None, torch.randn(8))
    tester.test_model()
    with pytest.raises(AssertionError, match="Number of outputs differs: got 1, expected 0"):
        tester.finalize()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (nn.ReLU(), {"required_pcc": None}, "required_pcc is a number, not None"),
        (nn.ReLU(), {"relative_atol": "0.1"}, "relative_atol is a number, not '0.1'"),
        (torch.relu, {"mode": "train"}, "the mode 'train' is for modules, not for <built-in"),
        (nn.Threshold(0.1, 20, True), {"mode": "train", "inputs": [torch.ones(2).int()]}, "tensors of a float type"),
    ],
)
def test_what_a_tester_cannot_do_is_said(model, options, message):
    with pytest.raises(ValueError, match=message):
        made_of(model, options.pop("inputs", torch.ones(2)), **options).test_model()


def test_each_run_has_its_own_copies_of_the_inputs():
    class Writes(nn.Module):
        def forward(self, x):
            return x.add_(1)

    tester = made_of(Writes(), torch.zeros(4))
    assert torch.equal(tester.test_model(), torch.ones(4))
    tester.finalize()
    assert torch.equal(tester.inputs, torch.zeros(4))


@pytest.mark.parametrize("inputs", [{"x": torch.ones(3), "y": torch.ones(3)}, (torch.ones(3), torch.ones(3))])
def test_inputs_by_name_and_by_position(inputs):
    class Two(nn.Module):
        def forward(self, x, y):
            return {"sum": x + y, "pair": (x, [y * 2])}

    tester = made_of(Two(), inputs)
    tester.test_model()
    tester.finalize()
    assert len(tester.pccs) == 3


def test_outputs_are_made_flat():
    cache = types.SimpleNamespace(layers=[types.SimpleNamespace(keys=torch.ones(1), values=None)])
    output = types.SimpleNamespace(to_tuple=lambda: (torch.zeros(2), (cache, None)))
    nested = [torch.ones(3), {"a": np.arange(2), "b": (1, 2.5, True, "text")}, output]
    found = MlpTester("mlp", "eval")._extract_outputs(nested)
    plain_values = [v.tolist() if isinstance(v, torch.Tensor) else v for v in found]
    assert plain_values == [[1.0] * 3, [0, 1], 1, 2.5, True, "text", [0.0, 0.0], [1.0]]


# --- modes and depths -------------------------------------------------------------------------------


def test_training_compares_the_gradients_of_the_inputs():
    note = Noting()
    tester = MlpTester("mlp", "train", record_property_handle=note)
    gradient = tester.test_model()
    tester.finalize()
    x = tester.inputs.clone().requires_grad_(True)
    tester.framework_model(x).mean().backward()
    torch.testing.assert_close(gradient, x.grad)
    assert tester.pccs[0] > 0.9999 and note.all("achieved_compile_depth")[-1] == "PASSED"


def test_a_wrong_gradient_is_found():
    class Wrong(nn.Module):
        def forward(self, x):
            return x * (2 if torch.compiler.is_compiling() else x.detach())

    tester = made_of(Wrong(), torch.randn(8), mode="train")
    tester.test_model()
    with pytest.raises(AssertionError, match="PCC"):
        tester.finalize()


@pytest.mark.parametrize("depth", [CompileDepth.STABLEHLO, CompileDepth.TTNN_IR])
def test_below_execute_nothing_is_compared(depth: CompileDepth):
    note = Noting()
    config = CompilerConfig(compile_depth=depth)
    tester = made_of(WrongOnce(), torch.randn(8), compiler_config=config, record_property_handle=note)
    tester.test_model()
    tester.finalize()
    (tags,) = note.all("tags")
    assert (tags["pccs"], tags["pcc"]) == ([], -1)
    assert tags["bringup_status"] == ("FAILED_TTMLIR_COMPILATION" if depth.name == "STABLEHLO" else "FAILED_RUNTIME")


@pytest.mark.parametrize("kind", OpByOpBackend)
def test_op_by_op(tmp_path: Path, kind: OpByOpBackend):
    config = CompilerConfig(compile_depth=CompileDepth.EXECUTE_OP_BY_OP, op_by_op_backend=kind, jobs=1)
    config.results_path = str(tmp_path)
    note = Noting()
    tester = MlpTester("mlp", "eval", compiler_config=config, model_group="red", record_property_handle=note)
    torch.testing.assert_close(tester.test_model(), tester.framework_model(tester.inputs))
    tester.finalize()
    document = json.loads((tmp_path / "mlp_unique_ops.json").read_bytes())
    ops = document["ops"].values()
    assert {(op["model_group"], op["backend"], op["compilation_status"]) for op in ops} == {
        ("red", kind.name.lower(), 7)
    }
    names = {op["framework_op_name"] for op in ops}
    assert names >= ({"aten.addmm.default", "aten.gelu.default"} if kind == OpByOpBackend.TORCH else {"stablehlo.dot"})
    assert note.all("tags")[0]["bringup_status"] == "INCORRECT_RESULT"


def test_the_environment_chooses_the_depth(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TT_TORCH_COMPILE_DEPTH", "STABLEHLO")
    tester = made_of(WrongOnce(), torch.randn(8))
    tester.test_model()
    tester.finalize()
    assert not tester.compared and not tester.pccs


class Counter(nn.Module):
    """Generates tokens. Each token is the previous token plus one. With `wrong`, the compiled model adds two."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__()
        self.wrong, self.calls = wrong, []

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        step = 2 if self.wrong and torch.compiler.is_compiling() else 1
        return tokens[:, -1:] + step

    def generate(self, tokens: torch.Tensor) -> torch.Tensor:
        self.calls.append("forward" in vars(self))
        for _ in range(2):
            tokens = torch.cat([tokens, self(tokens)], 1)
        return tokens


class Decoder:
    def batch_decode(self, tokens, skip_special_tokens):
        assert skip_special_tokens
        return [" ".join(map(str, row.tolist())) for row in tokens]


class Generator(ModelTester):
    wrong = False

    def _load_model(self):
        self.tokenizer = Decoder()
        return Counter(self.wrong)

    def _load_inputs(self):
        return {"tokens": torch.tensor([[1, 2], [3, 4]])}


class WrongGenerator(Generator):
    wrong = True


def test_generated_texts_are_compared():
    tester = Generator("generator", "eval", run_generate=True, is_token_output=True)
    assert tester.test_model().tolist() == [[1, 2, 3, 4], [3, 4, 5, 6]]
    tester.finalize()
    assert tester.framework_model.calls == [False, True] and "forward" not in vars(tester.framework_model)
    wrong = WrongGenerator("generator", "eval", run_generate=True, is_token_output=True)
    wrong.test_model()
    with pytest.raises(AssertionError, match=r"the device gives \['1 2 4 6'.*eager PyTorch \['1 2 3 4'"):
        wrong.finalize()
    ignored = WrongGenerator("generator", "eval", run_generate=True, is_token_output=True)
    ignored.test_model(assert_eval_token_mismatch=False)
    ignored.finalize()


def test_compiled_programs_of_a_test_are_forgotten():
    """Twelve models of one class, each with its own shape, do not reach Dynamo's limit of eight programs."""
    for size in range(1, 13):
        tester = made_of(nn.ReLU(), torch.randn(size, 2))
        tester.test_model()
        tester.finalize()


# --- ONNX -------------------------------------------------------------------------------------------


class OnnxTester(OnnxModelTester):
    def _load_model(self):
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("a.x", "b", "o")]
        graph = helper.make_graph([helper.make_node("Sub", ["a.x", "b"], ["o"])], "g", values[:2], values[2:])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])

    def _load_torch_inputs(self):
        return torch.arange(4.0), torch.ones(4)


class OpenOnnxTester(OnnxTester):
    def _load_model(self):
        model = super()._load_model()
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_param = "n"
        return model


class NamedOnnxTester(OpenOnnxTester):
    def _load_torch_inputs(self):
        return {"b": torch.ones(4), "a.x": torch.arange(4.0)}


@pytest.mark.parametrize("kind", [OnnxTester, OpenOnnxTester, NamedOnnxTester])
def test_an_onnx_model(kind: type[OnnxModelTester]):
    note = Noting()
    tester = kind("subtract", "eval", record_property_handle=note)
    assert isinstance(tester.framework_model, onnx.ModelProto)
    (result,) = tester.test_model()
    assert result.tolist() == [-1.0, 0.0, 1.0, 2.0]
    tester.finalize()
    assert note.all("tags")[0]["bringup_status"] == "PASSED"


def test_an_onnx_model_op_by_op(tmp_path: Path):
    config = CompilerConfig(
        compile_depth=CompileDepth.EXECUTE_OP_BY_OP, op_by_op_backend=OpByOpBackend.STABLEHLO, jobs=1
    )
    config.results_path = str(tmp_path)
    tester = OnnxTester("subtract", "eval", compiler_config=config)
    (result,) = tester.test_model()
    tester.finalize()
    assert result.tolist() == [-1.0, 0.0, 1.0, 2.0]
    (op,) = json.loads((tmp_path / "subtract_unique_ops.json").read_bytes())["ops"].values()
    assert (op["framework_op_name"], op["compilation_status"]) == ("chlo.broadcast_subtract", 7)


# --- what is refused, and figures -------------------------------------------------------------------


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="mode is one of train, eval, not 'test'"):
        MlpTester("mlp", "test")
    with pytest.raises(ValueError, match=r"backend is one of tt, .*, not 'inductor'"):
        MlpTester("mlp", "eval", backend="inductor")
    with pytest.raises(ValueError, match="not both"):
        MlpTester("mlp", "eval", required_atol=1.0, relative_atol=1.0)
    with pytest.raises(ValueError, match="one device, not on 2"):
        MlpTester("mlp", "eval", devices=[None, None])
    with pytest.raises(ValueError, match=r"sets self\.tokenizer"):
        MlpTester("mlp", "eval", is_token_output=True)
    with pytest.raises(ValueError, match="the method generate"):
        MlpTester("mlp", "eval", run_generate=True).test_model()
    with pytest.raises(ValueError, match="whole models at the depth EXECUTE"):
        Generator("g", "eval", run_generate=True, data_parallel_mode=True).test_model()
    with pytest.raises(NoCounterpartError, match="a tester of its own"):
        OnnxTester("subtract", "eval", data_parallel_mode=True)
    with pytest.raises(NoCounterpartError, match="not trained"):
        OnnxTester("subtract", "train")
    with pytest.raises(NotImplementedError, match="_load_model"):
        ModelTester("m", "eval")

"""The option `precision`: types of weights and passes of the matrix unit by layer."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.observer import Observer
from tt_torch.driver.unmatched import PrecisionWarning
from tt_torch.errors import ConfigError
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import BLOCK_FLOATS, ops

Precision = Mapping[str, Mapping[str, Any]]
FIDELITY = {"math_fidelity": "HiFi4", "fp32_dest_acc_en": True}


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.act, self.down = nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.act(self.up(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Mlp(), Mlp()])
        self.head = nn.Linear(64, 32, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


LAYERS = ["layers.0.up", "layers.0.down", "layers.1.up", "layers.1.down", "head"]
X = torch.randn(8, 64)


def products(binary: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The type of the weight, and the compute config, of each matrix product in order."""
    found = [op for program in decode(binary)["programs"] for op in ops(program)]
    return [
        (op.operands[1].dtype, dict(op.record["compute_config"])) for op in found if op.name in ("LinearOp", "MatmulOp")
    ]


def compiled(model: nn.Module, precision: Any, **options: Any) -> list[tuple[str, dict[str, Any]]]:
    config = CompilerConfig(dtype="bf16", precision=precision, fallback="error", **options)
    with torch.no_grad():
        return products(tt_torch.compile_model(model.eval(), (X,), config).binary)


def test_each_layer_has_its_own() -> None:
    precision: Precision = {
        "layers.*": {"weight_dtype": "bfp8_b", "math_fidelity": "hifi2"},
        "layers.1.up": {"weight_dtype": "bfp4_b", "math_fidelity": "lofi"},
        "layers.1.down.weight": {"weight_dtype": None},
        "head": {"fp32_dest_acc_en": False},
    }
    two, lofi = FIDELITY | {"math_fidelity": "HiFi2"}, FIDELITY | {"math_fidelity": "LoFi"}
    assert compiled(Model(), precision) == [
        ("BFP_BFloat8", two),
        ("BFP_BFloat8", two),
        ("BFP_BFloat4", lofi),
        ("BFloat16", two),
        ("BFloat16", FIDELITY | {"fp32_dest_acc_en": False}),
    ]


NAMES = "* layers.* layers.0 layers.?.up *.down *.weight layers.1.down.weight head h*d other".split()
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "weight_dtype": st.sampled_from([None, "bfp8_b", "bfp4_b"]),
        "math_fidelity": st.sampled_from(["lofi", "hifi2", "hifi3", "hifi4"]),
        "fp32_dest_acc_en": st.booleans(),
    },
)


@settings(max_examples=15)
@given(st.dictionaries(st.sampled_from(NAMES), ENTRIES, max_size=5), ENTRIES)
def test_the_last_entry_that_matches_counts(precision: dict[str, dict[str, Any]], options: dict[str, Any]) -> None:
    expected = []
    for layer in LAYERS:
        chosen: dict[str, Any] = {"weight_dtype": None, "math_fidelity": "hifi4", "fp32_dest_acc_en": True} | options
        parts = layer.split(".")
        names = [".".join(parts[: i + 1]) for i in range(len(parts))] + [f"{layer}.weight"]
        names += [f"{layer}.bias"] if layer != "head" else []
        for pattern, entry in precision.items():
            if any(fnmatchcase(name, pattern) for name in names):
                chosen |= entry
        dtype = BLOCK_FLOATS[chosen["weight_dtype"]] if chosen["weight_dtype"] else "BFloat16"
        fidelity = chosen["math_fidelity"].replace("hifi", "HiFi").replace("lofi", "LoFi")
        expected.append((dtype, {"math_fidelity": fidelity, "fp32_dest_acc_en": chosen["fp32_dest_acc_en"]}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        assert compiled(Model(), precision, **options) == expected


def test_a_file_and_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tt_torch.dump_weight_names(Model(), tmp_path / "weights.json")
    assert list(names) == [f"{layer}.weight" for layer in LAYERS]
    assert compiled(Model(), tmp_path / "weights.json") == [("BFloat16", FIDELITY)] * 5
    (tmp_path / "weights.json").write_text(json.dumps(names | {"head.weight": {"weight_dtype": "bfp4_b"}}))
    assert compiled(Model(), str(tmp_path / "weights.json"))[-1] == ("BFP_BFloat4", FIDELITY)
    for text in ('{"head": {"weight_dtype": "bfp8_b"}}', str(tmp_path / "weights.json")):
        monkeypatch.setenv("TT_TORCH_PRECISION", text)
        assert [dtype for dtype, _ in compiled(Model(), {})][-1].startswith("BFP")


@pytest.mark.parametrize(
    "given", [{"a": {"weight_dtype": "bf8"}}, {"a": {"dtype": "bf16"}}, {3: {}}, "no.json", {"a": 1}]
)
def test_other_values_are_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"precision=.*JSON"):
        CompilerConfig(precision=given)


def test_a_pattern_that_matches_nothing_is_told() -> None:
    with pytest.warns(PrecisionWarning, match=r"matches 'head\.wieght'; did you mean 'head\.weight'"):
        compiled(Model(), {"head.wieght": {"weight_dtype": "bfp8_b"}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(Model(), {"layers.*.up": {"weight_dtype": "bfp8_b"}, "*": {}})


@pytest.mark.parametrize("name", ["it's", 'a "b"', "a-b", "a b"])
def test_any_name_of_a_layer_can_be_given(name: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleDict({name: nn.Linear(64, 64)})

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers[name](x)

    for pattern, fidelity in [(f"layers.{name}", "LoFi"), (f"layers.{name}.weight", "LoFi"), ("weight", "HiFi4")]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if pattern == "weight" else "error", PrecisionWarning)
            ((_, config),) = compiled(Model(), {pattern: {"math_fidelity": "lofi"}})
        assert config["math_fidelity"] == fidelity


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(64, 64) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.view(2, 4, 64)
        q, k, v = (p(x).view(2, 4, 2, 32).transpose(1, 2) for p in (self.q, self.k, self.v))
        return nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 4, 64)


def test_an_op_that_was_fused_has_the_names_of_its_parts() -> None:
    model = Attention()
    both = compiled(model, {"q": {"weight_dtype": "bfp8_b"}, "k": {"math_fidelity": "hifi2"}})
    assert both == [("BFP_BFloat8", FIDELITY | {"math_fidelity": "HiFi2"})]
    assert compiled(model, {"q": {"weight_dtype": "bfp4_b"}, "v": {"weight_dtype": "bfp8_b"}}) == [
        ("BFP_BFloat8", FIDELITY)
    ]


def test_models_of_one_form_and_other_names_do_not_share_a_program() -> None:
    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.first(x)

    class Another(Other):
        def __init__(self) -> None:
            super().__init__()
            self.second = self.first
            del self.first

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(x)

    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            precision = {"first": {"weight_dtype": "bfp4_b"}}
            assert [dtype for dtype, _ in compiled(Other(), precision)] == ["BFP_BFloat4"]
            assert [dtype for dtype, _ in compiled(Another(), precision)] == ["BFloat16"]


def test_training_has_the_passes_of_its_layers() -> None:
    seen: list[list[tuple[str, dict[str, Any]]]] = []
    observer = Observer(reached=lambda name, form: seen.append(products(form)) if name == "BINARY" else None)
    config = CompilerConfig(precision={"layers.0": {"math_fidelity": "lofi"}})
    options = BackendOptions(compiler_config=config)
    model = Model()
    torch.compile(model, backend=lambda gm, x: compile_captured(gm, x, options, observer))(X).sum().backward()
    for found in seen:
        counts = [fidelity["math_fidelity"] for _, fidelity in found]
        assert 0 < counts.count("LoFi") < len(counts)
    assert len(seen) == 2 and model.head.weight.grad is not None


class Overridden(nn.Module):
    def __init__(self, dtype: str) -> None:
        super().__init__()
        self.weight, self.other, self.dtype = nn.Parameter(torch.randn(64, 32)), nn.Linear(32, 64), dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(x @ torch.ops.tt.weight_dtype_override(self.weight, self.dtype))


@pytest.mark.parametrize(
    ("dtype", "stored"), [("bf16", "BFloat16"), ("bfp_bf8", "BFP_BFloat8"), ("bfp_bf4", "BFP_BFloat4")]
)
def test_the_model_itself_gives_a_weight_its_type(dtype: str, stored: str) -> None:
    found = [weight for weight, _ in compiled(Overridden(dtype), {"*": {"weight_dtype": "bfp8_b"}})]
    assert found == [stored, "BFP_BFloat8"]
    model = Overridden(dtype)
    assert torch.equal(model(X), model.other(X @ model.weight))
    with pytest.raises(tt_torch.errors.OpArgumentError, match="bfp_bf8"):
        torch.ops.tt.weight_dtype_override(model.weight, "int8")


def test_weights_of_onnx_models_have_names() -> None:
    onnx = pytest.importorskip("onnx")
    floats, make = onnx.TensorProto.FLOAT, onnx.helper
    nodes = [make.make_node("MatMul", ["x", "first"], ["h"]), make.make_node("MatMul", ["h", "second"], ["y"])]
    weights = [onnx.numpy_helper.from_array(torch.randn(64, 64).numpy(), name) for name in ("first", "second")]
    given, result = (make.make_tensor_value_info(name, floats, [8, 64]) for name in "xy")
    model = make.make_model(make.make_graph(nodes, "two", [given], [result], weights))
    for name in ("first", "second"):
        config = CompilerConfig(precision={name: {"weight_dtype": "bfp8_b", "math_fidelity": "lofi"}})
        found = products(tt_torch.compile_onnx(model, config).binary)
        assert [dtype == "BFP_BFloat8" for dtype, _ in found] == [name == "first", name == "second"]
        assert [chosen["math_fidelity"] == "LoFi" for _, chosen in found] == [name == "first", name == "second"]
    with pytest.warns(PrecisionWarning, match="did you mean 'first'"):
        tt_torch.compile_onnx(model, CompilerConfig(precision={"firts": {"weight_dtype": "bfp8_b"}}))


WITH_A_LOOP = """
func.func @main(%x: tensor<8x8xf32>, %n: tensor<i32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<8x8xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.dot %a, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %next, %b : tensor<i32>, tensor<8x8xf32>
  }
  return %r#1 : tensor<8x8xf32>
}
"""


def test_a_model_of_several_programs_has_no_names() -> None:
    with pytest.warns(PrecisionWarning, match=r"only an entry '\*' has an effect"):
        tt_torch.compile_stablehlo(WITH_A_LOOP, CompilerConfig(precision={"arg0": {"math_fidelity": "lofi"}}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrecisionWarning)
        tt_torch.compile_stablehlo(WITH_A_LOOP, CompilerConfig(precision={"*": {"math_fidelity": "lofi"}}))


# --- activations --------------------------------------------------------------------------------


def types(model: nn.Module, x: torch.Tensor, **options: Any) -> dict[str, str]:
    """The type of the result of each product on the device, by the module that it is in."""
    config = CompilerConfig(dtype="bf16", fallback="error", optimization_level=0, **options)
    with torch.no_grad():
        binary = tt_torch.compile_model(model, (x,), config).binary
    found = [op for program in decode(binary)["programs"] for op in ops(program) if op.name == "LinearOp"]
    return {str(op.results[0].shape[-1]): op.results[0].dtype for op in found}


class Sizes(nn.Module):
    """Layers that are told apart by the sizes of their results."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(64, 96), nn.Linear(96, 128), nn.Linear(128, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(torch.tanh(self.b(torch.sigmoid(self.a(x)))))


def test_activations_by_layer() -> None:
    model = Sizes().eval()
    small, plain = BLOCK_FLOATS["bfp8_b"], "BFloat16"
    assert types(model, X) == {"96": plain, "128": plain, "32": plain}
    everywhere = types(model, X, activation_dtype="bfp8_b")
    assert everywhere == {"96": small, "128": small, "32": small}  # a cast to float32 follows the last one
    assert types(model, X, precision={"b": {"activation_dtype": "bfp8_b"}}) == {"96": plain, "128": small, "32": plain}
    layers = {"*": {"activation_dtype": "bfp8_b"}, "a": {"activation_dtype": None}}
    assert types(model, X, precision=layers) == {"96": plain, "128": small, "32": small}


def test_activations_have_the_error_of_their_type() -> None:
    torch.manual_seed(0)
    model, errors = Sizes().eval(), []
    with torch.no_grad():
        for options in ({}, {"activation_dtype": "bfp8_b"}):
            run = tt_torch.compile_model(model, (X,), CompilerConfig(dtype="bf16", **options))
            errors.append(((run(X) - model(X)).norm() / model(X).norm()).item())
    assert errors[0] < errors[1] < 0.03, errors


def test_an_option_for_activations_without_effect_is_told() -> None:
    for options in ({"activation_dtype": "bfp8_b"}, {"precision": {"*": {"activation_dtype": "bfp8_b"}}}):
        with pytest.warns(PrecisionWarning, match='activation_dtype: it changes values in bfloat16.*dtype="bf16"'):
            tt_torch.compile_model(nn.Linear(4, 4).eval(), (torch.ones(2, 4),), CompilerConfig(**options))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = CompilerConfig(activation_dtype="bfp8_b")
        tt_torch.compile_model(nn.Linear(4, 4).bfloat16().eval(), (torch.ones(2, 4).bfloat16(),), config)
        tt_torch.compile_model(
            nn.Linear(4, 4).eval(), (torch.ones(2, 4),), CompilerConfig(dtype="bf16", activation_dtype="bfp8_b")
        )

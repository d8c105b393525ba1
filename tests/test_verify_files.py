"""`tt-torch verify FILE MODEL` compares a compiled file with its model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from commands import command
from onnx import TensorProto, helper, numpy_helper

import tt_torch

NET = """
import torch

class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)  # other weights in each call
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, *, scale):
        self.calls += 1
        x += 1
        return {"y": self.linear(x) * scale, "calls": self.calls.clone(), "view": x[0]}

def make():
    return Counted().eval(), {"x": torch.ones(2, 8), "scale": 3.0}
"""
LOOP = """func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %0 = stablehlo.while(%i = %x) : tensor<3xf32> cond {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%i init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %end = stablehlo.constant dense<100.0> : tensor<f32>
    %1 = stablehlo.compare LT, %sum, %end : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1.5> : tensor<3xf32>
    %1 = stablehlo.add %i, %one : tensor<3xf32>
    stablehlo.return %1 : tensor<3xf32>
  }
  %1 = stablehlo.convert %0 : (tensor<3xf32>) -> tensor<3xi32>
  return %0, %1 : tensor<3xf32>, tensor<3xi32>
}"""
ADD = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %x, %x : tensor<2xf32>\n"
ADD += "  return %0 : tensor<2xf32>\n}"
PAIR = "func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> { return %x : tensor<2xcomplex<f32>> }"
CALL = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
CALL += "  %0 = stablehlo.custom_call @Sharding(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, text in {"net.py": NET, "loop.mlir": LOOP, "add.mlir": ADD, "pair.mlir": PAIR, "call.mlir": CALL}.items():
        (folder / name).write_text(text)
    linear = torch.nn.Linear(3, 2)
    torch.export.save(torch.export.export(linear, (torch.ones(2, 3),)), folder / "linear.pt2")
    rows = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", n]) for name, n in (("in 0", 3), ("y", 4))]
    for name, seed in (("mlp.onnx", 0), ("other.onnx", 1)):
        w = numpy_helper.from_array(np.random.default_rng(seed).standard_normal((3, 4), np.float32), "w")
        graph = helper.make_graph([helper.make_node("MatMul", ["in 0", "w"], ["y"])], "g", rows[:1], rows[1:], [w])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), folder / name)
    return folder


@pytest.mark.parametrize(
    ("source", "suffix", "results"),
    [
        ("net.py:make", ".ttpkg", 3),
        ("linear.pt2", ".ttpkg", 1),
        ("linear.pt2", ".ttnn", 1),
        ("loop.mlir", ".ttpkg", 2),
        ("add.mlir", ".ttnn", 1),
        ("mlp.onnx", ".ttpkg", 1),
        ("mlp.onnx", ".ttnn", 1),
    ],
)
def test_a_file_is_like_its_model(folder: Path, source: str, suffix: str, results: int) -> None:
    file, model = (folder / source.partition(".")[0]).with_suffix(suffix), folder / source
    options = ["--shape", "in 0=5,3"] if ".onnx" in source else []
    compiled = command("compile", model, "-o", file, *options)
    assert compiled.exit_code == 0, compiled.output
    verified = command("verify", "--json", file, model)
    assert verified.exit_code == 0 and [each["ok"] for each in json.loads(verified.stdout)] == [True] * results


def test_a_file_with_other_values(folder: Path) -> None:
    """A package of other weights, and a binary of another program."""
    tt_torch.compile_onnx(folder / "mlp.onnx", shapes={"in 0": (5, 3)}).save(folder / "wrong.ttpkg")
    verified = command("verify", folder / "wrong.ttpkg", folder / "other.onnx")
    assert verified.exit_code == 1 and verified.stdout.startswith("differs result[0]: ")
    assert verified.stderr.endswith("wrong.ttpkg differs from " + str(folder / "other.onnx") + " in result[0]\n")
    tt_torch.compile_stablehlo(ADD.replace(".add", ".multiply")).save(folder / "wrong.ttnn")
    assert "differs result[0]: " in command("verify", folder / "wrong.ttnn", folder / "add.mlir").stdout


@pytest.mark.parametrize(
    ("options", "source", "status", "said"),
    [
        ([], None, 2, "takes the model that it was compiled from: "),
        (["--bisect"], "add.mlir", 2, "has no graphs that could be shrunk"),
        ([], "absent.mlir", 1, "No such file or directory: "),
        ([], "loop.mlir", 1, "the package takes [((2,), torch.float32)], and "),
        ([], "mlp.onnx", 1, "the package takes arg0, and "),
        ([], "linear.pt2", 1, "arg0 has the shape (2, 3), but the model was compiled for (2,)"),
        ([], "pair.mlir", 1, "takes or returns complex numbers, which StableHLO's interpreter cannot"),
        ([], "call.mlir", 1, "StableHLO's interpreter gave no results of "),
    ],
)
def test_what_cannot_be_compared(folder: Path, options: list[str], source: str | None, status: int, said: str) -> None:
    tt_torch.compile_stablehlo(ADD).save(folder / "add.ttpkg")
    result = command("verify", *options, folder / "add.ttpkg", *([folder / source] if source else []))
    assert result.exit_code == status and said in result.stderr and result.stdout == "", result.output

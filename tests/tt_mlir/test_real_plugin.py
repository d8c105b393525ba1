"""compiler="tt-mlir" with a plugin that contains tt-mlir.

The tests run if such a plugin is installed, or if TT_TORCH_PJRT_PLUGIN names one.
"""

from __future__ import annotations

import os

import pytest
import torch

import tt_torch
from tests.tt_mlir.conftest import system_of
from tt_torch.config import CompilerConfig
from tt_torch.errors import StageError, UnsupportedOpError
from tt_torch.tt_mlir import finding, plugin
from tt_torch.wire.decode import decode

pytestmark = pytest.mark.skipif(
    finding.plugin(os.environ.get("TT_TORCH_PJRT_PLUGIN", "")) is None,
    reason="no PJRT plugin: docs/tt_mlir.md says how to install one",
)
REFUSED = """
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "stablehlo.cholesky"(%x) {lower = true} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#op)
  return %0 : tensor<4x4xf32>
}
#line = loc("/home/u/model.py":12:3)
#op = loc("root: aten.linalg_cholesky.default"(#line))
"""


@pytest.mark.parametrize(
    "changes",
    [{}, {"enable_optimizer": True, "tt_mlir_options": {"math_fidelity": "hifi4"}}, {"enable_consteval": False}],
    ids=["level 0", "level 2", "without const-eval"],
)
def test_a_model_runs_as_in_eager(changes, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).eval()
    config = CompilerConfig(compiler="tt-mlir", save_mlir=("TTIR", "TTNN"), output_mlir_dir=str(tmp_path), **changes)
    compiled = tt_torch.compile_model(model, (torch.randn(32, 784),), config)
    for _ in range(2):
        x = torch.randn(32, 784)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    texts = {path.stem.partition("_")[2].partition("_")[2]: path.read_text() for path in tmp_path.iterdir()}
    assert "ttir.matmul" in texts["ttir"] or "ttir.dot_general" in texts["ttir"]
    assert "ttnn.linear" in texts["ttnn_runtime"] or "ttnn.matmul" in texts["ttnn_runtime"]


@pytest.mark.parametrize("chips", [2, 8])
def test_a_program_for_one_chip_of_several(chips, tmp_path):
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval(), torch.randn(2, 8)
    config = CompilerConfig(compiler="tt-mlir", system_desc=str(system_of(chips, tmp_path)))
    compiled = tt_torch.compile_model(model, (x,), config)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    message = decode(compiled.binary)
    assert len(message["system_desc"]["chip_desc_indices"]) == chips
    assert {tuple(program["mesh_shape"].values()) for program in message["programs"]} == {(1, 1)}


@pytest.mark.parametrize("consteval", [True, False], ids=["const-eval", "without const-eval"])
def test_a_recording_runs_as_in_eager(consteval):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).eval()
    config = CompilerConfig(compiler="tt-mlir", enable_consteval=consteval, enable_trace=True)
    compiled = tt_torch.compile_model(model, (torch.randn(2, 16),), config)
    ops = [op["type"] for program in decode(compiled.binary)["programs"] for op in program["operations"]]
    assert any("CaptureOrExecuteTraceOp" in op for op in ops)
    for _ in range(2):
        x = torch.randn(2, 16)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


def test_a_refused_op_is_named():
    with pytest.raises(UnsupportedOpError, match=r"failed to legalize operation 'stablehlo.cholesky'") as raised:
        plugin.compile_text(REFUSED, finding.plugin(os.environ.get("TT_TORCH_PJRT_PLUGIN", "")), CompilerConfig())
    assert (raised.value.op, raised.value.location) == ("aten.linalg_cholesky.default", "/home/u/model.py:12")


def test_an_option_that_the_plugin_does_not_know(tmp_path):
    config = CompilerConfig(compiler="tt-mlir", tt_mlir_options={"speed": "high"}, repro_dir=str(tmp_path))
    with pytest.raises(StageError, match=r"No such compile option: 'speed'"):
        tt_torch.compile_model(torch.nn.ReLU().eval(), (torch.randn(4),), config)

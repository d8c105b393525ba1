"""The behaviours that tt-torch's own tests for one chip check. These tests use the names of tt-torch."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.dynamo.backend import BackendOptions, CompilerConfig, backend
from tt_torch.tools.device_manager import DeviceManager
from tt_torch.tools.utils import CompileDepth, OpByOpBackend, OpCompilationStatus
from tt_torch.tools.verify import verify_module, verify_torch_module_async

F32, BF16, I32 = torch.float32, torch.bfloat16, torch.int32
SQUARE = [(32, 32), (32, 32)]


class Op(nn.Module):
    """A function as a module: `verify_module` takes modules."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        return self.function(*values)


OPS = {  # a function, shapes of its inputs, and options of verify_module
    "abs": (torch.abs, [(64, 64)], {}),
    "add": (torch.add, [(64, 64)] * 2, {}),
    "broadcast": (lambda x: x.expand(2, 8), [(2, 1)], {}),
    "concatenation": (lambda x, y: torch.cat((x, y), 2), [(2, 3, 4), (2, 3, 5)], {}),
    "constant": (lambda x: torch.tensor([1.0, 2.0]) + x, [(1, 1)], {}),
    "addition of a number": (lambda x: x + 1.0, [(1, 768)], {"input_data_types": [BF16]}),
    "product with a number": (lambda x: x * 3.0, [(1, 768)], {"input_data_types": [I32]}),
    "cosine": (torch.cos, [(32, 32)], {"input_range": (-2 * math.pi, 2 * math.pi)}),
    "conversion to integers": (lambda x: x.to(I32), [(4, 4)], {"input_range": (0, 60)}),
    "conversion to floats": (lambda x: x.to(F32), [(4, 4)], {"input_data_types": [I32]}),
    "division": (torch.div, SQUARE, {"input_range": (1, 10), "input_data_types": [F32, F32]}),
    "exponential": (torch.exp, [(2, 2)], {}),
    "greater": (torch.gt, SQUARE, {}),
    "interpolation": (lambda x: nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear"), [(1, 4, 8, 8)], {}),
    "logarithm": (torch.log, [(32, 32)], {"input_range": (0.1, 60)}),
    "logical and": (torch.logical_and, SQUARE, {"input_data_types": [torch.bool, torch.bool]}),
    "maximum": (torch.maximum, SQUARE, {"input_range": (-6, 6)}),
    "max pooling": (lambda x: nn.functional.max_pool2d(x, 2), [(1, 4, 8, 8)], {}),
    "padding": (lambda x: nn.functional.pad(x, (1, 2)), [(4, 4)], {}),
    "reduction to a maximum": (torch.max, [(32, 32)], {"input_range": (-6, 6)}),
    "remainder": (torch.remainder, SQUARE, {"input_range": (-100, 100), "required_atol": 1}),
    "root": (torch.sqrt, [(32, 32)], {"input_range": (0.1, 1)}),
    "slice": (lambda x: x[:, 5:91, :, :], [(4, 128, 4, 4)], {}),
    "softmax": (lambda x: torch.softmax(x, 1), [(8, 32)], {}),
    "sum": (lambda x: torch.sum(x, 1, keepdim=True), [(8, 32)], {}),
    "transposition": (lambda x: x.transpose(0, 1), [(4, 8, 4)], {}),
}


@pytest.mark.parametrize(("function", "shapes", "options"), OPS.values(), ids=OPS)
def test_an_op(function, shapes, options):
    pccs, atols, passed_pcc, passed_atol, thresholds = verify_module(Op(function), input_shapes=shapes, **options)
    assert len(pccs) == len(atols) == len(thresholds) == 1 and passed_pcc and passed_atol


def test_layers():
    verify_module(nn.Sequential(nn.Linear(32, 64, bias=False), nn.Linear(64, 64)), input_shapes=[(32, 32)])
    verify_module(nn.Conv2d(4, 8, 3, padding=1), input_shapes=[(1, 4, 16, 16)])


def test_division_by_zero():
    x, y = torch.tensor([1.0, -2, 3, 0, 5]), torch.tensor([1.0, 0, 3, 0, -9])
    verify_module(Op(torch.div), inputs=[x, y])
    verify_module(Op(torch.remainder), inputs=[x, y])


def test_a_result_that_differs():
    wrong = Op(lambda x: -x if torch.compiler.is_compiling() else x)
    with pytest.raises(AssertionError, match="Outputs differ"):
        verify_module(wrong, input_shapes=[(4, 4)])
    pccs, _, passed_pcc, passed_atol, _ = verify_module(wrong, input_shapes=[(4, 4)], do_assert=False)
    assert pccs[0] < -0.99 and not passed_pcc and not passed_atol
    with pytest.raises(AssertionError, match="either inputs or input_shapes"):
        verify_module(wrong)


@pytest.mark.parametrize("name", ["enable_consteval", "enable_optimizer", "consteval_parameters"])
def test_a_flag_keeps_the_results(name: str):
    class Folds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ (self.weight * 2 + torch.arange(8.0))

    for value in (True, False):
        config = CompilerConfig()
        config.enable_consteval = True
        setattr(config, name, value)
        verify_module(Folds(), input_shapes=[(4, 8)], compiler_config=config)


@pytest.mark.parametrize("name", ["tt", "tt-legacy"])
def test_names_of_the_backend(name: str):
    model, x = nn.Linear(8, 4), torch.randn(2, 8)
    options = BackendOptions()
    options.compiler_config = CompilerConfig()
    compiled = torch.compile(model, backend=name, dynamic=False, options=options)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x), model(x))
    assert tt_torch.backend is backend


@pytest.mark.parametrize(
    ("depth", "kind"),
    [
        (CompileDepth.COMPILE_OP_BY_OP, OpByOpBackend.STABLEHLO),
        (CompileDepth.EXECUTE_OP_BY_OP, OpByOpBackend.TORCH),
    ],
)
def test_op_by_op(tmp_path: Path, depth: CompileDepth, kind: OpByOpBackend):
    config = CompilerConfig()
    config.compile_depth, config.op_by_op_backend = depth, kind
    config.results_path, config.model_name = str(tmp_path), "repeated"
    verify_module(Op(lambda x: (x + x) * (x + x)), input_shapes=[(16, 16)], compiler_config=config)
    ops = json.loads((tmp_path / "repeated_unique_ops.json").read_bytes())["ops"].values()
    reached = (
        OpCompilationStatus.EXECUTED if depth.name.startswith("EXECUTE") else OpCompilationStatus.CONVERTED_TO_TTNN
    )
    assert {op["compilation_status"] for op in ops} == {reached}
    assert {op["model_name"] for op in ops} == {"repeated"} and all(op["stable_hlo_graph"] for op in ops)
    assert {op["backend"] for op in ops} == {kind.name.lower()}
    assert sum(op["num_ops"] for op in ops) == (3 if kind == OpByOpBackend.TORCH else len(ops))


def test_all_chips_at_once():
    shapes = [(5, 10)] * 3
    each = verify_torch_module_async(Op(lambda x, y, z: (y, torch.abs(x), z)), input_shapes=shapes)
    assert len(each) == DeviceManager.get_num_available_devices() > 1
    assert all(len(pccs) == 3 and close and near for pccs, _, close, near, _ in each)
    verify_torch_module_async(Op(lambda x: x.expand(2, 8)), inputs=[torch.tensor([[1], [2]], dtype=I32)])
    wrong = Op(lambda x: -x if torch.compiler.is_compiling() else x)
    with pytest.raises(AssertionError, match="Outputs differ"):
        verify_torch_module_async(wrong, input_shapes=[(4, 4)])
    assert not any(
        close for _, _, close, *_ in verify_torch_module_async(wrong, input_shapes=[(4, 4)], do_assert=False)
    )


def test_each_chip_runs_a_model():
    parent, devices = DeviceManager.acquire_available_devices(2)
    try:
        for device in devices:
            verify_module(Op(torch.add), input_shapes=[(8, 8)] * 2, device=device)
    finally:
        DeviceManager.release_parent_device(parent, cleanup_sub_devices=True)

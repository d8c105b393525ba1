"""Binaries as Python programs: every op has a call, the text is formatted, and no weight is missing."""

from __future__ import annotations

import ast
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import nn

import tt_torch
from tt_torch.codegen import calls, source, to_python, write_program
from tt_torch.codegen.program import Tensor, from_message
from tt_torch.errors import UnsupportedBinaryError
from tt_torch.mlir import ods
from tt_torch.mlir.ttnn import dialect  # noqa: F401  (declares the ops)
from tt_torch.mlir.ttnn.dialect import wire_fields
from tt_torch.mlir.ttnn.passes.workarounds import ALL
from tt_torch.tools import workaround_docs
from tt_torch.wire import custom_ops
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import key_of, ops

PLUGIN = Path(__file__).parents[1] / "data" / "plugin"


@pytest.fixture(scope="module")
def binary():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)]
    model = nn.Sequential(*layers).eval()
    return tt_torch.compile_model(model, (torch.randn(2, 3, 8, 8),)).binary


def test_every_op_has_a_call():
    """A new TTNN op needs a row in tt_torch/codegen/calls.py."""
    declared = {name: op.facts for name, op in ods.OPS.items() if name.startswith("ttnn.") and "table" in op.facts}
    declared = {name: f for name, f in declared.items() if f["table"] != custom_ops.TABLE}  # the user's functions
    keys = {key_of(f["table"], f["fixed"]): name for name, f in declared.items() if name != "ttnn.constant"}
    assert [keys[k] for k in calls.missing(keys)] == []


def test_ops_without_a_call_are_named_all_at_once(binary):
    message = decode(binary)
    record = {"type": {"GenericOp": {}}, "loc_info": ""}, {"type": {"EltwiseUnaryOp": {"type": "New"}}, "loc_info": ""}
    program = {"name": "main", "operations": [*record, *record]}
    with pytest.raises(UnsupportedBinaryError, match=r"has no call .* for EltwiseUnaryOp\.New, GenericOp$"):
        from_message(message | {"programs": [program]})


@pytest.mark.parametrize(
    ("name", "field"),
    [("elu", "EltwiseBinaryOp.input_tensor_a_activations"), ("avgpool", "AvgPool2dExtraParams.divisor_override")],
)
def test_fields_of_another_schema_are_not_left_out(name, field):
    """The rows of calls.py have no argument for these fields."""
    message = decode((PLUGIN / f"{name}.ttnn").read_bytes())
    with pytest.raises(UnsupportedBinaryError, match=f"has no argument .* for {field}$"):
        from_message(message)


def test_collectives_only_add():
    message = decode((PLUGIN / "tensor_parallel_1x2.ttnn").read_bytes())
    (record,) = (op.record for op in ops(message["programs"][0]) if op.name == "AllReduceOp")
    record["reduce_type"] = 2
    with pytest.raises(UnsupportedBinaryError, match=r"only add, and one has reduce_type 2$"):
        from_message(message)


def test_programs_for_several_meshes_are_refused():
    message = decode((PLUGIN / "tensor_parallel_1x2.ttnn").read_bytes())
    other = decode((PLUGIN / "tensor_parallel_2x4.ttnn").read_bytes())["programs"][0]
    with pytest.raises(UnsupportedBinaryError, match=r"for one mesh, and the binary has programs for 1x2 and 2x4$"):
        from_message(message | {"programs": [*message["programs"], other | {"private": True}]})


def test_random_integers_are_zeros_and_ones():
    """The integers are indices or booleans. A larger index could be outside of a table."""
    made = source._random(np.random.default_rng(0), Tensor("x", [64], "UInt8", "RowMajor", None))
    assert {*made.tolist()} == {0, 1} and made.dtype == np.uint8


def test_padding_is_given_in_pairs():
    compiled = tt_torch.compile_model(lambda x: nn.functional.pad(x, (1, 2, 3, 4), value=0.5), (torch.rand(2, 3),))
    assert "[(3, 4), (1, 2)], 0.5, use_multicore=True" in to_python(compiled.binary)


def test_variables_have_the_names_of_nodes_and_functions():
    compiled = tt_torch.compile_model(lambda x: ((x @ x).amax(0), x + 1), (torch.rand(3, 3),))
    tree = ast.parse(to_python(compiled.binary))
    (forward,) = (f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "forward")
    names = [t.id for s in forward.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)]
    assert names == ["mm_to_layout", "mm_matmul", "amax", "add"]


def test_each_line_of_the_model_is_above_its_ops():
    """The line is also above the call of what is computed once. Neighbouring ops of one line share one comment."""
    weight = nn.Parameter(torch.rand(3, 3))

    def model(x):
        y = torch.tanh(x) * x
        return y @ weight.exp()

    text = to_python(tt_torch.compile_model(model, (torch.rand(3, 3),)).binary)
    main = text.partition("def forward(")[2].partition("\n\n")[0]
    found = [line.partition(": ")[2] for line in main.splitlines() if line.startswith("    # ")]
    assert found == ["return y @ weight.exp()", "y = torch.tanh(x) * x", "return y @ weight.exp()"]
    assert '    exp_weight = weights["exp_weight"]' in main.splitlines()  # a name from the program that reads it


@pytest.mark.parametrize(("reduce", "name"), [("sum", "add"), ("prod", "multiply")])
def test_a_scatter_says_how_elements_combine(reduce, name):
    x, index = torch.rand(4), torch.tensor([0, 2, 0])
    compiled = tt_torch.compile_model(lambda x, y: x.scatter_reduce(0, index, y, reduce), (x, torch.rand(3)))
    assert f'reduce="{name}"' in to_python(compiled.binary)


@pytest.mark.parametrize("return_indices", [False, True])
def test_pools_keep_tables_of_indices_in_dram(return_indices):
    """The tables do not fit into L1 beside large images."""
    x = torch.rand(1, 2, 6, 6, dtype=torch.bfloat16)
    pools = nn.Sequential(nn.AvgPool2d(2), nn.MaxPool2d(2, return_indices=return_indices))
    text = to_python(tt_torch.compile_model(pools, (x,)).binary)
    assert text.count("pool2d(\n") == text.count("config_tensor_in_dram=True") == 2


@pytest.mark.parametrize("file", ["", "tensor_parallel_2x4", "trace"])
def test_programs_are_formatted(binary, tmp_path, file):
    path = tmp_path / "model.py"
    path.write_text(to_python((PLUGIN / f"{file}.ttnn").read_bytes() if file else binary))
    for arguments in (["check", "--select", "B,C4,E,F,I,RUF,SIM,UP"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--line-length", "120", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_programs_are_readable(binary):
    text = to_python(binary, "net")
    assert "def forward(inputs, weights, device):" in text
    assert "def main_const_eval_0(inputs, weights, device):" in text
    assert "relu_conv2d = ttnn.conv2d(" in text
    assert "addmm_linear = ttnn.linear(" in text


def test_weights_lie_beside_the_program(binary, tmp_path):
    given = np.full([8, 3, 3, 3], 0.25, np.float32)
    program = from_message(decode(binary))
    (position,) = (i for i, t in enumerate(program.main.inputs) if t.shape == [8, 3, 3, 3])
    beside = write_program(binary, tmp_path / "model.py", {position: given})
    arrays = load_file(beside)
    (weights,) = (
        node.value
        for node in ast.parse((tmp_path / "model.py").read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "WEIGHTS"
    )
    assert [key.value for key in weights.keys] == [*(t.name for t in program.weights), *program.constants]
    assert set(arrays) == {key.value for key in weights.keys}
    assert np.array_equal(arrays[program.main.inputs[position].name], given)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.py", "model.safetensors"]


def test_weights_that_cannot_be_written_leave_nothing(binary, tmp_path):
    given = np.empty([8, 3, 3, 3], object)
    (position,) = (i for i, t in enumerate(from_message(decode(binary)).main.inputs) if t.shape == [8, 3, 3, 3])
    with pytest.raises(SafetensorError):
        write_program(binary, tmp_path / "model.py", {position: given})
    assert not list(tmp_path.iterdir())


def test_threads_that_write_one_program_do_not_disturb_each_other(binary, tmp_path):
    with ThreadPoolExecutor(4) as threads:
        for written in [threads.submit(write_program, binary, tmp_path / "model.py") for _ in range(32)]:
            assert load_file(written.result())
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["model.py", "model.safetensors"]
    assert files[0].stat().st_mode == files[1].stat().st_mode


def test_page_of_workarounds_is_current():
    """`python -m tt_torch.tools.workaround_docs` writes the page."""
    assert (Path(__file__).parents[2] / "docs" / "workarounds.md").read_text() == workaround_docs.page()
    sections = workaround_docs.page().split("\n## ")[1:]
    assert len(sections) == len(ALL)
    assert all('\n- "' in section for section in sections), "the docstring of a workaround must quote the library"


@pytest.mark.parametrize("fidelity", ["lofi", "hifi2", "hifi3", "hifi4", "ttnn_default"])
@pytest.mark.parametrize("fp32", [True, False])
def test_math_fidelity_and_accumulation_reach_the_binary_and_the_program(fidelity, fp32, tmp_path):
    """Every op that has the field gets both. With `ttnn_default`, no op gets them, and the library chooses."""
    config = tt_torch.config.CompilerConfig(math_fidelity=fidelity, fp32_dest_acc_en=fp32)
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(288, 10), nn.Softmax(-1)).eval()
    binary = tt_torch.compile_model(layers, (torch.randn(2, 3, 8, 8),), config).binary
    records = [(op.name, op.record) for program in decode(binary)["programs"] for op in ops(program)]
    configs = {name: record.get("compute_config") for name, record in records if "compute_config" in wire_fields(name)}
    assert {"Conv2dOp", "PrepareConv2dWeightsOp", "LinearOp", "SoftmaxOp"} <= configs.keys()
    name = {"lofi": "LoFi", "hifi2": "HiFi2", "hifi3": "HiFi3", "hifi4": "HiFi4"}.get(fidelity)
    wanted = {"math_fidelity": name, "fp32_dest_acc_en": fp32} if name else None
    assert all(given == wanted for given in configs.values())
    text = to_python(binary)
    call = f"ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.{name}, fp32_dest_acc_en={fp32})"
    assert ("ComputeKernelConfig" in text) == (name is not None)
    assert text.count("MathFidelity") == "".join(text.split()).count("".join(call.split()))

"""Op-by-op runs: the model's result, the record of each op, and ops that fail, crash or hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import tt_torch
from tt_torch.bringup import op_by_op, stablehlo_ops, worker
from tt_torch.bringup.records import OpCompilationStatus
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.driver.compile import compile_graph
from tt_torch.errors import ConfigError, OpByOpError, StageError
from tt_torch.records.op_by_op import SCHEMA, VERSION
from tt_torch.wire import facts
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
W = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))


def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.relu(torch.relu(x @ w) @ w)
    return torch.linalg.eigvalsh(y[:, :4]).softmax(-1)


def run(folder: Path, function: Any = model, inputs: tuple = (X, W), **options: Any) -> dict[str, Any]:
    options = {"compile_depth": CompileDepth.EXECUTE_OP_BY_OP, "jobs": 1, "model_name": "a/b", **options}
    config = CompilerConfig(results_path=str(folder), **options)
    compiled = torch.compile(function, backend=tt_torch.backend, options=BackendOptions(compiler_config=config))
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs), function(*inputs))
    return load(folder)


def load(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / "a_b_unique_ops.json").read_text())
    assert document["version"] == VERSION
    check_schema(document)
    return {r["framework_op_name"]: r for r in document["ops"].values()}


def check_schema(document: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)


def test_another_model_with_the_same_file_is_refused(tmp_path: Path) -> None:
    run(tmp_path, torch.relu, (X,))
    with pytest.raises(ConfigError, match=r"model_name='a_b'.*a_b_unique_ops.json has the .* model 'a/b'"):
        run(tmp_path, torch.exp, (X,), model_name="a_b")


def test_each_unique_op_is_executed_on_golden_inputs(tmp_path: Path) -> None:
    ops = run(tmp_path)
    assert ops["aten.mm.default"]["num_ops"] == ops["aten.relu.default"]["num_ops"] == 2
    for name in ("aten.mm.default", "aten.relu.default", "aten._softmax.default"):
        assert ops[name]["compilation_status"] == OpCompilationStatus.EXECUTED
        assert ops[name]["pcc"] > 0.9999 and ops[name]["ulp"] < 100 and ops[name]["inputs"] == "golden"
    assert ops["aten.mm.default"]["input_shapes"] == ["(4, 8)", "(8, 8)"]
    assert ops["aten.mm.default"]["stable_hlo_ops"] == ["stablehlo.dot"]
    assert ops["aten.mm.default"]["output_tensors"][0]["shape"] == [4, 8]
    assert ops["aten.mm.default"]["location"].endswith(f":{model.__code__.co_firstlineno + 1}")


def test_the_record_of_an_unsupported_op_names_the_last_stage(tmp_path: Path) -> None:
    record = run(tmp_path)["aten._linalg_eigh.default"]
    assert record["verdict"] == "unsupported" and "torch-mlir does not know it" in record["message"]
    assert record["compilation_status"] == OpCompilationStatus.CONVERTED_TO_TORCH_IR
    assert "torch.operator" in record["torch_ir_graph"] and record["pcc"] is None


def test_check_all_ops_execute_raises_for_an_unsupported_op(tmp_path: Path) -> None:
    with pytest.raises(OpByOpError, match=r"aten\._linalg_eigh\.default: unsupported"):
        run(tmp_path, check_all_ops_execute=True)


def test_the_records_are_on_the_config(tmp_path: Path) -> None:
    depth = CompileDepth.EXECUTE_OP_BY_OP
    config = CompilerConfig(results_path=str(tmp_path), compile_depth=depth, jobs=1, model_name="a/b")
    torch.compile(torch.exp, backend="tt", options=BackendOptions(compiler_config=config))(X)
    (record,) = config.unique_ops.values()
    assert record == load(tmp_path)["aten.exp.default"] and record["verdict"] == "executed"


def test_the_records_on_the_config_are_those_of_its_own_graphs(tmp_path: Path) -> None:
    def records(function: Any, **options: Any) -> dict[str, str]:
        options |= {"results_path": str(tmp_path), "compile_depth": CompileDepth.EXECUTE_OP_BY_OP, "jobs": 1}
        config = CompilerConfig(**options)
        torch.compile(function, backend="tt", options=BackendOptions(compiler_config=config))(X[:, :4])
        return {r["framework_op_name"]: r["verdict"] for r in config.unique_ops.values()}

    def broken(x: torch.Tensor) -> torch.Tensor:
        y = torch.exp(x)
        torch._dynamo.graph_break()
        return torch.sin(y)

    with pytest.raises(OpByOpError, match="_linalg_eigh"):
        records(torch.linalg.eigvalsh, check_all_ops_execute=True)
    assert records(torch.exp, check_all_ops_execute=True) == {"aten.exp.default": "executed"}
    assert [*records(broken)] == ["aten.exp.default", "aten.sin.default"]
    # Other options give an op another result, so it runs again, and its record goes to another file.
    assert records(torch.exp, dtype="bf16") == {"aten.exp.default": "executed"}
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"model_{number}unique_ops.json" for number in ("2_", "3_", "")]


def test_other_options_run_an_op_again(tmp_path: Path) -> None:
    exact, rounded = (run(tmp_path, dtype=dtype)["aten.mm.default"]["atol"] for dtype in (None, "bf16"))
    assert exact < 1e-4 < rounded


def test_without_comparison(tmp_path: Path) -> None:
    record = run(tmp_path, verify_op_by_op=False)["aten.mm.default"]
    assert record["verdict"] == "executed" and record["pcc"] is record["atol"] is None


@pytest.mark.parametrize(("number", "executed"), [(0, "aten.mm.default"), (3, "aten.relu.default"), (99, None)])
@pytest.mark.parametrize("backend", OpByOpBackend)
def test_a_single_op_by_the_number_of_any_occurrence(
    tmp_path: Path, number: int, executed: str, backend: Any, capsys: pytest.CaptureFixture
) -> None:
    def twice(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.relu(x @ w) @ w)

    ops = run(tmp_path, twice, run_global_op_idx=number, op_by_op_backend=backend, check_all_ops_execute=number < 99)
    ran = [name for name, record in ops.items() if record["verdict"] == "executed"]
    assert ran == [executed] * (number < 99) if backend == OpByOpBackend.TORCH else len(ran) == (number < 99)
    assert {record["verdict"] for record in ops.values()} <= {"executed", "not-started"}
    assert ("run_global_op_idx=99 is no op of the graphs so far" in capsys.readouterr().err) == (number == 99)


def test_compile_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = run(tmp_path, compile_depth=CompileDepth.COMPILE_OP_BY_OP)["aten.mm.default"]
    assert record["verdict"] == "compiled" and record["execute_seconds"] is None
    assert record["compilation_status"] == OpCompilationStatus.CONVERTED_TO_TTNN
    assert " ops compiled: " in capsys.readouterr().err


def unlucky(file: str, **arguments: Any) -> dict[str, Any]:
    """Runs an op as `run_op` does. After this, the op relu crashes, and the op mm hangs."""
    target = torch.load(file, weights_only=False)["op"].target
    record = worker.run_op(file, **arguments)
    if target == "aten.relu.default":
        print("last words", flush=True)
        os.abort()
    if target == "aten.mm.default":
        time.sleep(600)
    return record


def test_a_crash_and_a_hang_affect_only_their_own_op(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_by_op, "_WORKER", f"{__name__}:unlucky")
    ops = run(tmp_path, single_op_timeout=15)  # enough for the other ops, even on a busy machine
    assert ops["aten.mm.default"]["verdict"] == "timeout"
    assert ops["aten.relu.default"]["verdict"] == "crash" and ops["aten.relu.default"]["error"] == "SIGABRT"
    assert "last words" in ops["aten.relu.default"]["runtime_stack_dump"]
    assert ops["aten.relu.default"]["ttnn_graph"], "the graph that it had reached must be kept"
    assert ops["aten._softmax.default"]["verdict"] == "executed"


def test_graphs_of_one_model_share_a_file(tmp_path: Path) -> None:
    def broken(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x @ w)
        torch._dynamo.graph_break()
        return torch.exp(torch.relu(y))

    ops = run(tmp_path, broken)
    assert {name: r["num_ops"] for name, r in ops.items()} == {
        "aten.mm.default": 1,
        "aten.relu.default": 2,
        "aten.exp.default": 1,
    }
    assert [r["global_op_idx"] for r in ops.values()] == [0, 1, 3]


def test_results_and_arguments_that_are_no_tensors(tmp_path: Path) -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> tuple:
        values, indices = torch.max(x, dim=-1, keepdim=True)
        transposed = x.t().clone(memory_format=torch.contiguous_format)
        return values, torch.cat([indices, indices]), x.to(torch.bfloat16)[:, 1:], transposed, torch.arange(3)

    ops = run(tmp_path, function)
    assert all(r["verdict"] == "executed" and r["pcc"] == 1 for r in ops.values()), ops


def test_results_that_pytorch_leaves_open(tmp_path: Path) -> None:
    """PyTorch defines neither the order of equal values nor the contents of new memory.

    The graph also has integers that are too large for the device. The model does not use them.
    """

    def function(x: torch.Tensor, w: torch.Tensor) -> tuple:
        positions = (x > 0).to(torch.int32).flatten().sort().indices
        places = (x * 0).log().to(torch.int64) + 8
        return positions, torch.where(x < 9, 0, places), torch.where(x < 9, x, torch.empty_like(x))

    ops = run(tmp_path, function)
    for name in ("aten.sort.default", "aten.add.Tensor"):
        assert ops[name]["pcc"] == 1, ops[name]
    assert ops["aten.empty_like.default"]["verdict"] == "executed" and ops["aten.empty_like.default"]["pcc"] is None


@pytest.mark.parametrize("field", ["shard_spec", "nd_shard_spec"])
@pytest.mark.parametrize(
    ("ranges", "grid"),
    [
        ([(0, 0, 7, 5)], [6, 8]),
        ([(0, 0, 7, 3), (0, 4, 3, 4)], [5, 8]),  # tt-mlir uses this for width-sharded tensors of BERT
        ([(2, 1, 2, 1)], [1, 1]),
        ([(4, 6, 5, 6), (1, 2, 1, 3)], [5, 5]),
    ],
)
def test_the_grid_of_a_sharded_tensor(field: str, ranges: list[tuple[int, int, int, int]], grid: list[int]) -> None:
    """A range has x and y of the first core, and then x and y of the last core. A grid has the number of rows first."""
    cores = [{"start_coord": {"x": a, "y": b}, "end_coord": {"x": c, "y": d}} for a, b, c, d in ranges]
    spec = {"core_range_set": {"core_ranges": cores}, "shape": [32, 64], "orientation": "RowMajor"}
    config = {"tensor_memory_layout": "BlockSharded", "buffer_type": "L1", field: spec}
    memory = {"data_type": "BFloat16", "tile_shape": {"y": 32, "x": 32}, "memory_config": config}
    tensor = {"desc": {"shape": [192, 512], "layout": {"memory_desc": memory | {"storage_type": "Device"}}}}
    (program,) = decode(encode({"programs": [{"outputs": [tensor]}]}))["programs"]
    assert worker.describe(*facts.outputs(program)) == {
        "shape": [192, 512],
        "data_type": "BFloat16",
        "buffer_type": "L1",
        "layout": "Tile",
        "grid_shape": grid,
    }


def test_stablehlo(tmp_path: Path) -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.addmm(w[0], x, w).softmax(-1).t().contiguous().view(-1)

    ops = run(tmp_path, function, op_by_op_backend=OpByOpBackend.STABLEHLO)
    assert {"stablehlo.dot", "chlo.broadcast_add", "stablehlo.reduce"} <= set(ops)
    for record in ops.values():
        assert record["verdict"] == "executed" and record["inputs"] == "golden" and record["pcc"] > 0.9999, record


def test_stablehlo_of_a_graph_with_an_op_that_has_none(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    ops = run(tmp_path, op_by_op_backend=OpByOpBackend.STABLEHLO)
    missing = ops.pop("aten._linalg_eigh.default")
    assert missing["verdict"] == "unsupported" and missing["message"]
    assert missing["location"].endswith(f":{model.__code__.co_firstlineno + 2}")
    assert {"stablehlo.dot", "stablehlo.maximum", "chlo.broadcast_divide"} <= set(ops)
    for record in ops.values():
        assert record["verdict"] == "executed" and record["pcc"] > 0.9999, record
    assert "10/11 ops executed" in capsys.readouterr().err


def test_stablehlo_with_check_all_ops_execute_raises_for_an_op_without_a_lowering(tmp_path: Path) -> None:
    with pytest.raises(OpByOpError, match=r"aten\._linalg_eigh\.default: unsupported"):
        run(tmp_path, op_by_op_backend=OpByOpBackend.STABLEHLO, check_all_ops_execute=True)


def test_stablehlo_of_ops_without_a_lowering_that_need_each_other(tmp_path: Path) -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> tuple:
        values, vectors = torch.linalg.eigh(w @ w.t())
        return torch.linalg.eigvalsh(vectors * values), values + 1, vectors

    ops = run(tmp_path, function, op_by_op_backend=OpByOpBackend.STABLEHLO)
    assert ops.pop("aten._linalg_eigh.default")["verdict"] == "unsupported"
    assert ops and {record["verdict"] for record in ops.values()} == {"executed"}


def test_stablehlo_of_a_graph_that_breaks_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(gm: torch.fx.GraphModule, *arguments: Any) -> Any:
        if sum(node.op == "call_function" for node in gm.graph.nodes) > 1:
            raise StageError("stablehlo", RuntimeError("two ops"), None)
        return compile_graph(gm, *arguments)

    monkeypatch.setattr(stablehlo_ops, "compile_graph", broken)
    config = CompilerConfig(results_path=str(tmp_path), model_name="a/b")
    config.compile_depth, config.op_by_op_backend = CompileDepth.EXECUTE_OP_BY_OP, OpByOpBackend.STABLEHLO
    with pytest.raises(StageError, match="two ops"):
        torch.compile(lambda x, w: (x @ w).exp(), backend="tt", options={"compiler_config": config})(X, W)
    file = tmp_path / "a_b_unique_ops.json"
    written = file.read_text()
    assert "two ops" in json.loads(written)["error"]
    config.save_unique_ops()
    assert json.loads(file.read_text())["error"] == json.loads(written)["error"]


PROGRAM = """
import torch
print("once")
print(torch.compile(torch.relu, backend="tt")(torch.tensor([-1.0, 2.0])).tolist())
"""


def test_a_program_without_a_main_guard(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    variables = {"TT_TORCH_COMPILE_DEPTH": "EXECUTE_OP_BY_OP", "TT_TORCH_JOBS": "1"}
    command = [sys.executable, "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "once\n[0.0, 2.0]\n"
    assert "1/1 ops executed: results/models/model_unique_ops.json" in done.stderr


RESULTS = """
import sys, torch
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
for argument in sys.argv[1:]:
    name, op = argument.split(".")
    config = CompilerConfig(compile_depth=CompileDepth.EXECUTE_OP_BY_OP, jobs=1, model_name=name)
    torch.compile(getattr(torch, op), backend="tt", options=BackendOptions(compiler_config=config))(torch.ones(2))
"""


@pytest.mark.slow
def test_results_without_a_name_replace_none_of_another_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RESULTS)
    for arguments in ([".exp", ".sin", "named.exp"], [".cos", "named.cos"]):
        command = [sys.executable, "program.py", *arguments]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=240)
    files = {path.name: json.loads(path.read_text()) for path in (tmp_path / "results/models").iterdir()}
    assert {name: [r["framework_op_name"] for r in d["ops"].values()] for name, d in files.items()} == {
        "model_unique_ops.json": ["aten.exp.default", "aten.sin.default"],
        "model_2_unique_ops.json": ["aten.cos.default"],
        "named_unique_ops.json": ["aten.cos.default"],
    }

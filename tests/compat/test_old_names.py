"""The names of tt-torch at their module paths: what they do here, and the errors of names without a counterpart."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from tomllib import loads
from torch import nn

from tt_torch.config import CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.driver.backend import backend
from tt_torch.dynamo import sharding_utils
from tt_torch.dynamo.executor import Executor, OnnxExecutor, OpByOpExecutor
from tt_torch.dynamo.passes import pass_pipeline
from tt_torch.dynamo.shlo_backend import StablehloExecutor, generate_random_inputs_for_shlo, parse_module_from_str
from tt_torch.dynamo.torch_backend import (
    TorchExecutor,
    import_graph,
    import_program,
    lower_to_stable_hlo,
    verify_ir,
)
from tt_torch.errors import NoCounterpartError, ResultsFileError
from tt_torch.tools import utils
from tt_torch.tools.generate_md import generate_md
from tt_torch.tools.profile_util import Profiler
from tt_torch.tools.tt_profile import tt_profile

ROOT = Path(__file__).parents[2]
TEXT = """func.func public @anything(%x: tensor<2x3xf32>, %n: tensor<3xi64>) -> (tensor<2x3xf32>, tensor<3xi64>) {
  %y = stablehlo.add %x, %x : tensor<2x3xf32>
  %z = stablehlo.add %y, %y : tensor<2x3xf32>
  %m = stablehlo.negate %n : tensor<3xi64>
  return %z, %m : tensor<2x3xf32>, tensor<3xi64>
}"""


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 4)
        self.register_buffer("offset", torch.randn(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.project(x)) + self.offset


# --- StableHLO ----------------------------------------------------------------------------------


def test_a_stablehlo_text_runs_on_the_device():
    x, n = torch.randn(2, 3), torch.tensor([1, -2, 2**31 - 1])
    for executor in (StablehloExecutor(TEXT), StablehloExecutor(parsed_module=parse_module_from_str(TEXT))):
        total, negative = executor(x, n)
        torch.testing.assert_close(total, 4 * x)
        assert torch.equal(negative, -n)


def test_a_parsed_module_stays_as_it_is():
    module = parse_module_from_str(TEXT)
    before = str(module)
    StablehloExecutor(parsed_module=module)
    assert str(module) == before and "@main" in before


def test_an_executor_takes_a_text_or_a_module():
    for given in ({}, {"module_str": TEXT, "parsed_module": parse_module_from_str(TEXT)}):
        with pytest.raises(TypeError, match="either module_str or parsed_module"):
            StablehloExecutor(**given)


def test_stablehlo_op_by_op(tmp_path: Path):
    config = CompilerConfig(compile_depth=CompileDepth.EXECUTE_OP_BY_OP, op_by_op_backend=OpByOpBackend.STABLEHLO)
    config.results_path, config.jobs = str(tmp_path), 1
    assert StablehloExecutor(TEXT, compiler_config=config)(torch.randn(2, 3), torch.arange(3)) is None
    (file,) = tmp_path.iterdir()
    ops = list(json.loads(file.read_bytes())["ops"].values())
    found = [(op["framework_op_name"], op["num_ops"], op["compilation_status"], op["pcc"]) for op in ops]
    assert found == [("stablehlo.add", 2, 7, 1.0), ("stablehlo.negate", 1, 7, 1.0)]


def test_below_execute_a_module_is_only_compiled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tt_torch.dynamo.shlo_backend.compile_stablehlo", None)
    compiled = []
    monkeypatch.setattr("tt_torch.dynamo.shlo_backend.compile_module", lambda *arguments: compiled.append(arguments))
    for depth in (CompileDepth.STABLEHLO, CompileDepth.TTNN_IR):
        config = CompilerConfig(compile_depth=depth)
        assert StablehloExecutor(TEXT, compiler_config=config)(torch.randn(2, 3), torch.arange(3)) is None
    assert len(compiled) == 1


def test_random_inputs_have_the_types_of_the_arguments():
    floats, integers = generate_random_inputs_for_shlo(TEXT)
    assert (floats.shape, floats.dtype, integers.shape, integers.dtype) == ((2, 3), torch.float32, (3,), torch.int64)
    assert floats.unique().numel() == 6 and floats.abs().max() <= 1 and 0 <= integers.min() <= integers.max() < 100


def test_ops_of_a_text():
    ops, forms = utils.parse_shlo_mlir(TEXT)
    assert [op[1] for op in ops] == ["stablehlo.add", "stablehlo.add", "stablehlo.negate"]
    result, _, operands, _, shapes, results, text = ops[1]
    assert result not in operands and operands[0] == ops[0][0]
    assert (shapes, results) == ([[2, 3], [2, 3]], [[2, 3]]) and "stablehlo.add" in text
    assert forms["stablehlo.add"]["2x3x2x3"]["num_ops"] == 2
    assert forms["stablehlo.negate"] == {"3": {"ops": [ops[2][-1]], "num_ops": 1}}


# --- the compiler's stages ------------------------------------------------------------------------


def test_a_pipeline_gives_a_graph_with_its_constants():
    layer, x = Layer().eval(), torch.randn(2, 3)
    traced = torch.fx.symbolic_trace(layer)
    graph, constants = pass_pipeline(traced, [x], CompilerConfig())
    assert isinstance(graph, torch.fx.GraphModule)
    (result,) = graph(*traced.parameters(), *traced.buffers(), x, *constants)
    torch.testing.assert_close(result, layer(x))


def test_graphs_and_programs_become_stablehlo():
    layer, x = Layer().eval(), torch.randn(2, 3)
    program = torch.export.export(layer, (x,)).run_decompositions()
    for module in (import_graph(program.graph), import_program(program)):
        lower_to_stable_hlo(module)
        verify_ir(module)
        (result,) = StablehloExecutor(parsed_module=module)(*layer.parameters(), layer.offset, x)
        torch.testing.assert_close(result, layer(x))


def test_the_experimental_backend_is_the_backend():
    assert importlib.import_module("tt_torch.dynamo.experimental.xla_backend").xla_backend is backend
    assert importlib.import_module("tt_torch.driver.executor").Executor is Executor
    listed = loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in ("tt", "tt-legacy", "tt-experimental"):
        entry = listed["entry-points"]["torch_dynamo_backends"][name]
        assert EntryPoint(name, entry, "torch_dynamo_backends").load() is backend
    assert callable(EntryPoint("tt_profile", listed["scripts"]["tt_profile"], "console_scripts").load())


# --- tools ----------------------------------------------------------------------------------------


def test_compiled_programs_are_forgotten_after_a_function():
    calls = []

    def counted(gm, inputs):
        calls.append(gm)
        return gm.forward

    compiled = torch.compile(lambda x: x + 1, backend=counted)
    run = utils.with_torch_dynamo_cleanup(compiled)
    for _ in range(2):
        assert torch.equal(run(torch.zeros(2)), torch.ones(2))
    assert len(calls) == 2

    def fails():
        compiled(torch.zeros(2))
        raise KeyError("x")

    with pytest.raises(KeyError):
        utils.with_torch_dynamo_cleanup(fails)()
    compiled(torch.zeros(2))
    assert len(calls) == 4
    assert utils.tt_torch_error_message(fails) is fails


@pytest.mark.slow
def test_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, tt_torch\ntorch.compile(lambda x: torch.relu(x) * 2, backend=tt_torch.backend)(torch.randn(3))\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="port has no effect"):
        tt_profile(f"'{sys.executable}' program.py", "mine.csv", 8086)
    header, *rows = Path("results/perf/mine.csv").read_text().splitlines()
    assert {"OP CODE", "LOC", "CONST_EVAL_OP", "PROGRAM_METADATA"} <= set(header.split(",")) and rows
    assert not Path("results/perf", Profiler.DEFAULT_OUTPUT_FILENAME).exists()
    with pytest.raises(subprocess.CalledProcessError) as caught:
        tt_profile("exit 3")
    assert caught.value.returncode == 3


def test_pages_of_an_op_by_op_run(tmp_path: Path):
    config = CompilerConfig(compile_depth=CompileDepth.EXECUTE_OP_BY_OP, results_path=str(tmp_path / "models"), jobs=1)
    config.model_name = "m"
    run = torch.compile(
        lambda x: torch.linalg.eigvalsh(torch.relu(x)), backend=backend, options={"compiler_config": config}
    )
    run(torch.eye(3))
    pages = generate_md(tmp_path / "models", tmp_path / "pages")
    assert {page.name for page in pages} == {"README.md", "relu.md", "_linalg_eigh.md"}
    assert "unsupported" in (tmp_path / "pages" / "_linalg_eigh.md").read_text()
    failures = generate_md(tmp_path / "models" / "m_unique_ops.json", tmp_path / "failures", failures_only=True)
    assert {page.name for page in failures} == {"README.md", "_linalg_eigh.md"}
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ResultsFileError):
        generate_md(tmp_path / "other.json", tmp_path / "pages")


# --- what has no counterpart ------------------------------------------------------------------------


def test_no_tensor_is_sharded():
    assert sharding_utils.get_shard_map_size() == 0
    assert sharding_utils.get_sharding(torch.ones(2)) is None


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        (OpByOpExecutor, "EXECUTE_OP_BY_OP"),
        (OnnxExecutor, "compile_onnx"),
        (TorchExecutor, "EXECUTE_OP_BY_OP"),
        (sharding_utils.mark_sharding, r"tt_torch\.mark_sharding"),
        (sharding_utils.setup_xla_spmd_environment, r"many_chips\.md"),
        (utils.RuntimeIntermediate, "enable_intermediate_verification"),
        (Profiler, "tt_profile"),
    ],
)
def test_what_has_no_counterpart_says_so_when_it_is_used(name, instead):
    with pytest.raises(NoCounterpartError, match=rf"^tt_torch\.[\w.]+ has no counterpart here\. .*{instead}"):
        name(torch.ones(2), option=1)


def test_unknown_names_are_attribute_errors():
    for module in ("tt_torch.tools.utils", "tt_torch.dynamo.passes"):
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
            importlib.import_module(module).nothing  # noqa: B018


def test_importing_the_package_imports_no_old_name():
    code = "import sys, tt_torch.tools.utils, tt_torch.dynamo; print(*(m for m in sys.modules if 'tt_torch' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tt_torch.config" in done.stdout
    for part in ("compat", "onnx", "shlo_backend", "mlir"):
        assert f"tt_torch.{part}" not in done.stdout and f".{part}" not in done.stdout
    # PyTorch imports this one while it is imported itself.
    drivers = {module for module in done.stdout.split() if module.startswith("tt_torch.driver")}
    assert drivers == {"tt_torch.driver", "tt_torch.driver.cache", "tt_torch.driver.cache.artifacts"}

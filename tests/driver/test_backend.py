"""The backend itself: names, options, stop points, files, errors, threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.driver.sizes import numbers_read
from tt_torch.errors import DeviceError, UnsupportedOpError


def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x @ y).relu() + 1


STRICT = CompilerConfig(fallback="error")
INPUTS = (torch.randn(3, 4), torch.randn(4, 5))


def compiled(**config: object) -> torch.Tensor:
    options = BackendOptions(compiler_config=CompilerConfig(**config))
    return torch.compile(function, backend=tt_torch.backend, options=options)(*INPUTS)


def test_by_name_without_an_import() -> None:
    """The other names are entry points of the same object: see `test_old_names.py`."""
    program = """
import torch
from torch import nn
f = torch.compile(lambda x: x * 2 + 1, backend="tt", fullgraph=True)
assert torch.equal(f(torch.ones(3)), torch.full((3,), 3.0))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_options_as_a_dict() -> None:
    options = {"compiler_config": CompilerConfig(dtype="bf16")}
    got = torch.compile(function, backend=tt_torch.backend, options=options)(*INPUTS)
    assert got.dtype == torch.float32
    assert torch.equal(got, got.bfloat16().float())


@pytest.mark.parametrize("depth", [CompileDepth.TORCH_FX, CompileDepth.STABLEHLO, CompileDepth.TTNN_IR])
def test_below_execute_the_cpu_computes(depth: CompileDepth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt_torch.runtime, "Executable", None)  # the device must not be used
    assert torch.equal(compiled(compile_depth=depth), function(*INPUTS))


def test_files_of_every_level_are_saved(tmp_path: Path) -> None:
    compiled(
        save_mlir=("STABLEHLO", "TTIR", "TTNN"),
        save_binary=True,
        output_mlir_dir=str(tmp_path),
        output_binary_dir=str(tmp_path),
        model_name="org/m",
    )
    (binary,) = tmp_path.glob("org_m_*.ttnn")
    assert tt_torch.load(binary).inputs
    modules = sorted(tmp_path.glob("org_m_*.mlir"))
    assert [file.stem.rpartition("_")[-1] for file in modules] == ["stablehlo", "ttir", "ttnn"]
    for file in modules:
        assert "func.func @main" in file.read_text()


def test_environment_variables_win_over_options(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("TT_TORCH_COMPILE_DEPTH", "STABLEHLO")
    monkeypatch.setenv("TT_TORCH_IR_LOG_LEVEL", "INFO")
    assert torch.equal(compiled(dtype="bf16"), function(*INPUTS))
    text = capfd.readouterr().err
    assert "stablehlo.dot" in text
    assert "ttnn." not in text


def test_variable_for_the_data_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_DTYPE", "bf16")
    got = compiled()
    assert torch.equal(got, got.bfloat16().float())


def test_an_unsupported_op_is_named_with_its_line_and_leaves_all_usable() -> None:
    def unsupported(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvalsh(x)

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        torch.compile(unsupported, backend=tt_torch.backend, options={"compiler_config": STRICT})(torch.randn(8, 8))
    error = caught.value.inner_exception
    assert isinstance(error, UnsupportedOpError)
    assert "aten._linalg_eigh" in error.op
    assert f"{Path(__file__).name}:{unsupported.__code__.co_firstlineno + 1}" in error.location
    torch.testing.assert_close(compiled(), function(*INPUTS))


def test_threads_may_call_one_program_at_once() -> None:
    """PyTorch's own lock lets one thread compile at a time; calls of a compiled program need no lock."""
    run = torch.compile(function, backend=tt_torch.backend)
    run(*INPUTS)
    wrong = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(20):
            x, y = torch.randn(3, 4, generator=generator), torch.randn(4, 5, generator=generator)
            if not torch.allclose(run(x, y), function(x, y), atol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_graph_breaks_split_the_program() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    x = torch.randn(3)
    torch.testing.assert_close(torch.compile(broken, backend=tt_torch.backend)(x), broken(x))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_captured(kind: type[nn.RNNBase]) -> None:
    """By default, Dynamo leaves these layers to eager PyTorch, and AOTAutograd turns an LSTM into an op of oneDNN."""
    layer, x = kind(4, 6, bidirectional=True), torch.randn(3, 2, 4)
    compiled = torch.compile(layer, backend=tt_torch.backend, fullgraph=True, options={"compiler_config": STRICT})
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), layer(x))


@pytest.mark.parametrize("others", [0, 1])
def test_a_float_that_is_read_as_a_number_is_one_although_it_has_other_users(others: int) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_method("item", (x,)), *[graph.call_function(torch.relu, (x,)) for _ in range(others)]))
    gm = torch.fx.GraphModule(nn.Module(), graph)
    assert numbers_read(gm, [torch.tensor(1.5)]) == [0]
    assert numbers_read(gm, [torch.tensor([1.5])]) == []


def test_ops_of_another_device_cannot_be_watched() -> None:
    executor = tt_torch.compile_model(function, INPUTS).executor
    assert executor.watched is executor.executable
    executor.executable = object()
    with pytest.raises(DeviceError, match="TT_TORCH_DEVICE"):
        executor.watched  # noqa: B018


def test_a_number_that_a_graph_reads_beside_one_that_it_writes() -> None:
    """`places[read]` reads the value of a scalar. The graph is specialized for it, but not for `written`."""
    places = torch.arange(3)

    def run(written: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        return written.copy_(places[read] == read)

    compiled = torch.compile(run, backend=tt_torch.backend)
    for number in (1, 2):
        written = torch.tensor(False)
        assert compiled(written, torch.tensor(number)) is written
        assert written


def test_a_number_that_a_graph_reads_beside_one_that_it_returns() -> None:
    compiled = torch.compile(lambda x, whole, read: (whole[None], x[read]), backend=tt_torch.backend)
    for number in (1, 2):
        whole = torch.tensor(7)
        result, _ = compiled(torch.randn(3), whole, torch.tensor(number))
        whole.fill_(9)
        assert result.tolist() == [9]

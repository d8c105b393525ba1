"""compiler="tt-mlir" with a PJRT plugin. The worker loads the stand-in of stand_in.c, which can fail."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import tt_torch
from tests.tt_mlir.conftest import BINARY, system_of
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, StageError, ToolchainMissingError, UnsupportedOpError
from tt_torch.mlir.context import make_context, parse
from tt_torch.tt_mlir import client as clients
from tt_torch.tt_mlir import compiler, finding, plugin
from tt_torch.wire.decode import decode

# A process that starts a worker, prints the process id of the worker, and waits.
PARENT = """
import sys
from pathlib import Path
from tt_torch.tt_mlir.client import client
worker = client(Path(sys.argv[1]))
print(worker._process.pid, worker._folder.name, flush=True)
input()
"""


def model(x, weight, bias):
    return torch.relu(torch.nn.functional.linear(x, weight, bias))


def compile_text(library, tmp_path, behave="", **changes):
    config = CompilerConfig(tt_mlir_options={"behave": behave}, repro_dir=str(tmp_path / "repro"), **changes)
    return plugin.compile_text("module {}", library, config)


def test_a_model_is_compiled_by_the_plugin_and_runs(stand_in, tmp_path):
    inputs = torch.randn(10, 64), torch.randn(32, 64), torch.randn(32)
    config = CompilerConfig(
        compiler="tt-mlir",
        pjrt_plugin=str(stand_in),
        enable_optimizer=True,
        tt_mlir_options={"math_fidelity": "hifi2"},
        save_mlir=("STABLEHLO", "TTIR", "TTNN"),
        output_mlir_dir=str(tmp_path),
    )
    compiled = tt_torch.compile_model(model, inputs, config)
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-5, atol=1e-5)
    saved = {path.stem.partition("_")[2].partition("_")[2]: path.read_text() for path in tmp_path.iterdir()}
    assert set(saved) == {"stablehlo", "stablehlo_compiler", "ttir", "ttnn_runtime"}
    # The stand-in writes its program, its options and its PATH as IR.
    assert "stablehlo.dot" in saved["stablehlo_compiler"]
    assert re.search(r"optimization_level\W+2\W.*math_fidelity\W+hifi2\W", saved["ttir"])
    assert (Path(saved["ttnn_runtime"].partition(":")[0]) / "ccache").is_file()


def test_attributes_of_composites_have_the_types_that_tt_mlir_takes():
    """With a float64 or an array, jax-tt-plugin 0.1.3 died of SIGSEGV while it wrote the binary."""
    attributes = "epsilon = 1.0e-5 : f64, normalized_shape = array<i64: 8>, bias = true"
    module = parse(
        f"""func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{
          %0 = stablehlo.composite "tenstorrent.layer_norm" %x {{composite_attributes = {{{attributes}}},
            decomposition = @same}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
          %1 = stablehlo.composite "tt.other" %0 {{decomposition = @same}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
          return %1 : tensor<4x8xf32> }}
        func.func private @same(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{ return %x : tensor<4x8xf32> }}""",
        make_context(),
    )
    text = compiler.text(module)
    assert "{bias = true, epsilon = 9.99999974E-6 : f32, normalized_shape = dense<8> : tensor<1xi64>}" in text


def test_an_op_that_the_plugin_refuses_is_named_with_its_line(stand_in, tmp_path):
    with pytest.raises(UnsupportedOpError, match=r"failed to legalize operation 'chlo.erf'") as raised:
        compile_text(stand_in, tmp_path, "refuse")
    assert (raised.value.op, raised.value.location) == ("aten.erf.default", "/home/u/model.py:12")
    assert not (tmp_path / "repro").exists()


def test_another_failure_leaves_the_input_and_the_log(stand_in, tmp_path):
    with pytest.raises(StageError, match="out of luck") as raised:
        compile_text(stand_in, tmp_path, "fail")
    (kept,) = (tmp_path / "repro").iterdir()
    assert (kept / "stablehlo.mlir").read_text() == "module {}"
    assert "stand-in: 9 bytes" in (kept / "log.txt").read_text()
    assert (kept / "request.json").is_file()
    assert str(kept) in str(raised.value)


def test_the_version_of_system_descriptors_is_found_once(stand_in, tmp_path):
    compile_text(stand_in, tmp_path)
    with pytest.raises(StageError):
        compile_text(stand_in, tmp_path, "fail")
    (log,) = (tmp_path / "repro").glob("*/log.txt")
    assert log.read_text().count("stand-in:") == 1


@pytest.mark.parametrize("chips", [2, 8])
def test_the_plugin_gets_all_chips_of_a_system(chips, stand_in, tmp_path):
    with pytest.raises(StageError, match="out of luck"):
        compile_text(stand_in, tmp_path, "fail", system_desc=str(system_of(chips, tmp_path)))
    written = [decode(path.read_bytes()) for path in (tmp_path / "repro").glob("*/*.ttsys")]
    assert len({message["schema_hash"] for message in written}) == len(written) == 2
    assert [message["system_desc"]["chip_desc_indices"] for message in written] == [[*range(chips)]] * 2


def test_a_worker_that_crashes_is_replaced(stand_in, tmp_path):
    with pytest.raises(StageError, match=r"it died of SIGABRT: stand-in: 9 bytes"):
        compile_text(stand_in, tmp_path, "crash")
    binary, stages = compile_text(stand_in, tmp_path)
    assert binary == BINARY.read_bytes()
    assert [*stages] == ["STABLEHLO/compiler", "TTIR", "TTNN/runtime"]


def test_a_worker_that_hangs_is_killed_with_its_files(stand_in, tmp_path):
    worker = clients.client(stand_in)
    with pytest.raises(StageError, match=r"it took more than 0.5 s: (?s:.*)stand-in"):
        compile_text(stand_in, tmp_path, "hang", tt_mlir_timeout=0.5)
    assert not worker.alive
    assert not Path(worker._folder.name).exists()
    assert clients.client(stand_in) is not worker


def test_an_interrupt_kills_the_worker(stand_in, tmp_path):
    worker = clients.client(stand_in)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            compile_text(stand_in, tmp_path, "hang")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert not worker.alive


def test_a_worker_ends_with_its_parent_and_removes_its_files(stand_in):
    pipe = subprocess.PIPE
    parent = subprocess.Popen([sys.executable, "-c", PARENT, stand_in], stdin=pipe, stdout=pipe, text=True)
    pid, folder = parent.stdout.readline().split()
    worker = Path("/proc") / pid
    assert worker.exists()
    assert Path(folder).exists()
    parent.kill()
    parent.communicate()
    end = time.monotonic() + 20
    while worker.exists() and worker.joinpath("stat").read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not Path(folder).exists()


def test_a_file_that_is_no_plugin(tmp_path):
    with pytest.raises(StageError, match=r"died with exit status 1(?s:.*)invalid ELF header"):
        compile_text(BINARY, tmp_path)


def test_a_named_plugin_comes_before_installed_ones_and_these_before_tools(stand_in, tmp_path, monkeypatch):
    packages = (("pjrt_plugin_tt", "pjrt_plugin_tt.so"), ("jax_plugins.libtt", "libtt.so"))
    monkeypatch.setattr(finding, "PACKAGES", packages)
    monkeypatch.syspath_prepend(tmp_path)
    assert finding.plugin("") is None
    libraries = []
    for package, library in reversed(packages):
        libraries.append(tmp_path.joinpath(*package.split("."), library))
        libraries[-1].parent.mkdir(parents=True)
        libraries[-1].touch()
        assert finding.plugin("") == libraries[-1]
    assert finding.plugin(str(stand_in)) == stand_in
    with pytest.raises(ConfigError, match=r"pjrt_plugin='absent.so'.*libtt.so"):
        finding.plugin("absent.so")
    (tmp_path / "pjrt_plugin_tt" / "tt-metal").mkdir()
    (tmp_path / "bin").mkdir()
    variables = clients._environment(libraries[-1], tmp_path)
    assert variables["TT_METAL_RUNTIME_ROOT"] == str(tmp_path / "pjrt_plugin_tt" / "tt-metal")


def test_without_a_plugin_and_tools_the_error_says_what_to_install(nothing_installed, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainMissingError, match=r"a PJRT plugin of tt-mlir.*ttmlir-opt.*TT_TORCH_PJRT_PLUGIN"):
        compiler.compile_stablehlo(None, CompilerConfig(compiler="tt-mlir"), print)

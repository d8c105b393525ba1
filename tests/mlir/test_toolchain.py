"""compiler="tt-mlir": the arguments and files that tt-mlir's tools get, and the use of the binary that they write.

The tools are stand-ins. They check their arguments and return a binary that tt-mlir wrote earlier. A build of tt-mlir
itself has never run here.
"""

from __future__ import annotations

import json
import re
import stat
import sys
from pathlib import Path

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, StageError, ToolchainMissingError
from tt_torch.mlir import toolchain
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import SYSTEM_DESC

BINARY = Path(__file__).parents[1] / "data" / "wire" / "linear_relu.ttnn"
# A tool that appends its arguments and the text of its input to calls.jsonl. Then it writes its output, or fails.
TOOL = """#!{python}
import json, shutil, sys
from pathlib import Path
*options, source, dash, target = sys.argv[1:]
text = Path(source).read_text()
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([Path(sys.argv[0]).name, options, text]) + "\\n")
assert dash == "-o" and not Path(target).exists()
if {fail!r} and any(option.startswith({fail!r}) for option in options):
    sys.exit("failed to legalize operation 'stablehlo.foo'")
if target.endswith(".ttnn"):
    shutil.copy({binary!r}, target)
else:
    Path(target).write_text("// made by " + options[0])
"""


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = (torch.nn.Parameter(torch.randn(s)) for s in ((32, 64), (32,)))

    def forward(self, x):
        return torch.where(x.sum(1, True) > 0, torch.erf(x @ self.weight.T + self.bias), 1.0)


def model(x, weight, bias):
    return torch.relu(torch.nn.functional.linear(x, weight, bias))


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A function that puts the stand-ins on the PATH. It returns a function that reads the calls they got."""

    def install(fail=""):
        words = {"python": sys.executable, "calls": str(tmp_path / "calls.jsonl"), "fail": fail, "binary": str(BINARY)}
        for name in (toolchain.OPT, toolchain.TRANSLATE):
            tool = tmp_path / name
            tool.write_text(TOOL.format(**words))
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        return lambda: [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]

    return install


def test_stablehlo_goes_to_the_tools_and_their_binary_runs(tools, tmp_path):
    calls = tools()
    inputs = torch.randn(10, 64), torch.randn(32, 64), torch.randn(32)
    config = CompilerConfig(compiler="tt-mlir", save_mlir=("TTIR", "TTNN"), output_mlir_dir=str(tmp_path / "saved"))
    compiled = tt_torch.compile_model(model, inputs, config)
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-5, atol=1e-5)
    (opt, _, first), (_, second, ttir), (translate, third, ttnn) = calls()
    assert (opt, translate) == ("ttmlir-opt", "ttmlir-translate")
    assert second[0].startswith("--ttir-to-ttnn-backend-pipeline=") and "mock-system-desc-arch=wormhole_b0" in second[0]
    assert third == ["--ttnn-to-flatbuffer"]
    assert "stablehlo.dot" in first and "ttir." not in first
    assert ttir == "// made by --stablehlo-to-ttir-pipeline" and ttnn.startswith("// made by --ttir-to-ttnn")
    assert {path.name.rpartition("_")[2] for path in (tmp_path / "saved").iterdir()} == {"ttir.mlir", "ttnn.mlir"}


def test_a_tool_that_fails_leaves_its_input_and_command(tools, tmp_path):
    calls = tools(fail="--stablehlo-to-ttir")
    config = CompilerConfig(compiler="tt-mlir", repro_dir=str(tmp_path / "repro"))
    with pytest.raises(StageError, match=r"ttmlir-opt failed: .*failed to legalize operation 'stablehlo.foo'"):
        tt_torch.compile_model(Model(), (torch.randn(10, 64),), config)
    (kept,) = (tmp_path / "repro").iterdir()
    assert (kept / "command.txt").read_text().startswith("ttmlir-opt --stablehlo-to-ttir-pipeline")
    text = (kept / "stablehlo.mlir").read_text()
    assert text == calls()[0][2]
    assert set(re.findall(r'= "?(\w+)\.', text)) == {"stablehlo", "arith"}  # tt-mlir takes no other dialect of ours
    assert text.count("ttcore.argument_type = #ttcore.argument_type<parameter>") == 2


def test_without_the_tools_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainMissingError, match=r"ttmlir-opt and ttmlir-translate are not on the PATH.*tt-mlir"):
        toolchain.check(CompilerConfig(compiler="tt-mlir"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "enable-const-eval=true"),
        ({}, "enable-cpu-hoisted-const-eval=false"),
        ({"enable_consteval": False}, "enable-const-eval=false"),
        ({"enable_optimizer": True}, "optimization-level=2"),
        ({"weight_dtype": "bfp8_b"}, "experimental-weight-dtype=bfp_bf8"),
        ({"arch": "blackhole"}, "mock-system-desc-arch=blackhole"),
    ],
)
def test_options_are_passed_under_tt_mlirs_names(change, word):
    assert word in toolchain.options(CompilerConfig(**change)).split()


@pytest.mark.parametrize("change", [{"dtype": "bf16"}, {"schema": "433d79f9"}, {"consteval_parameters": False}])
def test_options_that_the_tools_lack_are_refused(tools, change):
    tools()
    with pytest.raises(ConfigError, match="tt-mlir"):
        toolchain.check(CompilerConfig(compiler="tt-mlir", **change))


def test_compiling_for_the_system_of_a_descriptor_file(tmp_path):
    chip = dict(system_desc("blackhole")["chip_descs"][0], l1_size=1 << 20)
    desc = system_desc("blackhole", 2) | {"chip_descs": [chip], "chip_desc_indices": [0, 0]}
    file = tmp_path / "mine.ttsys"
    file.write_bytes(encode(header(SYSTEM_DESC) | {"system_desc": desc}))
    config = CompilerConfig(arch="blackhole", system_desc=str(file), enable_optimizer=True)
    compiled = tt_torch.compile_model(lambda x: x * 2, (torch.randn(3),), config)
    assert decode(compiled.executor.compiled.binary)["system_desc"] == desc
    assert f"system-desc-path={file}" in toolchain.options(config).split()
    for wrong in (str(BINARY), str(tmp_path / "absent.ttsys")):
        with pytest.raises(ConfigError, match="ttsys"):
            toolchain.options(CompilerConfig(system_desc=wrong))
    with pytest.raises(ConfigError, match="blackhole chips"):
        toolchain.options(CompilerConfig(system_desc=str(file)))

"""compiler="tt-mlir" with tt-mlir's command-line tools: what they get, and the use of the binary that they write.

The tools are stand-ins. They check their arguments and return a binary that tt-mlir wrote earlier. A build of tt-mlir
itself has never run here.
"""

from __future__ import annotations

import json
import re
import stat
import sys

import pytest
import torch

import tt_torch
from tests.tt_mlir.conftest import BINARY
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, StageError
from tt_torch.tt_mlir import finding, options
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import SYSTEM_DESC

# A tool that appends its arguments and the text of its input to calls.jsonl. Then it writes its output, or fails.
TOOL = """#!{python}
import json, shutil, sys, time
from pathlib import Path
if sys.argv[1] == "--help":
    sys.exit(print({pipelines!r}))
*options, source, dash, target = sys.argv[1:]
text = Path(source).read_text()
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([Path(sys.argv[0]).name, options, text]) + "\\n")
assert dash == "-o" and not Path(target).exists()
if {fail!r} and any(option.startswith({fail!r}) for option in options):
    time.sleep({seconds})
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


NEWER = "--ttir-to-ttnn-backend-pipeline --ttir-to-ttnn-runtime-pipeline"


@pytest.fixture
def tools(tmp_path, monkeypatch, nothing_installed):
    """A function that puts the stand-ins on the PATH. It returns a function that reads the calls they got."""

    def install(fail="", seconds=0, pipelines=NEWER, folder="path"):
        words = {"python": sys.executable, "calls": str(tmp_path / "calls.jsonl"), "fail": fail, "binary": str(BINARY)}
        (tmp_path / folder).mkdir(parents=True)
        for name in (finding.OPT, finding.TRANSLATE):
            tool = tmp_path / folder / name
            tool.write_text(TOOL.format(**words, seconds=seconds, pipelines=pipelines))
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        if folder == "path":
            monkeypatch.setenv("PATH", str(tmp_path / folder), prepend=":")
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
    assert second[0].startswith("--ttir-to-ttnn-runtime-pipeline=") and "mock-system-desc-arch=wormhole_b0" in second[0]
    assert third == ["--ttnn-to-flatbuffer"]
    assert "stablehlo.dot" in first and "ttir." not in first
    assert ttir == "// made by --stablehlo-to-ttir-pipeline" and ttnn.startswith("// made by --ttir-to-ttnn")
    assert {path.name.rpartition("_")[2] for path in (tmp_path / "saved").iterdir()} == {"ttir.mlir", "ttnn.mlir"}


def test_a_tool_that_fails_leaves_its_input_and_command(tools, tmp_path):
    calls = tools(fail="--stablehlo-to-ttir")
    config = CompilerConfig(compiler="tt-mlir", repro_dir=str(tmp_path / "repro"))
    with pytest.raises(StageError, match=r"ttmlir-opt failed: .*failed to legalize operation 'stablehlo.foo'"):
        tt_torch.compile_model(Model().eval(), (torch.randn(10, 64),), config)
    (kept,) = (tmp_path / "repro").iterdir()
    assert "/ttmlir-opt --stablehlo-to-ttir-pipeline" in (kept / "command.txt").read_text()
    text = (kept / "stablehlo.mlir").read_text()
    assert text == calls()[0][2]
    assert set(re.findall(r'= "?(\w+)\.', text)) == {"stablehlo", "arith"}  # tt-mlir takes no other dialect of ours
    assert text.count("ttcore.argument_type = #ttcore.argument_type<parameter>") == 2


def test_a_tool_that_hangs_is_killed_and_an_older_one_has_the_former_pipeline(tools, tmp_path):
    tools(fail="--ttir-to-ttnn-backend", seconds=60, pipelines="--ttir-to-ttnn-backend-pipeline")
    config = CompilerConfig(compiler="tt-mlir", repro_dir=str(tmp_path / "repro"), tt_mlir_timeout=1)
    with pytest.raises(StageError, match=r"it took more than 1 s(?s:.*)--ttir-to-ttnn-backend-pipeline"):
        tt_torch.compile_model(model, (torch.randn(10, 64), torch.randn(32, 64), torch.randn(32)), config)


def test_the_tools_of_ttmlir_home_come_before_those_of_the_path(tools, tmp_path, monkeypatch):
    assert finding.tools() is None
    for folder in ("path", "install/bin", "checkout/build/bin"):
        tools(folder=folder)
        if folder != "path":
            monkeypatch.setenv("TTMLIR_HOME", str(tmp_path / folder.partition("/")[0]))
        assert finding.tools() == finding.Tools(
            *(str(tmp_path / folder / n) for n in ("ttmlir-opt", "ttmlir-translate"))
        )


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "enable_const_eval=true"),
        ({}, "enable_const_eval_on_cpu=false"),
        ({}, "optimization_level=0"),
        ({"enable_consteval": False}, "enable_const_eval=false"),
        ({"enable_optimizer": True}, "optimization_level=2"),
        ({"enable_optimizer": True, "tt_mlir_options": {"optimization_level": 1}}, "optimization_level=1"),
        ({"weight_dtype": "bfp8_b"}, "experimental_weight_dtype=bfp_bf8"),
        ({"weight_dtype": "bfp4_b"}, "experimental_weight_dtype=bfp_bf4"),
        ({"fp32_dest_acc_en": False}, "fp32_dest_acc_en=false"),
        ({"math_fidelity": "hifi2"}, "math_fidelity=hifi2"),
        ({"math_fidelity": "hifi2", "tt_mlir_options": {"math_fidelity": "lofi"}}, "math_fidelity=lofi"),
        ({"tt_mlir_options": {"fp32_dest_acc_en": False}}, "fp32_dest_acc_en=false"),
        ({"tt_mlir_options": {"enable_trace": True}}, "enable_trace=true"),
        ({"enable_trace": True}, "enable_trace=true"),
    ],
)
def test_options_are_passed_under_the_names_of_the_plugin_and_of_the_tools(change, word):
    config = CompilerConfig(**change)
    name, _, text = word.partition("=")
    assert options.for_plugin(config)[name] == text
    theirs = {"enable_const_eval_on_cpu": "enable-cpu-hoisted-const-eval"}
    theirs["fp32_dest_acc_en"] = "compute-cfg-fp32-dest-acc-en"
    theirs["math_fidelity"] = "compute-cfg-math-fidelity"
    assert f"{theirs.get(name, name.replace('_', '-'))}={text}" in options.for_tools(config).split()


def test_the_device_of_the_library_makes_its_own_recording():
    assert "enable_trace" not in options.for_plugin(CompilerConfig(enable_trace=True, device="ttnn"))


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bf16"},
        {"activation_dtype": "bfp8_b"},
        {"kv_cache_dtype": "bfp8_b"},
        {"schema": "433d79f9"},
        {"consteval_parameters": False},
        {"enable_dram_sharded_matmul": True},
        {"tt_mlir_options": {"backend": "x"}},
    ],
)
def test_options_that_tt_mlir_lacks_are_refused(change):
    with pytest.raises(ConfigError, match=r"tt-mlir|which we set"):
        options.check(CompilerConfig(compiler="tt-mlir", **change))


def test_options_of_tt_mlir_are_refused_without_it():
    config = CompilerConfig(tt_mlir_options={"math_fidelity": "lofi"})
    with pytest.raises(ConfigError, match=r"tt_mlir_options.*compiler=\"tt-mlir\""):
        tt_torch.compile_model(lambda x: x * 2, (torch.randn(3),), config)


def test_compiling_for_the_system_of_a_descriptor_file(tmp_path):
    chip = dict(system_desc("blackhole")["chip_descs"][0], l1_size=1 << 20)
    desc = system_desc("blackhole", 2) | {"chip_descs": [chip], "chip_desc_indices": [0, 0]}
    file = tmp_path / "mine.ttsys"
    file.write_bytes(encode(header(SYSTEM_DESC) | {"system_desc": desc}))
    config = CompilerConfig(arch="blackhole", system_desc=str(file), enable_optimizer=True)
    compiled = tt_torch.compile_model(lambda x: x * 2, (torch.randn(3),), config)
    assert decode(compiled.executor.compiled.binary)["system_desc"] == desc
    assert f"system-desc-path={file}" in options.for_tools(config).split()
    for wrong in (str(BINARY), str(tmp_path / "absent.ttsys")):
        with pytest.raises(ConfigError, match="ttsys"):
            options.for_tools(CompilerConfig(system_desc=wrong))
    with pytest.raises(ConfigError, match="blackhole chips"):
        options.for_tools(CompilerConfig(system_desc=str(file)))

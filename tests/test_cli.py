"""The `tt-torch` command, on a binary that tt-mlir's compiler made."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
import torch
from typer.testing import CliRunner

import tt_torch
from tt_torch.tools.cli import app
from tt_torch.tools.inspection import SECTIONS
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import SYSTEM_DESC

BINARY = str(Path(__file__).parent / "data" / "wire" / "linear_relu.ttnn")


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def test_inspect_prints_programs_places_memory_and_system():
    result = invoke("inspect", BINARY)
    assert result.exit_code == 0
    for text in (
        "linear_relu.ttnn: 23,232 bytes, schema f3606800, tt-mlir 0.0.0 (19c86fca); our table",
        "system: 1 x Wormhole_b0, 8x8 cores with 1,499,136 bytes of L1 each",
        "program main (number 0, 26 operations)",
        "input 0: Float32 10x64, row major in DRAM",
        "output 0: Float32 10x32, 32x32 tiles in DRAM",
        "inputs 10,880 bytes of DRAM; outputs 4,096 bytes of DRAM; peak on the device 28,800 bytes of DRAM",
        "1 MatmulOp",
    ):
        assert text in result.stdout


def test_inspect_names_the_mesh():
    file = Path(__file__).parent / "data" / "plugin" / "tensor_parallel_2x4.ttnn"
    assert "mesh: 2x4 chips, which run the program together" in invoke("inspect", str(file)).stdout
    assert "mesh:" not in invoke("inspect", BINARY).stdout


def test_inspect_as_json_is_the_whole_file():
    file = json.loads(invoke("inspect", BINARY, "--json").stdout)
    operation = file["programs"][0]["operations"][-2]
    assert (operation["type_type"], operation["type"]["type"]) == ("EltwiseUnaryOp", "Relu")
    assert file["programs"][0]["inputs"][0]["desc"]["shape"] == [10, 64]


def test_inspect_as_json_gives_bytes_by_their_hash(tmp_path):
    message, data = decode(Path(BINARY).read_bytes()), bytes(range(256))
    message["programs"][0]["dylibs"] = [{"dylib_id": 0, "raw_file": data}]
    (tmp_path / "host.ttnn").write_bytes(encode(message))
    for given, shown in (
        (["--json", "--brief"], {"bytes": 256, "sha256": hashlib.sha256(data).hexdigest()}),
        (["--json"], list(data)),
    ):
        file = json.loads(invoke("inspect", str(tmp_path / "host.ttnn"), *given).stdout)
        assert file["programs"][0]["dylibs"][0]["raw_file"] == shown


def test_sections_have_the_form_that_ttrt_gives_them():
    section = {name: json.loads(invoke("inspect", BINARY, "--section", name).stdout) for name in SECTIONS}
    assert set(section["version"]) == {"version", "schema_hash", "tt-mlir git hash"}
    assert section["mesh_shape"][0] == {"main": [1, 1]}
    assert [len(refs) for program in section["inputs"] for refs in program.values()] == [3, 0, 0]
    assert "ttnn.matmul" in section["mlir"]["source"] and section["system_desc"] == section["all"]["system_desc"]
    (matmul,) = (op for op in section["op_stats"] if op["op_name"] == "ttnn.matmul")
    assert [t["shape"] for t in matmul["inputs"]] == [[10, 64], [64, 32]] and len(matmul["outputs"]) == 1


def test_inspect_shows_a_package(tmp_path):
    file, model = tmp_path / "model.ttpkg", torch.nn.BatchNorm1d(3)
    tt_torch.compile_model(lambda x, scale: {"y": model(x) * scale, "x": x}, (torch.ones(2, 3), 2.0)).save(file)
    shown = invoke("inspect", str(file)).stdout
    for line in ("x: float32 [2, 3] on cpu", "scale: float 2.0", "result['y']: [2, 3]", "result['x']: argument x"):
        assert f"  {line}\n" in shown
    assert shown.count("changes at calls") == 3 and "program main: " in shown and "device ops per call" in shown
    manifest = json.loads(invoke("inspect", str(file), "--json").stdout)
    assert manifest["result"]["keys"] == ["y", "x"] and manifest["versions"]["tt-torch"] == tt_torch.__version__
    assert "only binaries have sections" in invoke("inspect", str(file), "--section", "mlir").stderr


def test_inspect_reads_system_descriptors(tmp_path):
    file = tmp_path / "quad.ttsys"
    file.write_bytes(encode(header(SYSTEM_DESC) | {"system_desc": system_desc("blackhole", 4)}))
    assert "system: 4 x Blackhole, 10x13 cores" in invoke("inspect", str(file)).stdout
    assert json.loads(invoke("inspect", str(file), "--json").stdout)["system_desc"]["chip_desc_indices"] == [0, 1, 2, 3]
    assert "all, version or system_desc" in invoke("inspect", str(file), "--section", "inputs").stderr


def test_a_damaged_file_is_one_line(tmp_path):
    damaged = tmp_path / "damaged.ttnn"
    damaged.write_bytes(Path(BINARY).read_bytes()[:100])
    for command in ("inspect", "run"):
        result = invoke(command, str(damaged))
        assert result.exit_code == 1 and result.stdout == ""
        assert result.stderr.startswith(f"error: {damaged}: ") and result.stderr.count("\n") == 1


def test_a_text_with_the_name_of_a_package_is_no_package(tmp_path):
    (file := tmp_path / "text.ttpkg").write_text("a text, and no package")
    for command in ("inspect", "run"):
        assert invoke(command, str(file)).stderr.startswith(f"error: {file} is damaged, or is no package: ")


def test_a_missing_file_is_named():
    result = invoke("inspect", "absent.ttnn")
    assert result.exit_code == 2 and "absent.ttnn" in result.stderr


def test_run_gives_random_inputs_of_the_right_kind():
    result = invoke("run", BINARY)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "output 0: float32 (10, 32)"
    assert result.stdout.splitlines()[1].endswith(" ms")


@pytest.mark.parametrize(
    ("command", "modules"),
    [("tt_torch.tools.cli", {"torch", "torch_mlir", "numpy", "rich"})],
)
def test_a_command_itself_imports_little(command, modules):
    code = f"import sys, {command}; print({modules} & {{*sys.modules}})"
    root = Path(__file__).parents[1]
    assert subprocess.check_output([sys.executable, "-c", code], cwd=root, text=True) == "set()\n"


def test_version():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert tt_torch.__version__ == project["version"]
    assert invoke("--version").stdout == f"tt-torch {tt_torch.__version__}\n"

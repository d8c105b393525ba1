"""`tt-torch compile`, `run` and `query`: from a model to a file, and from files of inputs to files of outputs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import onnx
import pytest
import safetensors.torch as safetensors
import torch
from commands import command
from onnx import TensorProto, helper, numpy_helper

from tt_torch.tools import tensor_files
from tt_torch.tools.running import compare

SOURCE = """
import torch

class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, *, scale):
        self.calls += 1
        x += 1
        return {"y": self.linear(x) * scale, "large": (x > 1).to(torch.int32), "calls": self.calls.clone()}

def make():
    return Counted().eval(), {"x": torch.zeros(2, 8), "scale": 3.0}
"""
MLIR = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = stablehlo.add %x, %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package, its inputs, and the outputs of eager PyTorch."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "net.py").write_text(SOURCE)
    compiled = command("compile", f"{folder / 'net.py'}:make", "-o", folder / "net.ttpkg", "--json")
    assert compiled.exit_code == 0 and json.loads(compiled.stdout)["device_ops"] > 0, compiled.output
    space: dict = {}
    exec(SOURCE, space)
    model, arguments = space["make"]()
    arguments["x"] = torch.randn(2, 8)
    np.savez(folder / "x.npz", arguments["x"].numpy())
    safetensors.save_file({"x": arguments["x"].clone()}, folder / "x.safetensors")
    with torch.no_grad():
        golden = {f"result['{name}']": x for name, x in model(**arguments).items()}
    safetensors.save_file(golden, folder / "golden.safetensors")
    return folder


def test_a_package_on_saved_inputs(folder: Path) -> None:
    """The model writes to its argument and to a buffer, and the outputs are those of the first call."""
    saved = folder / "out.npz"
    options = ["-i", folder / "x.npz", "-o", saved, "--golden", folder / "golden.safetensors", "--repeat", 2]
    result = command("run", folder / "net.ttpkg", *options, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["outputs"]["result['y']"] == {"dtype": "float32", "shape": [2, 4]}
    assert len(facts["milliseconds"]["later"]) == 2
    assert [each["ok"] for each in facts["golden"]] == [True] * 3
    again = command("run", folder / "net.ttpkg", "-i", folder / "x.safetensors", "--golden", saved, "--tolerance", 0)
    assert again.exit_code == 0, again.output
    assert "result['y']: float32 (2, 4)\n" in again.stdout and "PCC 1.0000000, largest difference 0 " in again.stdout


@pytest.mark.parametrize("name", ["result['y']", "result['large']", "result['calls']"])
def test_outputs_that_differ(folder: Path, tmp_path: Path, name: str) -> None:
    """A factor leaves the PCC at 1, but the largest difference shows it."""
    golden = tensor_files.read(folder / "golden.safetensors")
    golden[name] = golden[name] * 2 if golden[name].is_floating_point() else golden[name] + 1
    tensor_files.write(tmp_path / "other.npz", golden)
    result = command("run", folder / "net.ttpkg", "-i", folder / "x.npz", "--golden", tmp_path / "other.npz")
    assert result.exit_code == 1 and f"differs {name}: " in result.stdout
    assert result.stderr.endswith(f"other.npz in {name}\n") and result.stderr.count("\n") == 1


def test_random_inputs_and_times(folder: Path) -> None:
    result = command("run", folder / "net.ttpkg", "--repeat", 3)
    assert result.exit_code == 0 and "; 3 more: median " in result.stdout, result.output


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["-i", "{}/net.py"], 2, "does not end in .npz or .safetensors"),
        (["-o", "out.pt"], 2, "does not end in .npz or .safetensors"),
        (["--golden", "absent.npz"], 2, "'absent.npz' does not exist"),
        (["--repeat", "-1"], 2, "--repeat"),
        (["-i", "{}/golden.safetensors"], 1, "expected 'x'"),
        (["-i", "{}/shape.npz"], 1, "x has the shape (3, 8), but the model was compiled for (2, 8)"),
        (["-i", "{}/pickle.npz"], 1, "pickle.npz: "),
        (["-i", "{}/text.npz"], 1, "text.npz: "),
        (["-i", "{}/cut.npz"], 1, "cut.npz: "),
        (["-i", "{}/cut.safetensors"], 1, "cut.safetensors: "),
        (["-i", "{}/x.npz", "--golden", "{}/x.npz"], 1, """expected "result['y']", """),
    ],
)
def test_what_cannot_run_is_one_line(folder: Path, options: list[str], status: int, said: str) -> None:
    np.savez(folder / "shape.npz", np.zeros((3, 8), np.float32))
    np.savez(folder / "pickle.npz", x=np.array([{}], dtype=object), allow_pickle=True)
    np.savez(folder / "text.npz", x=np.array(["a"]))
    for kind in ("npz", "safetensors"):
        (folder / f"cut.{kind}").write_bytes((folder / f"x.{kind}").read_bytes()[:40])
    result = command("run", folder / "net.ttpkg", *(option.format(folder) for option in options))
    assert result.exit_code == status and said in result.stderr, result.output
    assert result.stdout == "" and result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


def test_stablehlo(tmp_path: Path) -> None:
    (tmp_path / "add.mlir").write_text(MLIR)
    assert command("compile", tmp_path / "add.mlir", "-o", tmp_path / "add.ttnn").exit_code == 0
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "x.npz", x)
    np.savez(tmp_path / "golden.npz", **{"output 0": 2 * x})
    result = command("run", tmp_path / "add.ttnn", "-i", tmp_path / "x.npz", "--golden", tmp_path / "golden.npz")
    assert result.exit_code == 0 and result.stdout.startswith("output 0: float32 (2, 3)\n"), result.output


def test_files_become_packages(tmp_path: Path) -> None:
    """The names of inputs and results are those that `tt-torch run` takes."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "add.mlir").write_text(MLIR)
    exported = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(2, 3),))
    torch.export.save(exported, tmp_path / "linear.pt2")
    expected = {"add.mlir": 2 * x, "linear.pt2": exported.module()(torch.from_numpy(x)).detach().numpy()}
    for (name, golden), given in zip(expected.items(), ("arg0", "input"), strict=True):
        package = (tmp_path / name).with_suffix(".ttpkg")
        result = command("compile", tmp_path / name, "-o", package)
        assert result.exit_code == 0, result.output
        np.savez(tmp_path / "x.npz", **{given: x})
        np.savez(tmp_path / "golden.npz", result=golden)
        result = command("run", package, "-i", tmp_path / "x.npz", "--golden", tmp_path / "golden.npz")
        assert result.exit_code == 0, result.output


def test_onnx(tmp_path: Path) -> None:
    """The weights are inputs of the binary, and a file beside it has them."""
    x, w = np.ones((2, 3), np.float32), np.random.default_rng(0).standard_normal((3, 4), np.float32)
    types = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", (2, 3)), ("y", (2, 4)))
    ]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "graph", types[:1], types[1:], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "mlp.onnx")
    compiled = command("compile", tmp_path / "mlp.onnx", "-o", tmp_path / "mlp.ttnn")
    assert compiled.exit_code == 0, compiled.output
    np.savez(tmp_path / "x.npz", **{"input 0": x})
    np.savez(tmp_path / "golden.npz", x @ w)
    inputs = ["-i", tmp_path / "x.npz", "-i", tmp_path / "mlp.safetensors"]
    result = command("run", tmp_path / "mlp.ttnn", *inputs, "--golden", tmp_path / "golden.npz", "--pcc", 0.9999)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("source", "output", "status", "said"),
    [
        ("net.py:make", "net.pt", 2, "net.pt does not end in .ttpkg or .ttnn"),
        ("absent.mlir", "add.ttnn", 2, "there is no file 'absent.mlir'"),
        ("net.py:other", "net.ttpkg", 2, "net.py has no function other"),
        ("bad.mlir", "bad.ttnn", 1, "the file is not an MLIR module of the known dialects"),
        ("bad.onnx", "bad.ttnn", 1, "bad.onnx is no ONNX model"),
        ("bad.pt2", "bad.ttpkg", 1, "error: bad.pt2 is no program of torch.export: it is no complete zip file"),
    ],
)
def test_what_cannot_be_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, output: str, status: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "net.py": "def make(): ...",
        "add.mlir": MLIR,
        "bad.mlir": "module {",
        "bad.onnx": "no model",
        "bad.pt2": "PK",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    result = command("compile", source, "-o", output)
    assert result.exit_code == status and said in result.stderr and result.stdout == "", result.output
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}  # Python's copy of the imported net.py
    assert left == set(files)


def test_query_writes_what_inspect_and_the_compiler_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_ARCH", "blackhole")
    file = tmp_path / "mine.ttsys"
    written = command("query", "-o", file)
    assert written.exit_code == 0 and written.stdout.startswith("system: 1 x Blackhole, "), written.output
    assert written.stdout.splitlines()[0] in command("inspect", file).stdout
    monkeypatch.setenv("TT_TORCH_SYSTEM_DESC", str(file))
    assert len(json.loads(command("query", "--json").stdout)["chip_descs"]) == 1
    monkeypatch.setenv("TT_TORCH_ARCH", "grayskull")
    wrong = command("query")
    assert wrong.exit_code == 2 and "grayskull" in wrong.stderr and wrong.stderr.count("\n") == 1


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("value", "golden", "ok"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.019], [1.0, 2.0], True),
        ([1.0, 2.03], [1.0, 2.0], False),
        ([0.005, 0.0], [0.0, 0.0], False),  # the correlation with zeros says nothing
        ([0.0, 0.0], [0.0, 0.0], True),
        ([NAN, 2.0], [NAN, 2.0], True),
        ([1.0, 2.0], [NAN, 2.0], False),
        ([NAN, 2.0], [1.0, 2.0], False),
        ([INF, 2.0], [INF, 2.0], True),
        ([-INF, 2.0], [INF, 2.0], False),
        ([INF, 2.0], [1.0, 2.0], False),
        ([1, 2], [1, 2], True),
        ([1000, 2000], [1000, 2001], False),  # integers are exact
        ([1.0], [1.009], True),
        ([1.0], [1.02], False),
        ([1.0, 2.0], [[1.0, 2.0]], False),
        ([], [], True),
    ],
)
def test_what_counts_as_different(value: list, golden: list, ok: bool) -> None:
    (found,) = compare({"y": torch.tensor(value)}, {"y": torch.tensor(golden)}, "file", 0.99, 0.01)
    assert found.ok == ok, found
    json.dumps([found.pcc, found.difference, found.bound], allow_nan=False)


def test_npz_has_no_bfloat16(tmp_path: Path) -> None:
    x = {"y": torch.ones(2, dtype=torch.bfloat16)}
    tensor_files.write(tmp_path / "y.safetensors", x)
    assert tensor_files.read(tmp_path / "y.safetensors")["y"].dtype == torch.bfloat16
    with pytest.raises(tensor_files.TensorFileError, match=r"y\.npz: "):
        tensor_files.write(tmp_path / "y.npz", x)
    assert [path.name for path in tmp_path.iterdir()] == ["y.safetensors"]

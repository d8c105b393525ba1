"""`tt-torch inspect --why`: what the optimizer weighs for an op, and why it takes a form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import OpNameError, OverrideError
from tt_torch.tools.cli import app
from tt_torch.tools.explain_cli import model_of
from tt_torch.tools.why import decisions
from tt_torch.wire import facts
from tt_torch.wire.decode import decode

PROGRAM = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv3 = nn.Conv2d(256, 64, 1), nn.Conv2d(64, 256, 1)
        self.conv2 = nn.Conv2d(64, 64, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv3(torch.relu(self.conv2(torch.relu(self.conv1(x))))) + x)

def model():
    torch.manual_seed(0)
    return Block().eval(), (torch.randn(2, 256, 28, 28),)
"""
WORDS = {"HeightSharded": "l1:height_sharded", "BlockSharded": "l1:block_sharded"}


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TT_TORCH_DTYPE", "bf16")
    monkeypatch.setenv("TT_TORCH_OPTIMIZATION_LEVEL", "2")
    (tmp_path / "block.py").write_text(PROGRAM)
    return f"{tmp_path / 'block.py'}:model"


def inspected(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["inspect", *arguments], env={"COLUMNS": "200"})


def chosen(found: list[Any]) -> list[tuple[str, str]]:
    return [(each.op, one.result) for each in found for one in each.candidates if one.verdict == "chosen"]


def test_what_is_chosen_is_in_the_binary(target: str) -> None:
    model, args, _ = model_of(target)
    binary = tt_torch.compile_model(model, args, CompilerConfig.from_env()).binary
    ops = facts.ops(decode(binary)["programs"][0])
    lie = [t.memory_config["tensor_memory_layout"] for op in ops if op.name == "Conv2dOp" for t in op.results]
    made = [result.partition(":")[2] for op, result in chosen(decisions(target, "conv?")) if op == "ttnn.conv2d"]
    assert made == [WORDS[layout] for layout in lie] and len(made) == 3


def test_the_table_says_why(target: str) -> None:
    shown = inspected(target, "--why", "conv2").stdout
    (table,) = [text for text in shown.split("ttnn.") if text.startswith("conv2d")]
    assert "conv2.weight" in table and "block.py:12" in table
    rows = [line for line in table.splitlines() if "height_sharded" in line or "dram" in line]
    assert sum(line.rstrip().endswith("chosen") for line in rows) == 1
    assert any("act_block_h_override 32" in line and "us longer" in line for line in rows)


def test_candidates_are_compared_by_time_and_memory(target: str) -> None:
    found = json.loads(inspected(target, "--why", "ttnn.conv2d", "--json").stdout)
    assert [each["op"] for each in found] == ["ttnn.conv2d"] * 3
    l1 = 1_392_640
    for each in found:
        fit = [one for one in each["candidates"] if one["l1"] <= l1]
        (best,) = [one for one in each["candidates"] if one["verdict"] == "chosen"]
        assert best in fit
        assert min(one["seconds"] + one["readers"] for one in fit) == best["seconds"] + best["readers"]
        assert {one["verdict"] for one in each["candidates"] if one["l1"] > l1} <= {"L1 is too small"}


def test_what_a_level_and_an_override_forbid(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_OPTIMIZER_OVERRIDES", "override-output-layout=conv2=7x2:block_sharded,conv1=dram")
    conv1, conv2, _ = decisions(target, "conv2d")
    assert chosen([conv1]) == [("ttnn.conv2d", "dram:interleaved")]
    assert "not what the override asks for" in {one.verdict for one in conv1.candidates}
    assert chosen([conv2]) == [("ttnn.conv2d", "7x2:l1:block_sharded")]
    monkeypatch.delenv("TT_TORCH_OPTIMIZER_OVERRIDES")
    monkeypatch.setenv("TT_TORCH_OPTIMIZATION_LEVEL", "1")
    assert "level 1 splits no tensors" in {one.verdict for one in decisions(target, "conv2")[0].candidates}


def test_an_error_leaves_gradients_on(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model was called without gradients before, and the error still has the frames of that."""
    monkeypatch.setenv("TT_TORCH_OPTIMIZER_OVERRIDES", "override-output-layout=conv2=3x3:block_sharded")
    with pytest.raises(OverrideError) as error:
        decisions(target, "conv2d")
    assert torch.is_grad_enabled(), error


def test_saved_modules(target: str, tmp_path: Path) -> None:
    model, args, _ = model_of(target)
    levels = ("STABLEHLO", "TTIR", "TTNN")
    config = CompilerConfig(dtype="bf16", optimization_level=2, save_mlir=levels, output_mlir_dir=str(tmp_path / "ir"))
    tt_torch.compile_model(model, args, config)
    files = {file.stem.rpartition("_")[2]: str(file) for file in (tmp_path / "ir").iterdir()}
    expected = chosen(decisions(target, "conv2"))
    assert [chosen(decisions(files[level], "conv2")) for level in ("ttir", "stablehlo")] == [expected] * 2
    refused = inspected(files["ttnn"], "--why", "conv2")
    assert refused.exit_code == 1 and "TT_TORCH_SAVE_MLIR=TTIR" in refused.stderr


def test_an_unknown_op_and_level_0(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OpNameError, match=r"'conv9'; did you mean 'conv\d'.*there are add, convolution, convolution_1"):
        decisions(target, "conv9")
    monkeypatch.setenv("TT_TORCH_OPTIMIZATION_LEVEL", "0")
    assert "optimization_level=0 is not accepted" in inspected(target, "--why", "conv1").stderr


@pytest.mark.parametrize("kind", ["binary", "package", "Python", "text", "nothing"])
def test_other_files_are_refused_in_one_line(kind: str, target: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    if kind in ("binary", "package"):
        model, args, _ = model_of(target)
        made = tt_torch.compile_model(model, args, CompilerConfig.from_env())
        made.save(file) if kind == "package" else file.write_bytes(made.binary)
    else:
        file.write_text({"Python": PROGRAM, "text": "module { func.func @main(", "nothing": ""}[kind])
    refused = inspected(str(file), "--why", "conv2")
    assert refused.exit_code == 1 and not refused.stdout and refused.stderr.count("\n") == 1
    assert kind == "nothing" or "--why takes a model, as FILE.py:FUNCTION" in refused.stderr

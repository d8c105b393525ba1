"""Two sweeps run over the same models, and an op is broken in the second. The comparison finds the models with this op.

It finds no other model.
"""

from __future__ import annotations

import json

import pytest
import torch
from commands import command

from tt_torch.driver import compile as compiler
from tt_torch.reports.database import Database

FILE = """
from pathlib import Path
import torch
from tt_torch.driver import compile as compiler
from tt_torch.sweep.registry import Model

def model(*activations):
    return torch.nn.Sequential(torch.nn.Linear(4, 8), *activations), {"input": torch.arange(12.0).reshape(3, 4) / 6 - 1}

MODELS = [
    Model("relu", lambda: model(torch.nn.ReLU())),
    Model("both", lambda: model(torch.nn.ReLU(), torch.nn.Tanh())),
]

def broken(gm, config, passes=compiler.run_passes):
    for node in gm.graph.nodes:
        if node.target is torch.ops.aten.tanh.default:
            node.target = torch.ops.aten.cos.default
    return passes(gm, config)

if Path(__file__).with_name("broken").exists():
    compiler.run_passes = broken
"""


@pytest.mark.slow
def test_the_broken_op_is_found_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "models.py").write_text(FILE)
    # The file is loaded in this process, too, and replaces the function. The function is restored after the test.
    monkeypatch.setattr(compiler, "run_passes", compiler.run_passes)
    db = ["--db", tmp_path / "r.duckdb"]
    for commit in ("good", "bad"):
        monkeypatch.setattr(
            "tt_torch.records.lines.provenance", lambda commit=commit: {"commit": commit, "versions": {}}
        )
        status = command("sweep", tmp_path / "models.py", "-o", tmp_path / "r.jsonl", *db).exit_code
        assert status == (commit == "bad")
        (tmp_path / "broken").touch()
    compared = command("report", "compare", "good", "bad", *db)
    lines = [line.split("  PCC")[0] for line in compared.stdout.splitlines()]
    assert compared.exit_code == 1
    assert [line.split(" ->")[0] for line in lines[:-1]] == ["worse  model both: match"]
    assert lines[-1] == "1 worse, 0 better, of 2; 0 gone, 0 new"
    assert len(Database(str(tmp_path / "r.duckdb")).records()) == 4
    assert command("report", "compare", "good", "good", *db).exit_code == 0


@pytest.mark.slow
def test_models_op_by_op(tmp_path):
    """Workers of the sweep have workers of their own, and the record of each op is in the database, too.

    Only one recompilation is allowed here, so the second model must not count as a recompilation of the first.
    """
    (tmp_path / "models.py").write_text(FILE + "torch._dynamo.config.recompile_limit = 1\n")
    db, output = tmp_path / "r.duckdb", tmp_path / "r.jsonl"
    # This process reads the file, too. The limit is restored for the tests that follow.
    with torch._dynamo.config.patch(recompile_limit=torch._dynamo.config.recompile_limit):
        result = command("sweep", tmp_path / "models.py", "--op-by-op", "-o", output, "--db", db)
    assert result.exit_code == 0, result.output
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(r["kind"], r["verdict"], r["op_verdicts"]) for r in records] == [
        ("op-by-op", "match", {"match": number}) for number in (3, 4)
    ]
    ops = [r for r in Database(str(db)).latest() if r["kind"] == "unique-op" and r["model"] == "both"]
    assert {(op["framework_op_name"], op["outcome"]) for op in ops} == {
        (f"aten.{name}.default", "executed") for name in ("t", "addmm", "relu", "tanh")
    }

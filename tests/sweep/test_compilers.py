"""Sweeps with both compilers: the items, and the page that compares the records."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tt_torch.records.lines import Results, provenance
from tt_torch.sweep.cli import by_compiler
from tt_torch.tools.cli import app
from tt_torch.workers.engine import Item


def model(name, compiler, ops, seconds, **fields):
    key = name if compiler == "tt-torch" else f"{name} {compiler}"
    figures = {"device_ops": ops, "moves": 1, "bytes_moved": 2e6, "modelled_seconds": seconds, "atol": 1e-6}
    record = {"kind": "model", "key": key, "model": name, "compiler": compiler, "verdict": "match", "host_ops": []}
    return {**record, "graph_breaks": [], **figures, **fields, **provenance()}


def sample(op, compiler, **fields):
    key = f"{op}/float32/0" + ("" if compiler == "tt-torch" else f" {compiler}")
    record = {"kind": "op", "key": key, "dtype": "float32", "compiler": compiler, "verdict": "match", "host_ops": []}
    return {**record, "graph_breaks": [], **fields, **provenance()}


CRASH = {"verdict": "crash", "error": "SIGSEGV", "message": "in libtt.so"}
HOST = {"host_ops": [{"op": "aten.erf.default", "reason": "tt-mlir refuses it", "count": 1}]}
DEATHS = {"host_ops": [HOST["host_ops"][0] | {"reason": f"it died of SIGSEGV: 00:0{i} INFO|"} for i in (1, 2)]}
RECORDS = [
    model("a", "tt-torch", {"AddOp": 3}, 4e-6),
    model("a", "tt-mlir", {"AddOp": 1, "ReshapeOp": 5}, 1e-6, schemas=["912b70aa54f8"]),
    model("b", "tt-torch", {"AddOp": 9}, 1e-6),
    model("b", "tt-mlir", {}, 0.0, **CRASH),
    model("c", "tt-torch", {"AddOp": 2}, 1e-6),
    model("c", "tt-mlir", {"AddOp": 1}, 1e-6, **DEATHS),
    model("d", "tt-torch", {"AddOp": 2}, 1e-6),  # tt-mlir's record is still missing
    sample("any", "tt-torch"),
    sample("any", "tt-mlir", verdict="wrong", error="Mismatch", message="1 of 3"),
    sample("erf", "tt-torch"),
    sample("erf", "tt-mlir", **HOST),
]


def test_each_item_runs_once_per_compiler():
    items = by_compiler([Item("bert", "m:f", {"model": "bert"})], ["tt-torch", "tt-mlir"])
    assert [(item.key, item.arguments) for item in items] == [
        ("bert", {"model": "bert", "compiler": "tt-torch"}),
        ("bert tt-mlir", {"model": "bert", "compiler": "tt-mlir"}),
    ]


@pytest.mark.parametrize(
    ("arguments", "variable", "said"),
    [
        (["ops", "--compiler", "gcc"], "", "got gcc, expected tt-torch or tt-mlir"),
        (["ops"], "tt-mlir", "TT_TORCH_COMPILER"),
        (["models", "--op-by-op", "--compiler", "tt-mlir"], "", "compiled by tt-torch only"),
    ],
)
def test_compilers_that_are_refused(arguments, variable, said):
    result = CliRunner().invoke(app, ["sweep", *arguments], env={"TT_TORCH_COMPILER": variable, "COLUMNS": "300"})
    assert result.exit_code == 2 and said in result.output


def test_the_page_compares_what_both_get_right_and_names_the_rest(tmp_path):
    for record in RECORDS:
        Results(tmp_path / "r.jsonl").append(record)
    result = CliRunner().invoke(app, ["sweep", "docs", str(tmp_path / "r.jsonl"), "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.glob("*.md")] == ["compilers.md"]
    rows = [line for line in (tmp_path / "compilers.md").read_text().splitlines() if line.startswith("| ")]
    for row in (
        "| tt-torch | 3 of 3 | 3 |",
        "| tt-mlir | 2 of 3 | 1 |",
        "| device ops | 1 | 0 | 0 | 2.00 |",  # only `a` counts, with 3 and 6 ops
        "| modelled time | 0 | 1 | 0 | 0.25 |",
        "| a | 3 (1) | 6 (1) | 2.00 | 2.00 | 4.0 | 1.0 | 1.0e-06 | 1.0e-06 |",
        "| b | right | crash: SIGSEGV: in libtt.so |",
        "| c | right | 2 × aten.erf.default: it died of SIGSEGV |",
        "| float32 | 2 | 2 | 1 | 2 | 0 |",
        "| any/float32/0 | right | wrong: Mismatch: 1 of 3 |",
        "| aten.erf.default | tt-mlir refuses it | 1 |",
    ):
        assert row in rows
    assert not any("| d |" in row for row in rows)
    assert "The sweep did not come to 1 with tt-mlir: d." in (tmp_path / "compilers.md").read_text()

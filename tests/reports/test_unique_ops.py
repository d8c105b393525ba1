"""Unique ops of op-by-op files become records. The database, the workbook, the web page and the op pages show them."""

from __future__ import annotations

import json

import openpyxl
import pytest

from tests.reports.records import model, op
from tt_torch.bringup.records import OpRecords, new_record
from tt_torch.config import CompilerConfig
from tt_torch.errors import ResultsFileError
from tt_torch.reports.compare import compare
from tt_torch.reports.database import Database
from tt_torch.reports.op_pages import op_pages
from tt_torch.reports.page import render
from tt_torch.reports.reading import read
from tt_torch.reports.spreadsheet import write_workbook

DONE = {"compilation_status": 7, "verdict": "executed", "pcc": 0.9999, "atol": 1e-3, "compile_seconds": 0.5}
REFUSED = {"compilation_status": 2, "verdict": "unsupported", "error": "UnsupportedOpError", "message": "no form"}
WRONG = {**DONE, "pcc": "nan", "atol": "nan"}
ZEROS = {**DONE, "pcc": "nan", "atol": 0.0}  # constant results have no correlation


def written(folder, name, commit="c1", **ops):
    """Writes a file as an op-by-op run does, and returns its path."""
    config = CompilerConfig(model_name=name, results_path=str(folder / commit))
    records = OpRecords(config)
    records.file.origin |= {"commit": commit}
    for op_name, outcome in ops.items():
        form = f"aten.{op_name}.default ('[(torch.float32, (4, 8))]',) {{}}"
        fresh = new_record(config, f"aten.{op_name}.default", len(records.ops))
        records.ops[form] = {**fresh, "input_shapes": ["(4, 8)"], "ttir_graph": "t" * 40_000, **outcome}
    return records.save()


def test_records_of_a_file(tmp_path):
    path = written(tmp_path, "m", relu=DONE, erf=REFUSED, exp=WRONG, mul=ZEROS)
    relu, erf, exp, mul = read(path)
    assert relu["key"] == "m: aten.relu.default ('[(torch.float32, (4, 8))]',) {}"
    assert [r["verdict"] for r in (relu, erf, exp, mul)] == ["match", "error", "wrong", "match"]
    assert (erf["outcome"], erf["message"], exp["message"]) == ("unsupported", "no form", "PCC nan, required 0.99")
    assert relu["commit"] == "c1" and relu["seconds"] == 0.5 and len(relu["ttir_graph"]) < 32_768
    database = Database(str(tmp_path / "r.duckdb"))
    assert [database.add(read(path)) for _ in range(2)] == [4, 0]


@pytest.mark.parametrize("text", ["{", "[1]", '{"ops": {}}'])
def test_other_json_is_named(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ResultsFileError, match=r"a\.json.*op-by-op"):
        read(tmp_path / "a.json")


@pytest.mark.parametrize("field", ["compile_seconds", "pcc", "atol"])
def test_a_number_beyond_every_float_is_refused(tmp_path, field):
    with pytest.raises(ResultsFileError, match="op-by-op"):
        read(written(tmp_path, "m", relu={**DONE, field: 10**400}))


def test_a_graph_that_could_not_be_split_into_ops(tmp_path):
    records = OpRecords(CompilerConfig(model_name="m", results_path=str(tmp_path)))
    records.error = "no StableHLO"
    (record,) = read(records.save())
    assert (record["verdict"], record["message"]) == ("error", "no StableHLO")
    write_workbook([record], tmp_path / "r.xlsx")
    assert "no StableHLO" in render([record], [record]) and op_pages([record])


def test_the_op_that_got_worse_is_found(tmp_path):
    before = read(written(tmp_path, "m", "c1", relu=DONE, erf=DONE))
    after = read(written(tmp_path, "m", "c2", relu=DONE, erf=REFUSED))
    (change,) = compare(before, after)
    assert "aten.erf.default" in change.key and (change.before, change.after, change.worse) == ("match", "error", True)


def test_workbook(tmp_path):
    records = [r for name in "ab" for r in read(written(tmp_path, name, relu=DONE, erf=REFUSED))]
    write_workbook([*records, model("a"), model("c")], tmp_path / "r.xlsx")
    book = openpyxl.load_workbook(tmp_path / "r.xlsx")
    assert book.sheetnames[-3:] == ["a", "c", "b"]
    head, *rows = book["Per Model Compile Statuses"].iter_rows(values_only=True)
    first = dict(zip(head, rows[0], strict=True))
    assert (first["Model"], first["Total"], first["7 executed"], first["% Executed"]) == ("a", 2, 1, 50)
    assert (
        book["Per Model Compile Statuses"].cell(2, head.index("% Executed") + 1).fill.start_color.rgb[-6:] == "F8CBAD"
    )
    assert [row[0] for row in book["All Ops"].iter_rows(values_only=True)][1:] == [
        "aten.relu.default",
        "aten.erf.default",
    ]
    head, row = book["All Ops (Not Executing)"].iter_rows(values_only=True)
    failing = dict(zip(head, row, strict=True))
    assert (failing["Name"], failing["Models"], failing["Reached"]) == ("aten.erf.default", "2: a, b", 2)
    assert failing["Compile Error"] == "no form"
    assert [cell.value for cell in book["a"]["G"]] == ["Status", "match", "error"]


def test_pages_of_ops(tmp_path):
    records = [r for name in "ab" for r in read(written(tmp_path, name, relu=DONE, erf=REFUSED))]
    pages = op_pages([*records, op("erf/float32/0"), op("erf/int64/0", "wrong")])
    assert sorted(pages) == ["README.md", "erf.md", "relu.md"]
    assert "| [erf](erf.md) | 0 of 2 | 1 of 2 |" in pages["README.md"]
    (row,) = [line for line in pages["erf.md"].splitlines() if "aten.erf.default" in line]
    assert "(4, 8)" in row and "| a, b | unsupported | 2 |" in row and "no form" in row
    assert "| erf/int64/0 | wrong |" in pages["erf.md"]


def test_web_page(tmp_path):
    page = render(records := read(written(tmp_path, "m", relu=DONE, erf=REFUSED)), records)
    assert page.index("aten.erf.default") < page.index("aten.relu.default")  # ops that fail come first
    assert json.dumps("no form")[1:-1] in page

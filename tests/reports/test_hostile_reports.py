"""Records that are made to do harm: each is refused with an error of one line, or all reports can be made with it."""

from __future__ import annotations

import copy
import io
import json
import random
import re

import pytest
from typer.testing import CliRunner

from tests.reports.records import RECORDS, model, op
from tt_torch.errors import ResultsFileError
from tt_torch.records.console import plain_console
from tt_torch.records.summary import print_summary
from tt_torch.reports.compare import compare
from tt_torch.reports.database import Database
from tt_torch.reports.op_pages import op_pages
from tt_torch.reports.page import render
from tt_torch.reports.reading import read
from tt_torch.reports.spreadsheet import write_workbook
from tt_torch.tools.cli import app

UNIQUE = {
    "kind": "unique-op", "key": "m: aten.add.Tensor f32", "verdict": "match", "outcome": "executed", "model": "m",
    "framework_op_name": "aten.add.Tensor", "commit": "c1", "time": "2026-01-01T00:00:00+00:00",
    "pcc": 1.0, "atol": 0.0, "compilation_status": 7,
    "input_shapes": ["(2, 2)"], "output_shapes": ["(2, 2)"], "num_ops": 2, "seconds": 0.1,
    "input_tensors": [{"shape": [2, 2], "data_type": "Float32", "buffer_type": "DRAM", "layout": "Tile"}],
    "output_tensors": [], "stable_hlo_ops": ["stablehlo.add"], "global_op_idx": 0,
}  # fmt: skip
TEST = {"kind": "test", "key": "a::b", "verdict": "match", "seconds": 0.1, "time": None, "commit": "c1"}
ODD = (
    None, True, 0, -1, 3.5, 1e38, 1e308, float("nan"), float("inf"), 10**400, "", "nan", "[/x]", "test[float32]",
    "../../x", "\0", "\ud800", "a\nb", "=1+1", [], [1, 2], {}, {"a": 1}, [[]], [None], {"op": "x"}, "x" * 40_000,
)  # fmt: skip


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def reports(records, folder):
    """Makes everything that can be made of records: database, workbook, web page, pages, comparison and summary."""
    database = Database(str(folder / "r.duckdb"))
    database.add(records)
    found = database.latest()
    write_workbook(found, folder / "r.xlsx")
    render(found, database.records())
    op_pages(found)
    compare(found, found)
    print_summary(found, plain_console(file=io.StringIO()))


def damaged(rng, record):
    """A record in which one to three fields, perhaps inside of others, have an odd value or are missing."""
    record = copy.deepcopy(record)
    for _ in range(rng.randint(1, 3)):
        place = record
        while isinstance(place, dict | list) and place:
            key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
            if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.5:
                break
            place = place[key]
        if place and rng.random() < 0.2:
            del place[key]
        elif place:
            place[key] = copy.deepcopy(rng.choice(ODD))
    return record


@pytest.mark.parametrize("seed", range(4))
def test_odd_records_are_refused_or_reported(tmp_path, seed):
    rng, refused, found = random.Random(seed), 0, [*RECORDS, UNIQUE, TEST]
    for _ in range(500):
        record = damaged(rng, rng.choice([*RECORDS, UNIQUE, TEST]))
        try:
            found += read(lines(tmp_path / "r.jsonl", record))
        except ResultsFileError as error:
            assert "\n" not in str(error) and str(error).isprintable()
            refused += 1
    assert refused > 50 and len(found) > 50
    reports(found, tmp_path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[1,2]", "line 1 is no object"),
        ("12", "line 1 is no object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"key":' * 100 + "1" + "}" * 100, "nested too deeply"),
        (json.dumps(model("m", pcc="nan")), "record 1: pcc is 'nan', not a number"),
        (json.dumps(model("m", host_ops=[[1]])), "host_ops is .* not a list of objects with op, reason, count"),
        (json.dumps(op("add/float32/0", "fine")), "verdict is 'fine', not one of crash"),
        (json.dumps({"key": "a", "verdict": "match"}), "a record has no kind"),
        (json.dumps(UNIQUE | {"input_tensors": None}), "an op in a model has no input_tensors"),
    ],
)
def test_odd_lines(tmp_path, line, words):
    (tmp_path / "r.jsonl").write_text(line + "\n")
    with pytest.raises(ResultsFileError, match=words):
        read(tmp_path / "r.jsonl")
    done = CliRunner().invoke(app, ["report", "import", str(tmp_path / "r.jsonl"), "--db", str(tmp_path / "r.duckdb")])
    assert done.exit_code == 1 and "Traceback" not in done.output and done.exception.__class__ is SystemExit


@pytest.mark.parametrize("name", ["r.json", "r.xml"])
@pytest.mark.parametrize("text", ["[1, 2]", "[" * 100_000, '{"ops": []}', "null", "<a>" * 50_000, "<a/>"])
def test_odd_files(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    if (name, text) == ("r.xml", "<a/>"):
        assert read(tmp_path / name) == []
        return
    with pytest.raises(ResultsFileError):
        read(tmp_path / name)


@pytest.mark.parametrize(("time", "seconds"), [("1,234.5", 1234.5), ("0.25", 0.25), ("soon", None), ("inf", None)])
def test_durations_of_junit(tmp_path, time, seconds):
    case = f'<testsuite><testcase classname="a" name="b" time="{time}"/></testsuite>'
    (tmp_path / "r.xml").write_text(case)
    if seconds is None:
        with pytest.raises(ResultsFileError, match=r"seconds is .*, not a number"):
            read(tmp_path / "r.xml")
    else:
        assert [record["seconds"] for record in read(tmp_path / "r.xml")] == [seconds]


def test_pages_stay_in_their_folder(tmp_path):
    names = [
        "../../out",
        "/etc/x",
        "a/b",
        "a_b",
        "README",
        "readme",
        "..",
        ".hidden",
        "x" * 300,
        "a|b",
        "ä",
        "A/b",
        "a\nb",
    ]
    database = tmp_path / "r.duckdb"
    Database(str(database)).add([op(f"{name.replace('/', '!')}/float32/0") for name in names])
    ops = [UNIQUE | {"key": f"m: {name}", "framework_op_name": name} for name in names]
    Database(str(database)).add(ops)
    folder = tmp_path / "inner" / "pages"
    done = CliRunner().invoke(app, ["report", "pages", "-o", str(folder), "--db", str(database)])
    assert done.exit_code == 0, done.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["inner", "r.duckdb"]
    assert [p.name for p in (tmp_path / "inner").iterdir()] == ["pages"]
    files = {p.name for p in folder.iterdir()}
    linked = re.findall(r"^\| \[.*\]\((.*)\) \|", (folder / "README.md").read_text(), re.MULTILINE)
    assert sorted([*linked, "README.md"]) == sorted(files) and len({f.lower() for f in files}) == len(files)
    assert all(re.fullmatch(r"[\w+-][\w.+-]{0,110}\.md", file, re.ASCII) for file in files)


@pytest.mark.parametrize("key", ["test[float32]", "test[/x]", "[red]a[/red]", ":smile:", "a[link=x]b"])
def test_comparisons_show_keys_as_they_are(tmp_path, key):
    database = str(tmp_path / "r.duckdb")
    Database(database).add([model(key), model(key, "error", commit="c2", message="[/y]")])
    done = CliRunner().invoke(app, ["report", "compare", "c1", "c2", "--db", database])
    assert f"model {key}: match -> error" in done.stdout and "[/y]" in done.stdout, done.output
    shown = io.StringIO()
    print_summary([model(key, "error", message=key, dtype=key)], plain_console(file=shown, width=200))
    assert key in shown.getvalue()


def test_a_terminal_gets_texts_without_colours():
    """The package rich once took half a minute to find what to colour in a text of 40,000 letters."""
    shown = io.StringIO()
    console = plain_console(file=shown, width=200, force_terminal=True, color_system="truecolor")
    text = "f32[3]: 1 of 2.5 'texts' at /tmp/a.py: x=True"
    console.print(text)
    assert shown.getvalue() == f"{text}\n"


@pytest.mark.parametrize("name", ["we?ird#%20.duckdb", "a b&c=d.duckdb", "ü@host:1.duckdb", ":memory:"])
def test_databases_of_any_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Database(name).add(RECORDS)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert len(Database(name).latest()) == len(RECORDS)

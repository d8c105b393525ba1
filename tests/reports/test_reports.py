"""The workbook, the web page and the comparison of two commits."""

from __future__ import annotations

import re

import openpyxl
import pytest
from typer.testing import CliRunner

from tests.browser import Browser
from tests.reports.records import HOST, RECORDS, model, op
from tt_torch.reports.compare import compare
from tt_torch.reports.database import Database
from tt_torch.reports.page import distribution, render
from tt_torch.reports.spreadsheet import write_workbook
from tt_torch.sweep.pages import models_page, ops_page
from tt_torch.tools.cli import app


def test_workbook(tmp_path):
    write_workbook(RECORDS, tmp_path / "r.xlsx")
    book = openpyxl.load_workbook(tmp_path / "r.xlsx")
    long = "a_model_whose_name_is_very_l"
    fixed = ["Per Model Status", "Per Model Compile Statuses", "All Ops", "All Ops (Not Executing)"]
    fixed += ["OpInfo", "OpInfo (Not Executing)"]
    assert book.sheetnames == [*fixed, "resnet", long, f"{long}_1"]
    statuses = [(row[0].value, row[2].value, row[2].fill.start_color.rgb[-6:]) for row in book["Per Model Status"]][1:]
    assert statuses[0] == ("resnet", "match", "C6EFCE")
    assert [status for _, status, _ in statuses] == ["match", "on host", "error"]
    assert [row[0].value for row in book["OpInfo (Not Executing)"]][1:] == ["add/int64/0", "histc/float32/0"]
    assert book["OpInfo (Not Executing)"]["D2"].value == "'=values | differ"  # text, and not a formula
    assert [c.value for c in book[long][3]] == [HOST["op"], "host", 2, HOST["reason"], HOST["location"]]
    assert list(tmp_path.iterdir()) == [tmp_path / "r.xlsx"]


VISIBLE = "[...document.querySelectorAll('tr.row')].filter(r => r.offsetParent).map(r => r.cells[0].textContent)"


def test_page_in_a_browser(tmp_path):
    (tmp_path / "page.html").write_text(render(RECORDS, RECORDS))
    with Browser(tmp_path / "profile") as browser:
        browser.open((tmp_path / "page.html").as_uri())
        assert {"resnet", "add", "histc"} <= set(browser.run(VISIBLE))
        browser.keep("report")
        browser.run("search.value = 'HISTC no form'; search.dispatchEvent(new Event('input'))")
        found = browser.run(VISIBLE)
        assert "histc" in found and "a_model_whose_name_is_very_long_indeed" in found and "resnet" not in found
        browser.run("search.value = ''; filter.value = 'bad'; filter.dispatchEvent(new Event('change'))")
        wrong = browser.run(VISIBLE)
        assert "add" in wrong and "resnet" not in wrong
        browser.resize(390, 844)
        assert browser.run("document.documentElement.scrollWidth") == 390, "it is no wider than a telephone"


def test_page_needs_nothing_else_and_escapes():
    page = render(RECORDS, RECORDS)
    assert not re.search(r"(src|href)=|url\(|@import|https?://", page)
    assert "no form <on>" not in page and "no form &lt;on&gt; the device" in page
    assert render([], [])  # an empty database has a page, too


def test_distribution_of_pccs_by_their_nines():
    assert [n for _, n in distribution([0.5, 0.95, 0.995, 1.0, float("nan")])] == [2, 1, 1, 0, 0, 0, 0, 0, 1]


def test_compare_finds_exactly_what_changed():
    before = [op(f"add/float32/{i}") for i in range(5)] + [op("mul/float32/0", "wrong"), op("gone/bool/0")]
    after = [op(f"add/float32/{i}") for i in range(3)] + [op("add/float32/3", host_ops=[HOST])]
    after += [op("add/float32/4", "crash"), op("mul/float32/0"), op("new/bool/0", "wrong")]
    pccs = {"far": (1 - 1e-13, 1 - 2e-6), "near": (1 - 1e-14, 1 - 9e-8), "same": (0.995, 0.994), "none": (0.99, None)}
    before += [model(name, pcc=pcc) for name, (pcc, _) in pccs.items()]
    after += [model(name, pcc=pcc) for name, (_, pcc) in pccs.items()]
    changes = [(c.key, c.before, c.after, c.worse) for c in compare(before, after)]
    assert changes == [
        ("far", "PCC 1", "PCC 0.999998", True),
        ("add/float32/3", "match", "on host", True),
        ("add/float32/4", "match", "crash", True),
        ("mul/float32/0", "wrong", "match", False),
    ]


@pytest.mark.parametrize(("second", "status"), [("match", 0), ("wrong", 1)])
def test_compare_command(tmp_path, second, status):
    db = str(tmp_path / "r.duckdb")
    Database(db).add([model("a", commit="c1"), model("a", second, commit="c2")])
    result = CliRunner().invoke(app, ["report", "compare", "c1", "c2", "--db", db])
    assert result.exit_code == status, result.output
    assert ("worse  model a: match -> wrong" in result.output) == bool(status)


def test_import_xlsx_and_html_commands(tmp_path):
    db, source = str(tmp_path / "r.duckdb"), tmp_path / "junit.xml"
    source.write_text('<testsuite><testcase classname="t" name="x" time="1"/></testsuite>')
    for arguments in (
        ["import", str(source)],
        ["xlsx", "-o", str(tmp_path / "r.xlsx")],
        ["html", "-o", str(tmp_path / "r.html")],
    ):
        result = CliRunner().invoke(app, ["report", *arguments, "--db", db])
        assert result.exit_code == 0, result.output
    assert "t::x" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("command", [["xlsx"], ["html"], ["pages"], ["compare", "c1", "c2"]], ids=str)
def test_a_report_needs_a_database_and_its_commit(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["report", *command, "--db", "absent/r.duckdb"])
    assert result.exit_code == 1 and not list(tmp_path.iterdir())
    assert result.stderr.startswith("error: ") and "no such file" in result.stderr and result.stderr.count("\n") == 1
    Database("r.duckdb").add([model("a", commit="c1")])
    named = [] if command[0] == "compare" else ["--commit", "c2"]
    result = CliRunner().invoke(app, ["report", *command, *named, "--db", "r.duckdb"])
    assert result.exit_code == 1 and "has no records of commit c2" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["r.duckdb"]


def test_pages_of_ops_and_models():
    ops, models = ([r for r in RECORDS if r["kind"] == kind] for kind in ("op", "model"))
    assert "| float32 | 2 | 2 | 2 | 1 (50.0%) |" in ops_page(ops)
    assert "| add/int64/0 | wrong | Mismatch: =values \\| differ |" in ops_page(ops)
    assert "| aten.histc.default | no form &lt;on> the device | 1 | histc |" in ops_page(ops)
    assert "1 of 3 run without the host" in models_page(models)

"""`tt-torch sweep`: choice of items, resumption, summaries, files."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tt_torch.records.lines import Results, lines, provenance, read
from tt_torch.records.summary import device_only
from tt_torch.reports.database import Database
from tt_torch.reports.reading import read as read_file
from tt_torch.sweep.cli import choose
from tt_torch.sweep.junit import JUnitFile
from tt_torch.tools.cli import app
from tt_torch.workers.engine import Item

ITEMS = [Item(f"{name}/{i}", "none") for name in "abcdefgh" for i in range(5)]


def test_choose_by_expression():
    assert [item.key for item in choose(ITEMS, "^[ab]/[01]$", 1.0, 0)] == ["a/0", "a/1", "b/0", "b/1"]


def test_a_fraction_is_drawn_evenly_from_all_items():
    chosen = choose(ITEMS, "", 0.2, seed=1)
    assert [item.key[0] for item in chosen] == list("abcdefgh")
    assert chosen == choose(ITEMS, "", 0.2, seed=1) != choose(ITEMS, "", 0.2, seed=2)


def test_the_last_record_of_a_key_counts_and_a_torn_line_does_not(tmp_path):
    results = Results(tmp_path / "r.jsonl")
    for verdict in ("wrong", "match"):
        results.append({"key": "a", "verdict": verdict, **provenance()})
    with results.path.open("a") as file:
        file.write('{"key": "b", "verd')
    results.append({"key": "c", "verdict": "match", **provenance(), "commit": "another"})
    assert [(record["key"], record["verdict"]) for record in read(results.path)] == [("a", "match"), ("c", "match")]
    assert results.done(provenance()) == {"a"}
    assert results.done({**provenance(), "versions": {}}) == results.done({**provenance(), "source_hash": "0"}) == set()


@pytest.mark.slow
def test_a_changed_file_of_models_runs_again(tmp_path):
    """`make` fails before anything is compiled. The same file does not run again, and a changed file runs again.

    The second run adds another record of the same key.
    """
    models, output = tmp_path / "changed_models.py", tmp_path / "r.jsonl"
    text = "from tt_torch.sweep.registry import Model\nMODELS = [Model('m', lambda: 1 / 0)]\n"
    arguments = ["sweep", str(models), "-o", str(output)]
    for content in (text, text, text.replace("1 / 0", "{}['no such key']")):
        models.write_text(content)
        assert CliRunner().invoke(app, arguments).exit_code == 1
    assert [record["error"] for record in lines(output)] == ["ZeroDivisionError", "KeyError"]


def test_device_only_counts_static_samples_that_eager_runs():
    row = {"dtype": "float32", "verdict": "match", "host_ops": [], "graph_breaks": [], "static": True}
    others = [{"host_ops": [{"op": "x"}]}, {"graph_breaks": ["x"]}, {"static": False}, {"verdict": "eager-raises-same"}]
    assert device_only([row] + [row | other for other in others]) == {"float32": (1, 3)}


@pytest.mark.slow
def test_a_sweep_of_ops_and_its_resumption(tmp_path):
    output = tmp_path / "ops.jsonl"
    arguments = ["sweep", "ops", "-k", "^(add|empty_like)/", "--dtype", "float32", "--samples", "2", "-o", str(output)]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    lines = output.read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == [
        f"{op}/float32/{i}" for op in ("add", "empty_like") for i in (0, 1)
    ]
    junit, db = tmp_path / "junit.xml", str(tmp_path / "r.duckdb")
    assert CliRunner().invoke(app, [*arguments, "--junit-xml", str(junit), "--db", db]).exit_code == 0
    assert output.read_text().splitlines() == lines  # no item was run twice
    assert len(read_file(junit)) == len(Database(db).latest()) == 4  # but all are reported


@pytest.mark.parametrize(("seconds", "status"), [(10.0, 0), (10.5, 1)])
def test_an_op_that_is_slow_to_compile_is_named(tmp_path, seconds, status):
    """The sweep finds the record of this commit, so it runs nothing. The result of the op is right."""
    output, page = tmp_path / "ops.jsonl", tmp_path / "ops.md"
    done = {"kind": "op", "key": "add/float32/0", "dtype": "float32", "verdict": "match", "seconds": 99.0}
    Results(output).append({**done, "cpu_seconds": seconds, **provenance()})
    sweep = ["ops", "-k", "^add/float32/0$", "-o", str(output), "--junit-xml", str(tmp_path / "junit.xml")]
    for arguments, expected in ((sweep, status), (["summary", str(output)], 0)):
        result = CliRunner().invoke(app, ["sweep", *arguments])
        assert result.exit_code == expected, result.output
        complaint = "slow: add/float32/0: compiling took 10.5 s of processor time, more than 10 s\n"
        assert (complaint in result.output) == (status == 1)
    assert [record["verdict"] for record in read_file(tmp_path / "junit.xml")] == ["wrong" if status else "match"]
    assert CliRunner().invoke(app, ["sweep", "docs", str(output), "-o", str(tmp_path)]).exit_code == 0
    assert ("| add/float32/0 | 10.5 |" in page.read_text()) == (status == 1)


def test_what_is_not_run_again_is_told_and_each_reason_names_a_sample(tmp_path):
    output, wrong = tmp_path / "ops.jsonl", {"verdict": "wrong", "error": "ValuesDiffer", "message": "y" * 200}
    for index, record in enumerate([wrong, wrong, {"verdict": "match", "host_ops": [{"op": "fft", "reason": "r"}]}]):
        Results(output).append({"kind": "op", "key": f"add/float32/{index}", **record, **provenance()})
    result = CliRunner().invoke(app, ["sweep", "ops", "-k", "^add/float32/[012]$", "-o", str(output)])
    assert result.exit_code == 1 and f"3 of 3 items have a record already; delete {output}" in result.stderr
    rows = [line.replace("│", " ").split() for line in result.stdout.splitlines() if line.startswith("│ ")]
    assert ["2", "wrong:", "ValuesDiffer:", "add/float32/0"] in [row[:3] + row[-1:] for row in rows]
    assert ["1", "fft:", "r", "add/float32/2"] in rows and "y…" in result.stdout


MODELS = """
import os, signal, time
from pathlib import Path
import torch
from tt_torch.sweep.registry import Model

def make(name):
    runs = Path(__file__).with_name(name)
    with runs.open("a") as file:
        print(os.getpid(), file=file)
    first = len(runs.read_text().split()) == 1
    if first and name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if first and name == "last":
        time.sleep(600)
    return torch.nn.Linear(4, 4).eval(), {"input": torch.ones(1, 4)}

MODELS = [Model(name, lambda name=name: make(name)) for name in ("done", "killed", "last")]
"""


@pytest.mark.slow
def test_a_killed_sweep_goes_on(tmp_path):
    """First a worker is killed. Then the sweep is killed at its last model.

    No record is lost, and no finished model runs again.
    """
    (tmp_path / "my.py").write_text(MODELS)
    arguments = ["sweep", str(tmp_path / "my.py"), "-o", str(tmp_path / "r.jsonl")]
    with subprocess.Popen([sys.executable, "-m", "tt_torch.tools.cli", *arguments]) as sweep:
        wait(lambda: (tmp_path / "last").exists() and (tmp_path / "last").read_text())
        sweep.kill()
    wait(lambda: not Path("/proc", (tmp_path / "last").read_text().strip()).exists())  # the worker ends with the sweep
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0, again.output
    assert [(r["key"], r["verdict"]) for r in lines(tmp_path / "r.jsonl")] == [
        (name, "match") for name in ("done", "killed", "last")
    ]
    assert [len((tmp_path / name).read_text().split()) for name in ("done", "killed", "last")] == [1, 2, 2]


def wait(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_unknown_dtype_is_named():
    result = CliRunner().invoke(app, ["sweep", "ops", "--dtype", "float8"])
    assert result.exit_code == 2 and "float8" in result.output


def test_shards_share_all_items():
    parts = [choose(ITEMS, "", 1.0, 0, f"{i}/3") for i in (1, 2, 3)]
    assert sorted(item.key for part in parts for item in part) == [item.key for item in ITEMS]
    assert {len(part) for part in parts} == {13, 14}


@pytest.mark.parametrize("bad", [["-k", "("], ["-k", "no such op"], ["--timeout", "0"], ["--memory", "-1"]], ids=str)
def test_bad_options(bad):
    result = CliRunner().invoke(app, ["sweep", "ops", "--dtype", "bool", *bad])
    assert result.exit_code == 2 and bad[0] in result.output


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b"])
def test_a_malformed_shard_is_an_error(shard):
    result = CliRunner().invoke(app, ["sweep", "ops", "--shard", shard])
    assert result.exit_code == 2 and shard in result.output


def test_junit_is_whole_after_each_case(tmp_path):
    """The file is read while it is still open, since a crash would leave it in this state."""
    path = tmp_path / "junit.xml"
    junit = JUnitFile(path, "sweep ops", {"commit": "c1"})
    assert read_file(path) == []
    failed = {"verdict": "crash", "depth": "TTNN_IR", "error": "SIGSEGV", "message": "in <f>\x1b[0m & g"}
    for i, outcome in enumerate([{"verdict": "match"}, failed, {"verdict": "wrong", "error": "E", "message": ""}]):
        junit.append({"kind": "op", "key": f"add/float32/{i}", "seconds": 0.5, **outcome})
        assert len(read_file(path)) == i + 1
    assert [record["verdict"] for record in read_file(path)] == ["match", "error", "wrong"]
    assert read_file(path)[1]["message"] == "in <f>[0m & g"
    assert read_file(path)[1]["properties"] == {
        "achieved_compile_depth": "TTNN_IR",
        "bringup_status": "FAILED_RUNTIME",
    }
    junit.close()

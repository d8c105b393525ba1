"""The plugin for pytest: its options, what it leaves alone, and reports of processes that die."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tomllib

from tt_torch.reports.reading import read
from tt_torch.testing import plugin
from tt_torch.tools.crashsafe_utils import (
    crashsafe_suffix,
    get_achieved_compile_depths,
    get_max_achieved_compile_depth,
    rewrite_crashsafe_xml,
)
from tt_torch.tools.generate_benchmark_report import parse_benchmark_xml
from tt_torch.tools.postprocess_crashsafe_reports import merge_junit_reports

ROOT = Path(__file__).parents[2]
REPORT = f"r.xml{crashsafe_suffix}"


def run(folder: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest with the plugin on a file with these tests, whether or not the plugin is installed."""
    (folder / "test_it.py").write_text(program)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "TT_TORCH_", "COV"))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:tt_torch",
        "-p",
        "tt_torch.testing.plugin",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, "-rA", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The outcome of each test, by the name of the test."""
    lines = (line.split() for line in done.stdout.splitlines() if "test_it.py::" in line)
    return {words[1].split("::")[1]: words[0] for words in lines}


def cases(folder: Path, file: str = REPORT) -> dict[str, ElementTree.Element]:
    return {case.attrib["name"]: case for case in ElementTree.parse(folder / file).getroot().iter("testcase")}


# --- what it leaves alone -------------------------------------------------------------------------


def test_the_package_names_the_plugin():
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert [EntryPoint(name, value, "pytest11").load() for name, value in entries.items()] == [plugin]
    assert list(entries) == ["tt_torch"]  # the name that `-p no:tt_torch` takes


def test_other_runs_are_left_alone(tmp_path: Path):
    program = """
import sys
def test_modules():
    assert not {"torch", "numpy", "rich", "tt_torch.config", "tt_torch.testing.crashsafe"} & {*sys.modules}
def test_properties(record_property): assert "CrashSafe" not in record_property.__qualname__
def test_op_by_op(op_by_op): assert op_by_op is None
class TestOwn:
    import pytest
    @pytest.fixture
    def op_by_op(self): return "mine"
    def test_it(self, op_by_op): assert op_by_op == "mine"
"""
    done = run(tmp_path, program)
    assert done.returncode == 0, done.stdout
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == ["test_it.py"]


# --- op by op -------------------------------------------------------------------------------------

KINDS = """
import pytest
from tt_torch.config import CompileDepth, OpByOpBackend

KINDS = [OpByOpBackend.STABLEHLO, OpByOpBackend.TORCH, None]

@pytest.mark.parametrize("op_by_op", KINDS, ids=["stablehlo", "torch", "full"])
def test_own(op_by_op): pass

def test_config(compiler_config):
    print(compiler_config.compile_depth.name, compiler_config.op_by_op_backend.name)

def test_none(): pass
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"test_own[stablehlo]", "test_own[torch]", "test_own[full]", "test_config", "test_none"}),
        (["--op_by_op_torch"], {"test_own[torch]", "test_config[op_by_op_torch]"}),
        (["--op_by_op_stablehlo"], {"test_own[stablehlo]", "test_config[op_by_op_stablehlo]"}),
        (
            ["--op_by_op_torch", "--op_by_op_stablehlo"],
            {
                "test_own[torch]", "test_config[op_by_op_torch]", "test_own[stablehlo]",
                "test_config[op_by_op_stablehlo]",
            },
        ),
    ],
    ids=["none", "torch", "stablehlo", "both"],
)  # fmt: skip
def test_op_by_op_options_choose_tests(tmp_path: Path, options: list[str], expected: set[str]):
    done = run(tmp_path, KINDS, *options)
    assert outcomes(done) == dict.fromkeys(expected, "PASSED"), done.stdout
    if options == ["--op_by_op_stablehlo"]:
        assert "EXECUTE_OP_BY_OP STABLEHLO" in done.stdout and "3 deselected" in done.stdout
    if not options:
        assert "EXECUTE TORCH" in done.stdout


# --- reports that survive ---------------------------------------------------------------------------

DYING = """
import os, signal, pytest

def test_before(record_property):
    for name, value in {"model_name": "first", "achieved_compile_depth": "STABLEHLO"}.items():
        record_property(name, value)
    record_property("achieved_compile_depth", "EXECUTE")
    record_property("tags", {"pcc": 0.5, "model_name": "first"})

def test_wrong(record_property):
    record_property("odd", "a\\x00b<&>")
    assert 1 == 2

def test_skipped(): pytest.skip("not today")

@pytest.fixture
def broken():
    yield
    raise ValueError("at the end")

def test_broken(broken): pass

def test_dying(record_property):
    record_property("model_name", "second")
    record_property("achieved_compile_depth", "TTNN_IR")
    os.kill(os.getpid(), signal.SIGKILL)

def test_after(): pass

class TestGroup:
    @pytest.mark.parametrize("x", ["a::b", "[c", "\\x01"])
    def test_inside(self, x): pass
"""


def test_a_report_has_all_results_when_the_process_dies(tmp_path: Path):
    program = DYING.replace('"odd"', r'"o\x01dd"')  # pytest's own report is no XML with such a name
    done = run(tmp_path, program, "--crashsafe", "--junit-xml=r.xml", "-p", "no:xdist")
    assert done.returncode == -9 and not (tmp_path / "r.xml").exists()
    found = cases(tmp_path)
    results = {name: [child.tag for child in case if child.tag != "properties"] for name, case in found.items()}
    assert results == {
        "test_before": [], "test_wrong": ["failure"], "test_skipped": ["skipped"], "test_broken": ["error"],
        "test_dying": ["error"],
    }  # fmt: skip
    assert found["test_wrong"].find("failure").attrib["message"] == "assert 1 == 2"
    assert found["test_wrong"].find("properties/property").attrib == {"name": "odd", "value": "ab<&>"}
    assert "not today" in found["test_skipped"].find("skipped").attrib["message"]
    assert "at the end" in found["test_broken"].find("error").attrib["message"]
    assert found["test_dying"].find("error").attrib["type"] == "crash"
    (suite,) = ElementTree.parse(tmp_path / REPORT).getroot()
    counts = {name: suite.attrib[name] for name in ("tests", "errors", "failures", "skipped")}
    assert counts == {"tests": "5", "errors": "2", "failures": "1", "skipped": "1"}
    verdicts = {record["key"]: record["verdict"] for record in read(tmp_path / REPORT) if record["kind"] == "test"}
    assert verdicts == {
        "test_it::test_before": "match", "test_it::test_wrong": "wrong", "test_it::test_skipped": "skipped",
        "test_it::test_broken": "error", "test_it::test_dying": "error",
    }  # fmt: skip


def test_a_report_of_a_whole_run_agrees_with_pytests_own(tmp_path: Path):
    program = DYING.replace("os.kill(os.getpid(), signal.SIGKILL)", "pass")
    done = run(tmp_path, program, "--crashsafe", "--junit-xml=r.xml", "-p", "no:xdist")
    assert done.returncode == 1
    ours, theirs = cases(tmp_path), cases(tmp_path, "r.xml")
    assert list(ours) == list(theirs) and ours["test_dying"].find("error") is None
    for name, case in theirs.items():
        assert ours[name].attrib["classname"] == case.attrib["classname"]
        assert {c.tag for c in ours[name]} - {"properties"} == {c.tag for c in case} - {"properties"}
        pairs = [
            [(p.attrib["name"], p.attrib["value"]) for p in c.iterfind("properties/property")]
            for c in (ours[name], case)
        ]
        assert name == "test_wrong" or pairs[0] == pairs[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--crashsafe"], "--crashsafe needs --junit-xml"),
        (["--crashsafe", "--junit-xml=r.xml", "-n", "2"], "--crashsafe needs all tests in one process: add -n 0"),
    ],
)
def test_crashsafe_says_what_it_needs(tmp_path: Path, options: list[str], message: str):
    done = run(tmp_path, "def test_it(): pass", *options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and message in done.stderr


def test_old_tools_read_and_merge_reports(tmp_path: Path):
    run(tmp_path, DYING, "--crashsafe", "--junit-xml=r.xml", "-p", "no:xdist")
    assert get_achieved_compile_depths(tmp_path / REPORT) == ["STABLEHLO", "EXECUTE", "TTNN_IR"]
    assert get_max_achieved_compile_depth(tmp_path / REPORT) == "EXECUTE"
    (tmp_path / "cut.xml").write_text("<testsuites><test")
    assert get_achieved_compile_depths(tmp_path / "cut.xml") == ["FAILED_FE"]
    rewrite_crashsafe_xml(tmp_path / REPORT)
    tags = {r["key"]: r["properties"]["tags"] for r in read(tmp_path / REPORT) if r["kind"] == "test"}
    first = {"pcc": 0.5, "model_name": "first", "bringup_status": "INCORRECT_RESULT"}
    assert tags["test_it::test_before"] == first | {"max_achieved_compile_depth": "EXECUTE"}
    assert tags["test_it::test_dying"] == {
        "model_name": "second", "max_achieved_compile_depth": "TTNN_IR", "bringup_status": "FAILED_RUNTIME",
    }  # fmt: skip
    assert tags["test_it::test_skipped"]["bringup_status"] == "FAILED_FE_COMPILATION"
    merged = tmp_path / "merged" / "all.xml"
    merge_junit_reports([str(tmp_path / name) for name in (REPORT, "cut.xml", REPORT)], merged)
    results = parse_benchmark_xml(merged.parent)
    assert len(results) == 10 and results[0][0] == "test_it::test_before" and results[0][2] == "EXECUTE"
    assert all(seconds >= 0 for _, seconds, _ in results)


# --- memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["0", "2"])
def test_memory_of_each_test_is_logged(tmp_path: Path, workers: str):
    program = """
import time
kept = []
def test_small(): pass
def test_large():
    block = bytearray(80 << 20)
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(0.5)
def test_keeps(): kept.append(b"x" * (40 << 20))
"""
    for _ in range(2):
        assert run(tmp_path, program, "--log-memory-usage", "-n", workers).returncode == 0
    rows = list(csv.DictReader((tmp_path / plugin.MEMORY_LOG).open()))
    assert sorted(row["test_name"].split("::")[1] for row in rows) == sorted(
        ["test_small", "test_large", "test_keeps"] * 2
    )
    numbers = [{k: float(v) for k, v in row.items() if k != "test_name"} for row in rows]
    for n in numbers:
        assert n["min_memory"] <= min(n["start_mem"], n["end_mem"]) and n["max_memory"] >= max(
            n["start_mem"], n["end_mem"]
        )
        assert n["by_test"] == pytest.approx(n["max_memory"] - n["start_mem"], abs=0.02)
        assert n["after_trim"] <= n["after_gc"] + 1
    by_name = dict(zip((row["test_name"].split("::")[1] for row in rows), numbers, strict=True))
    assert by_name["test_large"]["by_test"] > 75
    assert by_name["test_large"]["end_mem"] - by_name["test_large"]["start_mem"] < 40
    assert by_name["test_keeps"]["after_trim"] - by_name["test_keeps"]["start_mem"] > 35

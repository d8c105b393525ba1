"""`python -m tests.mutation`: the ways in which it breaks code, the keys of places, the verdict on a run of tests."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import cpp_places, drawing, judge, worker
from tests.mutation.places import Place, places_in
from tests.mutation.worker import Worker

SOURCE = b'''
NAMES = {"a": 1, "b": 2}


@cache
@rule("add")
def clamp(x, low: int = 0):
    """Not a place: 1 < 2."""
    if low > x:
        raise ValueError(f"{low} > {x}")
    return max(x, low, key=abs)
'''
BREAKS = """
    row: {"a": 1, "b": 2} -> ({'b': 2})
    row: {"a": 1, "b": 2} -> ({'a': 1})
    row: {"a": 1, "b": 2} -> ({'a': 2, 'b': 1})
    number: 1 -> (2)
    number: 2 -> (3)
    decorator: @rule("add") ->
    number: 0 -> (1)
    condition: low > x -> (not low > x)
    comparison: low > x -> (low >= x)
    statement: raise ValueError(f"{low} > {x}") -> pass
    result: return max(x, low, key=abs) -> return None
    call: max(x, low, key=abs) -> (min(x, low, key=abs))
    keyword: max(x, low, key=abs) -> (max(x, low))
"""


CPP = b"""// Not a place: 1 < 2.
constexpr wire::Named<int> rows[] = {{"Add", add}, {"Sub", {sub, true}}};

int clamp(int x, int low) {
  op.require(low > 0, "the bound is not > 0");
  if (x < low) throw Error("x < low" + name(x));
  return scaled(x, low) * 1.5;
}
"""
BREAKS_OF_CPP = """
    statement: op.require(low > 0, "the bound is not > 0"); -> ;
    number: true -> false
    comparison: > -> >=
    comparison: < -> <=
    arithmetic: * -> +
    number: 0 -> 1
    number: 1.5 -> 3.0
    condition: (x < low) -> (!(x < low))
    call: x, low -> low, x
    row: {"Add", add}, ->
    row: {"Sub", {sub, true}} ->
    row: add}, {"Sub", {sub, true} -> {sub, true}}, {"Sub", add
"""


def changes(source: bytes) -> list[str]:
    return [f"{place.kind}: {place.before} -> {place.after}".strip() for place in places_in("x.py", source)]


def test_every_way_to_break_a_small_file():
    assert changes(SOURCE) == textwrap.dedent(BREAKS).strip().split("\n")


def test_every_way_to_break_a_small_cpp_file():
    places = cpp_places.places_in("x.cpp", CPP)
    found = [f"{p.kind}: {p.before.strip()} -> {p.after.strip()}".strip() for p in places]
    assert found == textwrap.dedent(BREAKS_OF_CPP).strip().split("\n")


@pytest.mark.parametrize("place", places_in("x.py", SOURCE), ids=lambda place: place.after)
def test_a_place_changes_its_own_text_only(place: Place):
    broken = place.apply(SOURCE)
    assert broken != SOURCE
    assert broken.replace(place.after.encode(), place.before.encode(), 1) == SOURCE or not place.after


def test_each_place_has_a_key_of_its_own_that_lines_above_do_not_change():
    twice = b"def f(x):\n    return [x + 1, x + 1]\n"
    keys = [place.key for place in places_in("x.py", twice)]
    assert len(set(keys)) == len(keys) == 5
    assert [place.key for place in places_in("x.py", b"import y\n\n" + twice)] == keys


def test_a_seed_always_draws_the_same_places(monkeypatch):
    monkeypatch.setattr(drawing, "PARTS", ["wire"])
    first = drawing.draw(8, seed=3)
    assert len(first) == 8 and len({place.kind for place in first}) == 8
    assert drawing.draw(8, seed=3) == first
    assert drawing.draw(8, seed=4) != first


def test_a_log_leaves_the_places_that_were_not_noticed_at_last(monkeypatch, tmp_path):
    monkeypatch.setattr(drawing, "PARTS", ["wire"])
    places = drawing.draw(4, seed=3)
    said = ["noticed", "survives", "unjudged", "survives"]
    lines = [asdict(p) | {"outcome": outcome} for p, outcome in zip(places, said, strict=True)]
    log = tmp_path / "log"
    log.write_text("\n".join(map(json.dumps, [*lines, lines[3] | {"outcome": "noticed"}])))
    assert {place.key for place in drawing.left(log, drawing.every_place())} == {places[1].key, places[2].key}


@pytest.mark.parametrize(
    "body, outcome",
    [
        ("assert 1 + 1 == 2", "survives"),
        ("assert 1 + 1 == 3", "noticed"),
        ("import os; os.abort()", "noticed"),
        ("import os; os.kill(os.getpid(), 9)", "unjudged"),  # as the system does when memory runs out
        ("while True: pass", "unjudged"),
        (None, "unjudged"),  # the test is not there
    ],
)
def test_the_verdict_of_a_run_of_tests(body: str | None, outcome: str, tmp_path: Path):
    marks = "\n    ".join(judge.MARKS.replace("not ", "").split(" and "))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n    {marks}\n")
    file = tmp_path / "test_one.py"
    file.write_text(f"def test_it():\n    {body}\n" if body else "")
    answer = judge.ask([f"{file}::test_it"], limit=20 if body != "while True: pass" else 2, log=str(tmp_path / "log"))
    assert answer["outcome"] == outcome, (tmp_path / "log").read_text()


class Scripted(Worker):
    """Has four tests: "bad" always fails, "crash" always crashes. With a break, "good" fails and "breaks" crashes."""

    def __init__(self) -> None:
        self.sound = {}

    def broken(self, place: Place, tests: list[str], seconds: float) -> dict[str, Any]:
        return {"outcome": "noticed", "by": "status 11" if tests[0] in ("crash", "breaks") else tests[0]}

    def run(self, tests: list[str], seconds: float) -> dict[str, Any]:
        if tests[0] in ("good", "breaks"):
            return {"outcome": "survives", "by": "status 0"}
        return self.broken(places_in("x.py", SOURCE)[0], tests, seconds)


@pytest.mark.parametrize(
    "tests, outcome, by",
    [
        (["bad", "good"], "noticed", "good"),
        (["bad"], "unjudged", "bad"),
        (["breaks", "bad"], "noticed", "status 11"),
        (["crash", "good"], "unjudged", "status 11"),
    ],
)
def test_what_happens_without_the_break_too_says_nothing(tests: list[str], outcome: str, by: str):
    place = places_in("x.py", SOURCE)[0]
    assert Scripted().judge(place, tests, 1.0) == {"outcome": outcome, "by": by}


class Mortal(Worker):
    """A worker whose judge processes do what `lives` says, one entry per process: answer, or end without an answer."""

    def __init__(self, *lives: str) -> None:
        self.lives = iter(lives)
        self.process = self.started()

    def started(self) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-c", next(self.lives)], **pipes)


def test_a_judge_that_died_is_started_again():
    answers = """for line in open(0): print('{"outcome": "survives"}', flush=True)"""
    before_the_question, after_it = "import os; os._exit(3)", "import os; input(); os._exit(3)"
    for dies in (before_the_question, after_it):
        assert Mortal(dies, answers).run(["test"], 1.0) == {"outcome": "survives"}
        assert Mortal(dies, dies, dies).run(["test"], 1.0)["outcome"] == "unjudged"


def test_an_editable_installation_does_not_win_over_the_copy(monkeypatch, tmp_path):
    installed = type("Finder", (), {"__module__": "_editable_tt_torch"})
    others = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
    monkeypatch.setattr(sys, "meta_path", [installed, installed(), *sys.meta_path])
    exec(worker.COPY_FIRST)
    assert sys.meta_path == others
    command = [sys.executable, "-m", "tests.mutation.judge", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert f"not from {tmp_path}" in done.stderr

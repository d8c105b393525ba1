"""Judges places of the runtime's C++ sources. Each break is built, in a folder next to the copy of the repository."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pybind11
import torch

from tests.mutation.cpp_places import places_in
from tests.mutation.drawing import ROOT
from tests.mutation.equivalent import equivalent
from tests.mutation.places import Place
from tests.mutation.selection import near, words_of
from tests.mutation.worker import Worker

SOURCES = ROOT / "tt_torch" / "runtime" / "src"
# At most this many nearest tests of the runtime run first, and at most this many rows of the op table run last.
NEAREST = 60
ABOUT_THE_BUILD = ("test_installed.py", "test_cpp_example.py")  # they do not run the libraries of the broken copy
OWN = [str(f.relative_to(ROOT)) for f in sorted((ROOT / "tests" / "runtime").glob("test_*.py"))]
OWN += ["tests/driver/test_unannounced_writes.py", "tests/device/test_memory.py"]  # of fingerprints, of untyped memory
OWN += ["tests/wire/test_inferred_schema.py"]  # of files that both readers refuse
OWN = sorted((name for name in OWN if not name.endswith(ABOUT_THE_BUILD)), key=lambda name: "fuzz" in name)
# With little optimization, a file compiles in seconds. Without any, sums of products would be rounded differently.
OPTIONS = (
    "-G",
    "Ninja",
    "-DSKBUILD=ON",
    "-DCMAKE_BUILD_TYPE=Debug",
    "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
    "-DCMAKE_UNITY_BUILD=OFF",
)


def every_place() -> Iterator[Place]:
    for file in sorted(SOURCES.rglob("*.cpp")):
        yield from places_in(str(file.relative_to(ROOT)), file.read_bytes())


def draw(seed: int) -> list[Place]:
    """All places in a random order. The files take turns, and the kinds of a file take turns."""
    chance = random.Random(seed)
    by_file: dict[str, dict[str, list[Place]]] = defaultdict(lambda: defaultdict(list))
    for place in every_place():
        if not equivalent(place):
            by_file[place.path][place.kind].append(place)
    files = [in_turn(shuffled(kinds.values(), chance)) for kinds in by_file.values()]
    return list(in_turn(files))


def shuffled(groups: Iterable[list[Place]], chance: random.Random) -> list[list[Place]]:
    order = [chance.sample(group, len(group)) for group in groups]
    chance.shuffle(order)
    return order


def in_turn(groups: Iterable[Iterable[Place]]) -> Iterator[Place]:
    return (place for turn in itertools.zip_longest(*groups) for place in turn if place)


class Builder(Worker):
    """A worker that builds libraries of its own for its copy."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.build = folder.with_name(f"{folder.name}.build")
        self.variables = os.environ | {"CCACHE_DISABLE": "1"}  # what is compiled is what the copy holds now
        setup = ["cmake", "-S", str(folder), "-B", str(self.build), *OPTIONS]
        setup += [f"-Dpybind11_DIR={pybind11.get_cmake_dir()}", f"-DTORCH_DIRECTORY={Path(torch.__file__).parent}"]
        subprocess.run(setup, check=True, capture_output=True, env=self.variables)
        if not self.compiled("all"):
            raise RuntimeError(f"the unbroken copy does not build: ninja -C {self.build}")

    def compiled(self, target: str = "tt_runtime") -> bool:
        """Builds the copy and puts the libraries where Python loads them. False if it does not compile."""
        ninja = ["ninja", "-C", str(self.build), target]
        if subprocess.run(ninja, capture_output=True, env=self.variables).returncode:
            return False
        for library in (self.build / "tt_torch").rglob("*.so"):
            there = self.copy / library.relative_to(self.build)
            there.unlink(missing_ok=True)  # a process may still use the old one
            shutil.copy2(library, there)
        return True

    def judge_in_steps(self, place: Place, steps: Iterable[list[str]], seconds: float) -> dict[str, Any] | None:
        """The verdict for a place. It is None if the place does not compile, since then it is no break."""
        file = self.copy / place.path
        source = file.read_bytes()
        file.write_bytes(place.apply(source))
        try:
            if not self.compiled():
                return None
            for tests in steps:
                verdict = self.run(tests, seconds)
                if verdict["outcome"] != "survives":
                    break
            return verdict
        finally:
            file.write_bytes(source)


@cache
def tests_of(*files: str) -> list[str]:
    """The names of all tests in these files."""
    collect = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-n", "0", *files]
    listed = subprocess.run(collect, cwd=ROOT, env=os.environ, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if "::" in line]


def choose(place: Place) -> tuple[list[str], list[str]]:
    """The tests of a place: those that probably notice it, and all others of the runtime with rows of the op table.

    Names of tests are compared with words of the place, and with the names of ops and functions in the tables of its
    file. For places without these names, one in twenty of the other tests runs together with the nearest ones.
    """
    words = words_of(place)
    words |= {w.lower() for w in re.findall(r"[A-Z]?[a-z]+", place.scope) if len(w) > 2}
    words |= {name.lower() for name in re.findall(r'\{"(\w{3,})"', (ROOT / place.path).read_text())}
    own = sorted(tests_of(*OWN), key=lambda test: -near(test, words))
    first = own[:NEAREST] + own[NEAREST::20]
    rows = sorted((row for row in tests_of("tests/test_ops.py") if near(row, words)), key=lambda row: -near(row, words))
    return first, [*(test for test in own if test not in set(first)), *rows[:NEAREST]]


def judged(places: list[Place], count: int, folder: Path, limit: float) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The verdicts on the first `count` places that compile."""
    if not places or not count:
        return
    worker = Builder(folder)
    if (found := worker.run(OWN, limit))["outcome"] != "survives":
        raise RuntimeError(f"the unbroken copy fails its tests: {found}")
    for place in places:
        steps = choose(place)
        if (verdict := worker.judge_in_steps(place, steps, limit)) is not None:
            yield place, verdict | {"tests": sum(map(len, steps))}
            count -= 1
        if not count:
            return

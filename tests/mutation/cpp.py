"""Judges places of the runtime's kernels. Each break is built, in a folder next to the copy of the repository."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutation.cpp_places import places_in
from tests.mutation.drawing import ROOT
from tests.mutation.equivalent import equivalent
from tests.mutation.places import Place, numbered
from tests.mutation.selection import near, words_of
from tests.mutation.worker import Worker

KERNELS = ROOT / "tt_torch" / "runtime" / "src" / "kernels"
NEAREST = 60  # the number of rows of the op table that run before the kernels' own tests
OWN = ["tests/runtime/test_kernels.py", "tests/runtime/test_reference.py", "tests/runtime/test_fusion.py"]


def draw(count: int, seed: int) -> list[Place]:
    """`count` places, drawn in turn from all files of kernels and all kinds of breaks."""
    chance = random.Random(seed)
    by_group: dict[tuple[str, str], list[Place]] = {}
    for file in sorted(KERNELS.glob("*.cpp")):
        for place in numbered(places_in(str(file.relative_to(ROOT)), file.read_bytes())):
            if not equivalent(place):
                by_group.setdefault((place.path, place.kind), []).append(place)
    groups = list(by_group.values())
    chance.shuffle(groups)
    drawn: list[Place] = []
    while len(drawn) < count and groups:
        drawn += [group.pop(chance.randrange(len(group))) for group in groups]
        groups = [group for group in groups if group]
    return drawn[:count]


class Builder(Worker):
    """A worker that builds libraries of its own for its copy."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.build = folder.with_name(f"{folder.name}.build")
        pybind = subprocess.run([sys.executable, "-m", "pybind11", "--cmakedir"], capture_output=True, text=True)
        options = ["-DSKBUILD=ON", "-DCMAKE_BUILD_TYPE=Release", f"-Dpybind11_DIR={pybind.stdout.strip()}"]
        setup = ["cmake", "-S", str(folder), "-B", str(self.build), "-G", "Ninja", *options]
        subprocess.run(setup, check=True, capture_output=True)
        if not self.compiled():
            raise RuntimeError(f"the unbroken copy does not build: ninja -C {self.build}")

    def compiled(self) -> bool:
        """Builds the copy and puts the libraries where Python loads them. False if it does not compile."""
        if subprocess.run(["ninja", "-C", str(self.build)], capture_output=True).returncode:
            return False
        for library in (self.build / "tt_torch").rglob("*.so"):
            target = self.copy / library.relative_to(self.build)
            target.unlink(missing_ok=True)  # a process may still use the old one
            shutil.copy2(library, target)
        return True

    def judge(self, place: Place, tests: list[str], seconds: float) -> dict[str, Any] | None:
        """The verdict for a place. It is None if the place does not compile, since then it is no break."""
        file = self.copy / place.path
        source = file.read_bytes()
        file.write_bytes(place.apply(source))
        try:
            return self.run(tests, seconds) if self.compiled() else None
        finally:
            file.write_bytes(source)


@cache
def rows() -> list[str]:
    """All rows of the op table and of the kernels' tests."""
    collect = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-n", "0", "tests/test_ops.py", *OWN]
    listed = subprocess.run(collect, cwd=ROOT, env=os.environ, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if "::" in line]


def choose(place: Place) -> list[str]:
    """Rows whose names have words of the place, then all tests of kernels."""
    words = words_of(place)
    words |= {w.lower() for w in re.findall(r"[A-Z]?[a-z]+", f"{place.scope} {Path(place.path).stem}") if len(w) > 2}
    found = sorted((row for row in rows() if near(row, words)), key=lambda row: -near(row, words))
    return [*found[:NEAREST], *OWN]


def judged(places: list[Place], folder: Path, limit: float) -> Iterator[tuple[Place, dict[str, Any]]]:
    if not places:
        return
    worker = Builder(folder)
    for place in places:
        tests = choose(place)
        if (verdict := worker.judge(place, tests, limit)) is not None:
            yield place, verdict | {"tests": len(tests)}

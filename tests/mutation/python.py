"""Judges places of the Python package by the tests that run their lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutation import judge
from tests.mutation.drawing import PACKAGE, ROOT
from tests.mutation.places import Place
from tests.mutation.selection import Map
from tests.mutation.worker import Worker

MAP = Path(tempfile.gettempdir()) / "tt_torch_mutation_map"


def record(tests: list[str]) -> None:
    """Runs tests once, and records which lines each one runs. On two cores, all tests take half an hour."""
    folder = MAP / f"{len(list(MAP.glob('*'))):03}"
    for file in PACKAGE.rglob("*.py"):
        kept = folder / "sources" / file.relative_to(ROOT)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, kept)
    command = [sys.executable, "-m", "pytest", "-q", "-m", judge.MARKS, "-p", "tests.mutation.recorder", *tests]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"TT_TORCH_MUTATION_MAP": str(folder)}, check=False)


def collected(root: Path) -> set[str]:
    """The names of all tests that exist now and that a judge may run. A recording may have tests that were renamed."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", "-m", judge.MARKS, "tests"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return {line for line in listed.splitlines() if "::" in line}


def judged(
    places: list[Place], folder: Path, jobs: int, seconds: float, limit: float
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yields each place with its verdict. The tests of a place take `seconds` at most, by their recorded times."""
    if not places:
        return
    idle: SimpleQueue[Worker] = SimpleQueue()
    for number in range(jobs):
        idle.put(Worker(folder / str(number)))
    known = Map(MAP, folder / "0", collected(folder / "0"))

    def verdict_on(place: Place) -> tuple[Place, dict[str, Any]]:
        chosen = known.choose(place, seconds)
        if not chosen:
            return place, {"outcome": "survives", "by": "", "seconds": 0.0, "tests": 0}
        worker = idle.get()
        try:
            return place, worker.judge(place, chosen, limit) | {"tests": len(chosen)}
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(jobs) as threads:
        for verdict in as_completed([threads.submit(verdict_on, place) for place in places]):
            yield verdict.result()

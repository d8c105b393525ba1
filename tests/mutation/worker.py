"""A copy of the repository, broken at one place at a time, and the process that runs tests in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.mutation.drawing import ROOT
from tests.mutation.places import Place


class Worker:
    """A copy of the repository, and a process that runs tests in it."""

    def __init__(self, folder: Path) -> None:
        self.copy = folder
        self.sound: dict[str, bool] = {}  # whether a test that failed passes without a break
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        libraries = [str(f.relative_to(ROOT)) for f in (ROOT / "tt_torch").rglob("*.so")]
        for name in filter(lambda name: (ROOT / name).is_file(), [*files, *libraries]):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        judge = [sys.executable, "-m", "tests.mutation.judge", str(folder)]
        environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(judge, cwd=folder, env=environment, **pipes)

    def run(self, tests: list[str], seconds: float) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"tests": tests, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def judge(self, place: Place, tests: list[str], seconds: float) -> dict[str, Any]:
        """The verdict of the tests on a place. A test that fails without the break, too, is left out."""
        while True:
            verdict = self.broken(place, tests, seconds)
            if verdict["by"] not in tests or self.passes(verdict["by"], seconds):
                return verdict
            tests = [test for test in tests if test != verdict["by"]]
            if not tests:
                return verdict | {"outcome": "unjudged"}

    def passes(self, test: str, seconds: float) -> bool:
        if test not in self.sound:
            self.sound[test] = self.run([test], seconds)["outcome"] == "survives"
        return self.sound[test]

    def broken(self, place: Place, tests: list[str], seconds: float) -> dict[str, Any]:
        file = self.copy / place.path
        source = file.read_bytes()
        try:
            self.write(file, place.apply(source))
            return self.run(tests, seconds)
        finally:
            self.write(file, source)

    def write(self, file: Path, source: bytes) -> None:
        file.write_bytes(source)
        for cached in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            cached.unlink()

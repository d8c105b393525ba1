"""A copy of the repository, broken at one place at a time, and the process that runs tests in it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.mutation import judge
from tests.mutation.drawing import ROOT
from tests.mutation.places import Place

# Python runs this when it starts. Without it, an editable installation of the package wins over the copy.
COPY_FIRST = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
"""


def installed_libraries() -> dict[str, Path]:
    """The compiled modules of the installed package by their paths in the repository. A checkout can lack them."""
    files = importlib.metadata.files("tt_torch") or []
    return {str(file): Path(str(file.locate())) for file in files if file.suffix == ".so"}


class Worker:
    """A copy of the repository, and a process that runs tests in it."""

    def __init__(self, folder: Path) -> None:
        self.copy = folder
        self.sound: dict[str, bool] = {}  # whether a test that failed passes without a break
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        built = {str(f.relative_to(ROOT)): f for f in (ROOT / "tt_torch").rglob("*.so")}
        for name, file in {**installed_libraries(), **{name: ROOT / name for name in files}, **built}.items():
            if file.is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, folder / name)
        (folder / "sitecustomize.py").write_text(COPY_FIRST)
        self.process = self.started()

    def started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.mutation.judge", str(self.copy)]
        environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": str(self.copy)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.copy, env=environment, **pipes)

    def run(self, tests: list[str], seconds: float) -> dict[str, Any]:
        """The answer of the judge process. If it dies, a new one is asked. If that dies, too, there is no verdict."""
        for _ in range(2):
            if self.process.poll() is not None:
                self.process = self.started()
            assert self.process.stdin and self.process.stdout
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(json.dumps({"tests": tests, "seconds": seconds}) + "\n")
                self.process.stdin.flush()
            if answer := self.process.stdout.readline():
                return json.loads(answer)
            self.process.wait()
        return {"outcome": "unjudged", "by": f"the judge ended with {self.process.returncode}", "seconds": 0.0}

    def judge(self, place: Place, tests: list[str], seconds: float) -> dict[str, Any]:
        """The verdict of the tests on a place. A test that also fails without the break is left out. A crash
        that also comes without the break is no verdict."""
        verdict: dict[str, Any] = {}
        while tests:
            verdict = self.broken(place, tests, seconds)
            by = verdict["by"]
            if by in tests and not self.passes(by, seconds):
                tests = [test for test in tests if test != by]
            elif judge.crashed(verdict) and self.run(tests, seconds)["by"] == by:
                break
            else:
                return verdict
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

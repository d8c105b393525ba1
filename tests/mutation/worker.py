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

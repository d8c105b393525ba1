"""A pytest plugin (`-p tests.mutation.recorder`) that records which lines of the package each test runs.

Each process writes a file of coverage.py into the folder that TT_TORCH_MUTATION_MAP names, with one context per test,
and a JSON file with the seconds of processor time that each passed test took. Each process writes these
files every minute, so that a recording that is stopped has the tests that ran before.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

FOLDER = Path(os.environ["TT_TORCH_MUTATION_MAP"])
BETWEEN_FILES = 60.0  # seconds
os.environ["ROWS_TOGETHER"] = "1"  # otherwise tests/test_ops.py runs the lines of all rows in the first row


class Recorder:
    def __init__(self) -> None:
        self.lines = coverage.Coverage(
            data_file=FOLDER / "lines", data_suffix=True, source_pkgs=["tt_torch"], config_file=False, messages=False
        )
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.saved = time.monotonic()
        self.lines.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.lines.switch_context(item.nodeid)
        start = processor_seconds()
        yield
        self.seconds[item.nodeid] = processor_seconds() - start
        self.lines.switch_context("")
        if time.monotonic() - self.saved > BETWEEN_FILES:
            self.save()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.lines.stop()
        self.save()

    def save(self) -> None:
        self.saved = time.monotonic()
        self.lines.save()
        passed = {test: seconds for test, seconds in self.seconds.items() if test not in self.failed}
        # This does not use tt_torch.files, because lines that its import runs would be missing in the recording.
        written = FOLDER / f"new.{os.getpid()}"
        written.write_text(json.dumps(passed))
        written.rename(FOLDER / f"seconds.{os.getpid()}.json")


def processor_seconds() -> float:
    """The processor time of this process and of children that ended: it does not grow with the load of the machine."""
    return sum(os.times()[:4])


def pytest_configure(config: Any) -> None:
    if not config.getoption("numprocesses", None):  # a process that only distributes tests records nothing
        config.pluginmanager.register(Recorder())

"""A JUnit file that is written again after each event, so that it has all results when the process dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tt_torch.files import write
from tt_torch.sweep.junit import printable

COUNTS = {"tests": "testcase", "errors": "error", "failures": "failure", "skipped": "skipped"}
UNFINISHED = {"type": "crash", "message": "the process ended before this test did"}


class CrashSafe:
    """A plugin that writes the JUnit file `path`. A test that has not ended is an error in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = ElementTree.Element("testsuites")
        self.suite = ElementTree.SubElement(self.root, "testsuite", name="pytest")
        self.cases: dict[str, ElementTree.Element] = {}
        self.save()

    def save(self) -> None:
        for name, tag in COUNTS.items():
            self.suite.set(name, str(sum(1 for _ in self.suite.iter(tag))))
        write(self.path, ElementTree.tostring(self.root, encoding="utf-8", xml_declaration=True))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        classname, name = _names(nodeid)
        case = ElementTree.SubElement(self.suite, "testcase", classname=classname, name=name, time="0")
        ElementTree.SubElement(case, "properties")
        ElementTree.SubElement(case, "error", UNFINISHED)
        self.cases[nodeid] = case
        self.save()

    @pytest.fixture
    def record_property(self, request: pytest.FixtureRequest) -> Callable[[str, object], None]:
        """pytest's fixture of this name, which also writes each property at once."""

        def record(name: str, value: object) -> None:
            request.node.user_properties.append((name, value))
            properties = self.cases[request.node.nodeid].find("properties")
            assert properties is not None
            ElementTree.SubElement(properties, "property", name=printable(str(name)), value=printable(str(value)))
            self.save()

        return record

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = self.cases[report.nodeid]
        case.set("time", f"{float(case.get('time', '0')) + report.duration:.3f}")
        if report.outcome != "passed":
            self._end(case, *_outcome(report))
        elif report.when == "teardown" and (left := case.find("error")) is not None and left.get("type") == "crash":
            case.remove(left)
        self.save()

    def _end(self, case: ElementTree.Element, tag: str, message: str) -> None:
        """Replaces the note that the test has not ended. The first failure of a test counts."""
        left = case.find("error")
        if left is not None and left.get("type") == "crash":
            case.remove(left)
            ElementTree.SubElement(case, tag, {"type": tag, "message": printable(message)})


def _names(nodeid: str) -> tuple[str, str]:
    """The names of a test's class and of the test, as JUnit files of pytest have them: "a.test_b.TestC" and "test_d[1]"
    for "a/test_b.py::TestC::test_d[1]"."""
    path, bracket, parameters = nodeid.partition("[")
    file, *inside = path.split("::")
    *classes, name = [printable(part) for part in inside]
    return ".".join([file.removesuffix(".py").replace("/", "."), *classes]), f"{name}{bracket}{printable(parameters)}"


def _outcome(report: pytest.TestReport) -> tuple[str, str]:
    """The tag of JUnit for a report that is not "passed", and the message."""
    if report.outcome == "skipped":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
        return "skipped", reason
    crash = getattr(report.longrepr, "reprcrash", None)
    return ("failure" if report.when == "call" else "error"), crash.message if crash else report.longreprtext

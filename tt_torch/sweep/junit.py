"""Results as JUnit XML. The file is complete after each case, so that CI can read it even if the sweep crashes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tt_torch.records.lines import Record
from tt_torch.records.summary import GOOD, slowness

# The names that CI dashboards of Tenstorrent's projects have for the stage that a program reached.
STATUS = {
    "FAILED_FE": "FAILED_FE_COMPILATION",
    "TORCH_FX": "FAILED_FE_COMPILATION",
    "STABLEHLO": "FAILED_TTMLIR_COMPILATION",
    "TTIR": "FAILED_TTMLIR_COMPILATION",
    "TTNN_IR": "FAILED_RUNTIME",
    "EXECUTE": "INCORRECT_RESULT",
    "PASSED": "PASSED",
}
_TAIL = b"</testsuite></testsuites>\n"
_FAILED = {"wrong": "failure"}  # everything else that is not good is an error


class JUnitFile:
    """A file with one suite, to which cases are added. Each write adds a case and the end of the file."""

    def __init__(self, path: Path, suite: str, properties: Record) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("wb", buffering=0)
        head = ElementTree.Element("testsuite", name=suite)
        _properties(head, properties)
        opened = ElementTree.tostring(head).removesuffix(b"</testsuite>")
        self.file.write(b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>' + opened + b"\n" + _TAIL)

    def append(self, record: Record) -> None:
        seconds = str(record.get("seconds", 0))
        case = ElementTree.Element("testcase", classname=record["kind"], name=record["key"], time=seconds)
        if depth := record.get("depth"):
            _properties(case, {"achieved_compile_depth": depth, "bringup_status": STATUS[depth]})
        if record["verdict"] not in GOOD:
            tag = _FAILED.get(record["verdict"], "error")
            shown = {"type": record["error"], "message": printable(record["message"])}
            ElementTree.SubElement(case, tag, shown)
        elif slow := slowness(record):
            ElementTree.SubElement(case, "failure", {"type": "SlowCompile", "message": slow})
        self.file.seek(-len(_TAIL), 2)
        self.file.write(ElementTree.tostring(case) + b"\n" + _TAIL)

    def close(self) -> None:
        self.file.close()


def _properties(element: ElementTree.Element, properties: Record) -> None:
    listed = ElementTree.SubElement(element, "properties")
    for name, value in properties.items():
        ElementTree.SubElement(listed, "property", name=name, value=str(value))


def printable(text: str) -> str:
    """The text without control characters, which XML cannot express."""
    return "".join(c for c in text if c >= " " or c in "\n\t")

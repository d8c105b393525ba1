"""Old names: `tt_torch.tools.crashsafe_utils`. `tt-torch report import` reads what `--crashsafe` writes as it is."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from xml.etree import ElementTree

from tt_torch.files import write
from tt_torch.sweep.junit import STATUS
from tt_torch.testing.plugin import SUFFIX as crashsafe_suffix

__all__ = [
    "achieved_depth_mapping",
    "crashsafe_suffix",
    "get_achieved_compile_depths",
    "get_max_achieved_compile_depth",
    "rewrite_crashsafe_xml",
]

achieved_depth_mapping = {"FAILED_FE": 0, "STABLEHLO": 1, "TTNN_IR": 2, "EXECUTE": 3, "PASSED": 4}


def get_achieved_compile_depths(xml_file: str | Path) -> list[str]:
    """The stages that the tests of a report have reached, in order; FAILED_FE if there is none, or no report."""
    try:
        return depths_of(ElementTree.parse(xml_file).getroot())
    except ElementTree.ParseError:
        return ["FAILED_FE"]


def depths_of(element: ElementTree.Element) -> list[str]:
    """The stages that are recorded below an element of a report; FAILED_FE if there is none."""
    found = [p.get("value", "") for p in element.iter("property") if p.get("name") == "achieved_compile_depth"]
    return found or ["FAILED_FE"]


def get_max_achieved_compile_depth(xml_file: str | Path) -> str:
    """PASSED or EXECUTE if the test has come so far, otherwise the last stage: each graph begins at the first one."""
    return furthest(get_achieved_compile_depths(xml_file))


def furthest(depths: list[str]) -> str:
    return next((depth for depth in ("PASSED", "EXECUTE") if depth in depths), depths[-1])


def rewrite_crashsafe_xml(xml_file: str | Path) -> None:
    """Adds `max_achieved_compile_depth`, and `bringup_status` if it is missing, to the tags of each test of a report.

    Raises ParseError if the file is no XML.
    """
    root = ElementTree.parse(xml_file).getroot()
    for case in root.iter("testcase"):
        complete(case)
    write(xml_file, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def complete(case: ElementTree.Element) -> None:
    """Adds `max_achieved_compile_depth`, and `bringup_status` if it is missing, to the tags of a test."""
    properties = case.find("properties")
    if properties is None:
        properties = ElementTree.SubElement(case, "properties")
    depth = furthest(depths_of(case))
    tags = next((p for p in properties if p.get("name") == "tags"), None)
    if tags is None:
        names = {p.get("name"): p.get("value") for p in properties}
        tags = ElementTree.SubElement(
            properties, "property", name="tags", value=repr({"model_name": names.get("model_name")})
        )
    values = {"bringup_status": STATUS[depth]} | literal_eval(tags.get("value", "{}"))
    tags.set("value", repr(values | {"max_achieved_compile_depth": depth}))

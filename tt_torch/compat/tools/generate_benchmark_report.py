"""Old names: `tt_torch.tools.generate_benchmark_report`. `tt-torch report` makes workbooks and pages of reports."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tt_torch.compat.tools.crashsafe_utils import achieved_depth_mapping, depths_of, furthest

__all__ = ["achieved_depth_mapping", "parse_benchmark_xml"]


def parse_benchmark_xml(xml_dir: str | Path) -> list[tuple[str, float, str]]:
    """Name, seconds and furthest stage of each test of the JUnit files in a folder."""
    return [
        (f"{case.get('classname')}::{case.get('name')}", float(case.get("time", "0")), furthest(depths_of(case)))
        for file in sorted(Path(xml_dir).glob("*.xml"))
        for case in ElementTree.parse(file).getroot().iter("testcase")
    ]

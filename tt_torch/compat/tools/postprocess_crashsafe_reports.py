"""Old names: `python -m tt_torch.tools.postprocess_crashsafe_reports "<glob>" <file>`.

`tt-torch report import` reads several reports of `--crashsafe` as they are.
"""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer

from tt_torch.compat.tools.crashsafe_utils import complete
from tt_torch.files import write
from tt_torch.testing.crashsafe import COUNTS

__all__ = ["merge_junit_reports"]


def merge_junit_reports(input_files: list[str], output_file: str | Path) -> None:
    """Writes one report with the tests of all files, with complete tags. Names files that are no XML on stderr."""
    suite = ElementTree.Element("testsuite", name="pytest")
    for file in input_files:
        try:
            cases = list(ElementTree.parse(file).getroot().iter("testcase"))
        except ElementTree.ParseError as error:
            print(f"{file} is left out: {error}", file=sys.stderr)
            continue
        for case in cases:
            complete(case)
        suite.extend(cases)
    for name, tag in COUNTS.items():
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    write(output_file, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def main(
    pattern: Annotated[str, typer.Argument(help="the reports, such as 'results/*_crashsafe.xml'")],
    output: Annotated[Path, typer.Argument(help="the report with all tests")],
) -> None:
    """Merges reports of `--crashsafe`. The exit status is 1 if there are none."""
    files = sorted(glob.glob(pattern))
    if not files:
        print(f"error: no file is named {pattern}", file=sys.stderr)
        raise typer.Exit(1)
    merge_junit_reports(files, output)


if __name__ == "__main__":
    typer.run(main)

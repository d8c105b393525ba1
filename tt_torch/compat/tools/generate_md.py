"""Old names: `python -m tt_torch.tools.generate_md`. The new command is `tt-torch report pages`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.files import write
from tt_torch.reports.op_pages import op_pages
from tt_torch.reports.reading import read

__all__ = ["generate_md"]


def generate_md(json_path: str | Path, md_dir: str | Path, failures_only: bool = False) -> list[Path]:
    """Writes a Markdown page per op from an op-by-op JSON file, or from all such files of a folder; returns the paths.

    With `failures_only`, only forms that are not right have rows. Raises ResultsFileError for a file of another form.
    """
    source = Path(json_path)
    files = sorted(source.rglob("*.json")) if source.is_dir() else [source]
    records = [record for file in files for record in read(file)]
    wanted = [r for r in records if not (failures_only and r["verdict"] == "match")]
    paths = []
    for name, text in op_pages(wanted).items():
        write(Path(md_dir) / name, text.encode())
        paths.append(Path(md_dir) / name)
    return paths


def main(
    json_path: Annotated[Path, typer.Option("--json_path", help="an op-by-op JSON file, or a folder of such files")],
    md_dir: Annotated[Path, typer.Option("--md_dir", help="folder of the pages")],
    failures_only: Annotated[bool, typer.Option("--failures_only", help="only forms that are not right")] = False,
) -> None:
    """Writes a page per op. `tt-torch report pages` does the same from a database."""
    with one_line_errors():
        print(f"{md_dir}: {len(generate_md(json_path, md_dir, failures_only))} pages")


if __name__ == "__main__":
    typer.run(main)

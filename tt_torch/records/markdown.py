"""Tables of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_FOLDERS = re.compile(r"/[^\s\"]*/(?=tt_torch/)|/[^\s\"]*/site-packages/")  # where a machine has its files


def brief(text: str) -> str:
    """In a cell of a table: one line, no more than a glance takes."""
    line = _FOLDERS.sub("", " ".join(text.split()))
    return line if len(line) <= 100 else line[:97] + "..."


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    if not cells:
        return ["None."]
    return [_row(head), _row(["---"] * len(head)), *map(_row, cells)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

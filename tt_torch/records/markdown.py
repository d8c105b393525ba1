"""Tables of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_FOLDERS = re.compile(r"/[^\s\"]*/(?=tt_torch/)|/[^\s\"]*/site-packages/")  # the folders of this machine in paths


def brief(text: str) -> str:
    """The text as one line of at most 100 characters, for a cell of a table."""
    line = _FOLDERS.sub("", " ".join(text.split()))
    return line if len(line) <= 100 else line[:97] + "..."


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    if not cells:
        return ["None."]
    return [_row(head), _row(["---"] * len(head)), *map(_row, cells)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

"""HTML files of tiles, pictures and tables, which need no network and no server. Plotly draws the pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from tt_torch.errors import ExtraMissingError
from tt_torch.extras import require
from tt_torch.files import write

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and the number by which the table is sorted. None means that the text decides."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Table:
    """A table that the reader can sort by each column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, paragraphs, pictures and tables, in this order."""

    heading: str
    paragraphs: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """A page. `tiles` are pairs of a name and a value, which the reader sees first."""

    title: str
    introduction: str
    tiles: Sequence[tuple[str, str]] = field(default_factory=tuple)
    sections: Sequence[Section] = field(default_factory=tuple)


def write_page(path: Path, page: Callable[[], Page]) -> None:
    """Writes a page. If plotly is not installed, a line on stderr says so, and an older file is removed: it would not
    fit the other files."""
    try:
        require("profile")
    except ExtraMissingError as missing:
        path.unlink(missing_ok=True)
        print(f"{path.name} is not written: {missing}", file=sys.stderr)
    else:
        write(path, render(page()).encode())


def render(page: Page) -> str:
    """The HTML text. All texts are escaped; plotly escapes `<` in its JSON."""
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("page.html.j2")
    return template.render(page=page, json=lambda figure: Markup(figure.to_json()), plotly=Markup(get_plotlyjs()))

"""A profile and a comparison in the terminal."""

from __future__ import annotations

import rich.table

from tt_torch.profiling import comparison, comparison_page, groups, page
from tt_torch.profiling.groups import KEYS
from tt_torch.profiling.html import Table
from tt_torch.profiling.model import Profile
from tt_torch.records.console import plain_console

_MOST = 8  # rows of a table; the page has all
_LEAST = 16  # characters of a name, however narrow the terminal is
_PAGE_ONLY = ("ops", "graph", "of line", "bytes moved", "old quartiles", "new quartiles", "operands", "results")


def show(profile: Profile) -> None:
    """Prints what takes the most time, by module, by kind of op and by line, and what chips exchange."""
    console = plain_console()
    console.print(", ".join(f"{name}: {value}" for name, value in page.tiles(profile)))
    console.print(page.meaning(profile))
    for name, key in KEYS.items():
        _print(page.group_table(name, groups.grouped(profile, key)))
    if (exchanges := page.exchanges(profile)).rows:
        _print(exchanges)


def show_comparison(old: Profile, new: Profile) -> None:
    """Prints how two profiles differ."""
    plain_console().print(comparison_page.ABOUT)
    _print(comparison_page.table("", [comparison.total(old, new)]))
    for name, key in KEYS.items():
        _print(comparison_page.table(name, comparison.changes(old, new, key)))


def _print(table: Table) -> None:
    """Prints the first rows, whose names keep their ends. The columns of `_PAGE_ONLY` do not fit into 80 characters."""
    console, shown = plain_console(), rich.table.Table()
    kept = [i for i, column in enumerate(table.columns) if column not in _PAGE_ONLY]
    rows = [[row[i].text for i in kept] for row in table.rows[:_MOST]]
    widths = [max(map(len, column)) for column in zip(*[[table.columns[i] for i in kept], *rows], strict=True)]
    room = max(_LEAST, console.width - sum(width + 3 for width in widths[1:]) - 4)  # 3 and 4 are borders and margins
    for i in kept:
        number = bool(table.rows) and table.rows[0][i].value is not None
        shown.add_column(table.columns[i], justify="right" if number else "left", overflow="fold")
    for name, *rest in rows:
        shown.add_row(name if len(name) <= room else f"…{name[1 - room :]}", *rest)
    console.print(shown)
    if len(table.rows) > _MOST:
        console.print(f"and {len(table.rows) - _MOST} more")

"""A profile and a comparison in the terminal."""

from __future__ import annotations

import rich.table

from tt_torch.profiling import comparison, comparison_page, groups, page
from tt_torch.profiling.groups import KEYS
from tt_torch.profiling.html import Table
from tt_torch.profiling.model import Profile
from tt_torch.records.console import plain_console

_MOST = 8  # rows of a table; the page has all
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
    """Prints the first rows. The columns of `_PAGE_ONLY` do not fit into 80 characters."""
    shown = rich.table.Table()
    kept = [i for i, column in enumerate(table.columns) if column not in _PAGE_ONLY]
    for i in kept:
        number = bool(table.rows) and table.rows[0][i].value is not None
        shown.add_column(table.columns[i], justify="right" if number else "left", overflow="fold")
    for row in table.rows[:_MOST]:
        shown.add_row(*(row[i].text for i in kept))
    plain_console().print(shown)
    if len(table.rows) > _MOST:
        plain_console().print(f"and {len(table.rows) - _MOST} more")

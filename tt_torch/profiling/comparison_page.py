"""The texts, tables and plots on the page of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from tt_torch.profiling.comparison import Change, changes, total
from tt_torch.profiling.groups import KEYS
from tt_torch.profiling.html import Cell, Page, Section, Table
from tt_torch.profiling.model import Profile
from tt_torch.profiling.words import duration, factor, quartiles

ABOUT = (
    "Host times are measured on the emulated device. A difference is clear if the quartiles do not overlap. Modelled "
    "times are those of the model of the chip, for the chip of each profile."
)


def table(name: str, found: Sequence[Change]) -> Table:
    """The changes as a table for the page and for the terminal."""
    columns = [name, "ops", "old host", "old quartiles", "new host", "new quartiles", "difference", "modelled"]
    return Table(columns, [_row(change) for change in found])


def _row(change: Change) -> list[Cell]:
    old, new = change.old, change.new
    difference = new.host.median - old.host.median
    clear = "clear" if change.clear else "within the spread"
    return [
        Cell(change.name), Cell(f"{old.ops} → {new.ops}" if old.ops != new.ops else f"{new.ops}"),
        Cell(duration(old.host.median), old.host.median), Cell(quartiles(old.host)),
        Cell(duration(new.host.median), new.host.median), Cell(quartiles(new.host)),
        Cell(f"{duration(difference)}, {clear}", difference),
        Cell(f"{duration(old.modelled)} → {duration(new.modelled)}, {factor(old.modelled, new.modelled)}"),
    ]  # fmt: skip


def page(old: Profile, new: Profile) -> Page:
    """The page of a comparison. Needs plotly."""
    from tt_torch.profiling import plots

    whole = total(old, new)
    tiles = [
        ("host time", f"{duration(whole.old.host.median)} → {duration(whole.new.host.median)}"),
        ("difference", "clear" if whole.clear else "within the spread"),
        ("modelled", f"{duration(whole.old.modelled)} → {duration(whole.new.modelled)}"),
        ("by the model", factor(whole.old.modelled, whole.new.modelled)),
    ]
    sections = []
    for name, key in KEYS.items():
        found = changes(old, new, key)
        sections.append(Section(f"By {name}", figures=[plots.changes(found[:_BARS])], tables=[table(name, found)]))
    return Page("Two profiles compared", ABOUT, tiles, sections)


_BARS = 12  # in a picture

"""Printing to the terminal: text from files and users is shown as it is."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def plain_console(**options: Any) -> Console:
    """A console that reads no markup in texts: `test[float32]` keeps its brackets, and `[/x]` is no error.

    It colours no numbers or paths either: to find them, rich takes a time that grows with the square of the length.
    """
    return Console(markup=False, emoji=False, highlight=False, **options)

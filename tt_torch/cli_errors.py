"""Errors of the `tt-torch` command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors that are the user's to solve, files and servers included, end the command with one line."""
    from tt_torch.errors import TTTorchError

    try:
        yield
    except (TTTorchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None

"""Errors of the `tt-torch` command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Ends the command with one line for errors that the user can solve, including those of files and servers."""
    from tt_torch.errors import TTTorchError

    try:
        yield
    except (TTTorchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None

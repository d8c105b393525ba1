"""Errors of the `tt-torch` command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer


@contextmanager
def one_line_errors(file: Path | None = None) -> Iterator[None]:
    """Ends the command with one line for errors that the user can solve, including those of files and servers.

    The line names `file` if it is no binary, because the error knows only its bytes. The status is 2 for an option or a
    variable with a value that is not accepted, and 1 for all others.
    """
    from tt_torch.errors import BinaryFormatError, ConfigError, TTTorchError

    try:
        yield
    except BrokenPipeError:  # the reader of the output has stopped, which is no error of a file
        raise
    except (TTTorchError, OSError) as error:
        name = f"{file}: " if file and isinstance(error, BinaryFormatError) else ""
        print(f"error: {name}{_in_one_line(error)}", file=sys.stderr)
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None


def _in_one_line(error: Exception) -> str:
    """The lines of a message as one, without further paragraphs, in which PyTorch explains how to debug it."""
    lines = str(error).strip().partition("\n\n")[0].splitlines()
    return "; ".join(line.strip() for line in lines).replace(":; ", ": ")


def needs(extra: str) -> None:
    """Ends the command with one line that says what to install, if a package of the extra is not installed."""
    from tt_torch.extras import require

    with one_line_errors():
        require(extra)


def refuse_compiler_variable() -> None:
    """Raises BadParameter if TT_TORCH_COMPILER is set, because a command itself chooses what compiles each program."""
    if os.environ.get("TT_TORCH_COMPILER"):
        raise typer.BadParameter("TT_TORCH_COMPILER is set, and would be the compiler of all programs; unset it")

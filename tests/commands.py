"""Runs the command `tt-torch` in the process of a test."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from tt_torch.tools.cli import app


def command(*arguments: object) -> Result:
    """The result of a command, which may end with a status. Another exception fails the test."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result

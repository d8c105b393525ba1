"""Old names: `tt_torch.tools.tt_profile` and the command `tt_profile`. The new command is `tt-torch profile`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from tt_torch import user_code
from tt_torch.profiling.cli import recorded
from tt_torch.profiling.tables import CSV_NAME

__all__ = ["tt_profile"]

FOLDER = Path("results/perf")


def tt_profile(test_command: str, output_filename: str = CSV_NAME, port: int | None = None) -> None:
    """Runs a command of the shell and writes `results/perf/<output_filename>`, with a row per op and call.

    The folder also gets a trace and a page. Raises CalledProcessError if the command fails or runs nothing on the
    device.
    """
    if port is not None:
        user_code.warn(UserWarning("port has no effect: the profile is not sent over a network"))
    command = ["sh", "-c", test_command]
    if not recorded(command, FOLDER):
        raise subprocess.CalledProcessError(1, command)
    (FOLDER / CSV_NAME).replace(FOLDER / output_filename)


def _command(
    test_command: Annotated[str, typer.Argument(help="a command of the shell")],
    output_path: Annotated[
        str, typer.Option("-o", "--output_path", help=f"name of the CSV file in {FOLDER}")
    ] = CSV_NAME,
    port: Annotated[int | None, typer.Option("-p", "--port", help="has no effect")] = None,
) -> None:
    """Profiles a command. `tt-torch profile` does the same."""
    try:
        tt_profile(test_command, output_path, port)
    except subprocess.CalledProcessError as error:
        raise typer.Exit(error.returncode) from None


def main() -> None:
    """The command `tt_profile`."""
    typer.run(_command)


if __name__ == "__main__":
    main()

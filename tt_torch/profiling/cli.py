"""`tt-torch profile` runs a command and records every compiled graph of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer


def profile(
    command: Annotated[list[str], typer.Argument(help="what to run, with its own options")],
    output: Annotated[Path, typer.Option("-o", "--output", help="folder of the results")] = Path("results/perf"),
) -> None:
    """Runs a command and writes a CSV, a trace and an HTML page about all graphs that it runs on the device.

    If the command fails or runs no graph, the files of an earlier profile stay as they are.
    """
    from tt_torch.profiling.page import PAGE_NAME

    try:
        output.mkdir(parents=True, exist_ok=True)
        recording = TemporaryDirectory(prefix=".recording-", dir=output)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from None
    with recording:
        _run(command, Path(recording.name).resolve())
        files = sorted(Path(recording.name).iterdir())
        if not any(file.name == PAGE_NAME for file in files):
            print("nothing was recorded, because the command ran no graph on the device; does it use tt_torch.backend?")
            raise typer.Exit(1)
        for file in files:
            print(file.replace(output / file.name))


def _run(command: Sequence[str], folder: Path) -> None:
    """Runs a command that writes its profile into the folder. Ends with the command's exit status if that is not 0."""
    try:
        done = subprocess.run(command, env=os.environ | {"TT_TORCH_PROFILE": str(folder)}, check=False)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="COMMAND") from None
    if done.returncode:
        raise typer.Exit(done.returncode if done.returncode > 0 else 128 - done.returncode)

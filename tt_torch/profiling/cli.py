"""`tt-torch profile` runs a command and records every compiled graph of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Annotated

import typer


def profile(
    command: Annotated[list[str], typer.Argument(help="what to run, with its own options")],
    output: Annotated[Path, typer.Option("-o", "--output", help="folder of the results")] = Path("results/perf"),
) -> None:
    """Runs a command and writes a CSV, a trace and an HTML page about all graphs that it runs on the device."""
    from tt_torch.profiling.page import PAGE_NAME

    page = output / PAGE_NAME
    try:
        output.mkdir(parents=True, exist_ok=True)
        page.unlink(missing_ok=True)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from None
    try:
        done = subprocess.run(command, env=os.environ | {"TT_TORCH_PROFILE": str(output.resolve())}, check=False)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="COMMAND") from None
    if done.returncode:
        raise typer.Exit(done.returncode if done.returncode > 0 else 128 - done.returncode)
    if not page.exists():
        print("nothing was recorded, because the command ran no graph on the device; does it use tt_torch.backend?")
        raise typer.Exit(1)
    for file in sorted(output.iterdir()):
        print(file)

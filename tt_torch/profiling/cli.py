"""`tt-torch profile` runs a command and records its compiled graphs. `tt-torch compare-profiles` compares two runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tt_torch.cli_errors import one_line_errors

AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document instead of text")]
Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="a folder of tt-torch profile")]


def profile(
    command: Annotated[list[str], typer.Argument(help="what to run, with its own options")],
    output: Annotated[Path, typer.Option("-o", "--output", help="folder of the results")] = Path("results/perf"),
    as_json: AsJson = False,
) -> None:
    """Runs a command and says where the time of all its graphs on the device goes; writes JSON, CSV, trace and page.

    If the command fails or runs no graph, the files of an earlier profile stay as they are.
    """
    from tt_torch.profiling.model import read_json
    from tt_torch.profiling.text import show

    try:
        output.mkdir(parents=True, exist_ok=True)
        recording = TemporaryDirectory(prefix=".recording-", dir=output)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from None
    with recording:
        _run(command, Path(recording.name).resolve(), sys.stderr.fileno() if as_json else None)
        files = _moved(Path(recording.name), output)
    if not files:
        print("nothing was recorded, because the command ran no graph on the device; does it use tt_torch.backend?")
        raise typer.Exit(1)
    found = read_json(output)
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        show(found)
        print(*files, sep="\n")


def _moved(recording: Path, output: Path) -> list[Path]:
    """Moves the files of a recording to the folder, and returns them. If there is no profile, nothing is moved."""
    from tt_torch.profiling.model import JSON_NAME
    from tt_torch.profiling.page import PAGE_NAME

    if not (recording / JSON_NAME).exists():
        return []
    (output / PAGE_NAME).unlink(missing_ok=True)  # without plotly, the recording has no page; an old one does not fit
    return [file.replace(output / file.name) for file in sorted(recording.iterdir())]


def _run(command: Sequence[str], folder: Path, stdout: int | None) -> None:
    """Runs a command that writes its profile into the folder. Ends with the command's exit status if that is not 0."""
    try:
        variables = os.environ | {"TT_TORCH_PROFILE": str(folder)}
        done = subprocess.run(command, env=variables, stdout=stdout, check=False)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="COMMAND") from None
    if done.returncode:
        raise typer.Exit(done.returncode if done.returncode > 0 else 128 - done.returncode)


def compare_profiles(
    old: Folder,
    new: Folder,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="an HTML page of the comparison")] = None,
    as_json: AsJson = False,
) -> None:
    """Compares two profiles by module, by kind of op and by line."""
    from tt_torch.profiling import comparison, comparison_page
    from tt_torch.profiling.html import write_page
    from tt_torch.profiling.model import read_json
    from tt_torch.profiling.text import show_comparison

    with one_line_errors():
        before, after = read_json(old), read_json(new)
        if as_json:
            print(json.dumps(comparison.as_json(before, after), indent=2))
        else:
            show_comparison(before, after)
        if output:
            write_page(output, lambda: comparison_page.page(before, after))

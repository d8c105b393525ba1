"""`tt-torch profile` runs a program and records its compiled graphs. `tt-torch compare-profiles` compares two runs."""

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
from tt_torch.command_line import AsJson, Program, check_program

# Runs the command of this installation, wherever its script is.
_TT_TORCH = """
import sys
from importlib.metadata import entry_points
sys.argv[0] = "tt-torch"
entry_points(group="console_scripts")["tt-torch"].load()()
"""
Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="a folder of tt-torch profile")]


def profile(
    program: Program = None,  # type: ignore[assignment]
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="folder of the results; default: results/perf")
    ] = None,
    mesh: Annotated[bool, typer.Option("--mesh", help="no program: simulate Llama 3 70B on 1 to 32 chips")] = False,
    device: Annotated[str | None, typer.Option(help="the chips of --mesh: n150 or p150; default: n150")] = None,
    as_json: AsJson = False,
) -> None:
    """Runs a program and says where the time of all its graphs on the device goes; writes JSON, CSV, trace and page.

    A .ttpkg package or a .ttnn binary runs as with `tt-torch run`, and takes its arguments. Options stand before the
    program. If the program fails or runs no graph, the files of an earlier profile stay.

    With `--mesh`, a token of Llama 3 70B is compiled for meshes of 1, 2, 4, 8 and 32 chips, with weights that have no
    values. Tables show the modelled times, what bounds them, and what crosses the links between chips.
    """
    if mesh == bool(program):
        raise typer.BadParameter("give a program, or --mesh without a program", param_hint="PROGRAM")
    if mesh:
        if output:
            raise typer.BadParameter("--mesh writes no files", param_hint="--output")
        return _simulate(device or "n150", as_json)
    if device is not None:
        raise typer.BadParameter("it names the chips of --mesh", param_hint="--device")
    _run(program, output or Path("results/perf"), as_json)


def _run(program: Sequence[str], output: Path, as_json: bool) -> None:
    from tt_torch.profiling.model import read_json
    from tt_torch.profiling.text import show

    if Path(program[0]).suffix in (".ttpkg", ".ttnn"):
        command = [sys.executable, "-c", _TT_TORCH, "run", *program]
    else:
        check_program(program)
        command = [sys.executable, *program]
    try:
        with one_line_errors():
            files = recorded(command, output, sys.stderr.fileno() if as_json else None)
    except subprocess.CalledProcessError as failed:
        print(f"error: the program ended with status {failed.returncode}", file=sys.stderr)
        raise typer.Exit(1) from None
    if not files:
        nothing = "nothing was recorded: the program ran no graph on the device; does it use tt_torch.backend?"
        print(f"error: {nothing}", file=sys.stderr)
        raise typer.Exit(1)
    found = read_json(output)
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        show(found)
        print(*files, sep="\n")


def _simulate(card: str, as_json: bool) -> None:
    from tt_torch.extras import require

    with one_line_errors():
        require("sweeps")  # has Transformers
        from tt_torch.profiling import scaling

        if card not in scaling.CARDS:
            names = " or ".join(scaling.CARDS)
            raise typer.BadParameter(f"the device must be {names}, and not {card!r}", param_hint="--device")
        rows = scaling.simulated(card)
    if as_json:
        print(json.dumps({"device": card, "meshes": rows}, indent=2))
    else:
        scaling.show(card, rows)


def recorded(command: Sequence[str], output: Path, stdout: int | None = None) -> list[Path]:
    """Runs a command, and returns the files of its profile in the folder. There are none if it ran no graph.

    `stdout` is the descriptor to which the command prints. Raises CalledProcessError if the command fails, and OSError
    if the folder cannot be written.
    """
    output.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".recording-", dir=output) as recording:
        folder = Path(recording).resolve()
        variables = os.environ | {"TT_TORCH_PROFILE": str(folder)}
        subprocess.run(command, env=variables, stdout=stdout, check=True)
        return _moved(folder, output)


def _moved(recording: Path, output: Path) -> list[Path]:
    """Moves the files of a recording to the folder, and returns them. If there is no profile, nothing is moved."""
    from tt_torch.profiling.model import JSON_NAME
    from tt_torch.profiling.page import PAGE_NAME

    if not (recording / JSON_NAME).exists():
        return []
    (output / PAGE_NAME).unlink(missing_ok=True)  # without plotly, the recording has no page; an old one does not fit
    return [file.replace(output / file.name) for file in sorted(recording.iterdir())]


def compare_profiles(
    old: Folder,
    new: Folder,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="an HTML page of the comparison")] = None,
    as_json: AsJson = False,
) -> None:
    """Compares two profiles by module, by kind of op and by line."""
    from tt_torch.extras import require
    from tt_torch.profiling import comparison, comparison_page
    from tt_torch.profiling.html import write_page
    from tt_torch.profiling.model import read_json
    from tt_torch.profiling.text import show_comparison

    with one_line_errors():
        if output:
            require("profile")
        before, after = read_json(old), read_json(new)
        if as_json:
            print(json.dumps(comparison.as_json(before, after), indent=2))
        else:
            show_comparison(before, after)
        if output:
            write_page(output, lambda: comparison_page.page(before, after))

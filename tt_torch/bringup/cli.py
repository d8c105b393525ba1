"""`tt-torch verify`: a program's graphs compared with eager PyTorch, op by op."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

Program = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a Python program that uses tt_torch")]


def verify(
    program: Program,
    arguments: Annotated[list[str] | None, typer.Argument(help="the program's arguments, after --")] = None,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="shrink a graph with wrong results to a small program")
    ] = False,
    pcc: Annotated[float, typer.Option(help="a result with a lower correlation counts as wrong")] = 0.99,
) -> None:
    """Runs a program and compares each device op with eager PyTorch, in the first call of each graph.

    The exit status is 1 if a result is wrong, or if nothing was compared.
    """
    from tt_torch.config import CompilerConfig
    from tt_torch.errors import ConfigError

    try:
        CompilerConfig(required_pcc=pcc)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--pcc") from None
    os.environ |= {
        "TT_TORCH_VERIFY_INTERMEDIATES": "1",
        "TT_TORCH_BISECT": str(int(bisect)),
        "TT_TORCH_REQUIRED_PCC": str(pcc),
    }
    try:
        run_program(program, arguments or [])
    except SystemExit as end:
        if end.code:
            raise
    _judge()


def _judge() -> None:
    """Ends the command with status 1 if the program's graphs had a wrong result, or no result that was compared."""
    from tt_torch.bringup.intermediates import totals

    if not totals["compared"]:
        print("error: nothing was compared: the program ran no op on the device with tt_torch.backend", file=sys.stderr)
    elif totals["departed"]:
        print(f"error: {totals['departed']} of {totals['compared']} compared ops depart", file=sys.stderr)
    else:
        return
    raise typer.Exit(1)


def run_program(program: Path, arguments: list[str]) -> None:
    """Runs a Python program in this process as `python program arguments` would."""
    sys.argv = [str(program), *arguments]
    sys.path.insert(0, str(program.resolve().parent))
    runpy.run_path(str(program), run_name="__main__")

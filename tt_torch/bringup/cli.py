"""`tt-torch verify PROGRAM` compares a program's graphs with eager PyTorch, op by op."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from types import TracebackType

import typer

from tt_torch.command_line import check_program, print_json


def verify_program(program: list[str], bisect: bool, pcc: float, as_json: bool) -> None:
    """Runs a program and compares each device op with eager PyTorch, in the first call of each graph.

    Ends the command with status 1 if a result is wrong, if the program fails, or if nothing was compared.
    """
    check_program(program)
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
    status: object = 0
    try:
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            run_program(program)
    except SystemExit as end:
        status = end.code
    except Exception as error:
        traceback.print_exception(type(error), error, _of_program(error.__traceback__))
        status = 1
    if status:
        print(f"error: the program ended with status {status}", file=sys.stderr)
        raise typer.Exit(1)
    _judge(as_json)


def _of_program(frames: TracebackType | None) -> TracebackType | None:
    """The frames of the program. The frames of this command and of runpy are before them."""
    found, at = frames, frames
    while at:
        if at.tb_frame.f_code.co_filename in (runpy.__file__, "<frozen runpy>"):
            found = at.tb_next
        at = at.tb_next
    return found


def _judge(as_json: bool) -> None:
    """Ends the command with status 1 if the program's graphs had a wrong result, or no result that was compared."""
    from tt_torch.bringup.intermediates import totals

    if as_json:
        print_json({"compared": totals["compared"], "departed": totals["departed"]})
    if not totals["compared"]:
        print("error: nothing was compared: the program ran no op on the device with tt_torch.backend", file=sys.stderr)
    elif totals["departed"]:
        print(f"error: {totals['departed']} of {totals['compared']} compared ops depart", file=sys.stderr)
    else:
        return
    raise typer.Exit(1)


def run_program(program: list[str]) -> None:
    """Runs a Python program in this process, as `python prog.py arguments` or `python -m module arguments` would."""
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = program
    sys.path.insert(0, str(Path(program[0]).resolve().parent))
    runpy.run_path(program[0], run_name="__main__")

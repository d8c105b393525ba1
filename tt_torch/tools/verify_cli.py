"""`tt-torch verify` compares a program's graphs, or a compiled file, with results that no device computes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tt_torch.bringup.cli import verify_program
from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, Program, print_json

Tolerance = Annotated[
    float,
    typer.Option(min=0, help="of a FILE: largest difference, relative to the largest magnitude; integers are exact"),
]


def verify(
    program: Program,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="shrink a graph with wrong results to a small program")
    ] = False,
    pcc: Annotated[float, typer.Option(help="a result with a lower correlation counts as wrong")] = 0.99,
    tolerance: Tolerance = 0.01,
    as_json: AsJson = False,
) -> None:
    """Runs a program and compares each device op with eager PyTorch, in the first call of each graph.

    `verify FILE MODEL` compares a .ttpkg package or a .ttnn binary with its model, in the form that `compile` takes.
    Eager PyTorch, ONNX Runtime or StableHLO's interpreter computes what the model returns.

    Options stand before the program. The exit status is 1 if a result is wrong, if the program fails, or if nothing was
    compared.
    """
    if Path(program[0]).suffix not in (".ttpkg", ".ttnn"):
        return verify_program(program, bisect, pcc, as_json)
    if bisect:
        raise typer.BadParameter(f"{program[0]} has no graphs that could be shrunk", param_hint="--bisect")
    _verify_file(program, pcc, tolerance, as_json)


def _verify_file(words: Sequence[str], pcc: float, tolerance: float, as_json: bool) -> None:
    file = Path(words[0])
    if len(words) != 2:
        raise typer.BadParameter(f"verify {file} takes the model that it was compiled from: {file} MODEL")
    if not file.is_file():
        raise typer.BadParameter(f"there is no file {file}")
    from tt_torch.tools import models, running

    with one_line_errors(file), redirect_stdout(sys.stderr) if as_json else nullcontext():
        model = models.model_in(words[1])
        expected, got = map(running.named, model.called(models.package_in(file, model)))
        compared = running.compare(got, expected, words[1], pcc, tolerance)
    if as_json:
        print_json([asdict(each) for each in compared])
    else:
        print(*compared, sep="\n")
    if wrong := [each.name for each in compared if not each.ok]:
        print(f"error: {file} differs from {words[1]} in {', '.join(wrong)}", file=sys.stderr)
    elif not compared:
        print(f"error: nothing was compared: {file} returns no tensor", file=sys.stderr)
    else:
        return
    raise typer.Exit(1)

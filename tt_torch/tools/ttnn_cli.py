"""The commands of `tt-torch` that use Tenstorrent's own library."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, print_json

if TYPE_CHECKING:
    from tt_torch.codegen.check import Report

Binary = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a .ttnn binary")]
Checked = Annotated[
    list[Path] | None, typer.Argument(exists=True, dir_okay=False, help=".ttnn binaries or .ttpkg packages")
]
Folder = Annotated[
    Path | None, typer.Option(help="environment of the ttnn package; default: in the user's cache folder")
]


def add_to(app: typer.Typer) -> None:
    app.command()(codegen)
    app.command()(check)


def codegen(
    file: Binary, output: Annotated[Path | None, typer.Option("-o", "--output", help="default: FILE with .py")] = None
) -> None:
    """Writes a binary as a Python program on the ttnn package, and random weights beside it."""
    from tt_torch.codegen import write_program
    from tt_torch.driver.package.contents import is_package

    if is_package(file):
        text = f"{file} is a package; `tt-torch compile MODEL -o NAME.ttnn` writes a binary"
        raise typer.BadParameter(text, param_hint="FILE")
    target = output or file.with_suffix(".py")
    with one_line_errors(file):
        weights = write_program(file.read_bytes(), target)
    print(f"{target} and {weights}")


def check(
    files: Annotated[
        list[Path] | None, typer.Argument(exists=True, dir_okay=False, help=".ttnn binaries or .ttpkg packages")
    ] = None,
    setup: Annotated[bool, typer.Option("--setup", help="install the ttnn package into --folder first")] = False,
    device: Annotated[str, typer.Option(help="mock device: n150, n300 or p150")] = "n150",
    mesh: Annotated[str | None, typer.Option(help="mesh of chips, such as 2x4; default: that of the binary")] = None,
    folder: Folder = None,
    every_op: Annotated[bool, typer.Option("--all", help="also list the ops without differences")] = False,
    as_json: AsJson = False,
) -> None:
    """Checks each op of binaries with Tenstorrent's library on a mock device; exit status 1 if something differs."""
    from tt_torch.codegen import environment
    from tt_torch.codegen.check import Checkers, own_peaks
    from tt_torch.driver.package.contents import binaries
    from tt_torch.errors import ConfigError
    from tt_torch.waiting import waiting

    if not files and not setup:
        raise typer.BadParameter("give binaries to check, or --setup", param_hint="FILES")
    reports = {}
    with one_line_errors():
        if device not in environment.DEVICES:
            raise ConfigError("device", device, " or ".join(environment.DEVICES))
        if setup:
            print(f"set up in {environment.set_up(folder)}", file=sys.stderr)
        with Checkers(device, folder, _mesh_shape(mesh) if mesh is not None else None) as checkers:
            for file, program, binary in ((f, *each) for f in files or () for each in binaries(f).items()):
                name = f"{file.name} {program}".rstrip()
                checking = waiting(lambda: f"checking {name}")  # noqa: B023, which ends before the next file
                with one_line_errors(file), checking:
                    report = reports[str(file.with_name(name))] = checkers.check(binary)
                if not as_json:
                    show(name, device, report, every_op)
                    own = own_peaks(binary, environment.DEVICES[device])
                    print(f"our allocator, with the weights: peak {own['DRAM']:,} bytes of DRAM, {own['L1']:,} of L1")
    if as_json:
        print_json({name: asdict(report) for name, report in reports.items()})
    raise typer.Exit(int(any(report.failures for report in reports.values())))


def _mesh_shape(text: str) -> tuple[int, int]:
    from tt_torch.errors import ConfigError

    found = re.fullmatch(r"([1-9]\d?)x([1-9]\d?)", text)
    if not found:
        raise ConfigError("mesh", text, "rows and columns of chips, such as 2x4")
    return int(found[1]), int(found[2])


def show(name: str, device: str, report: Report, every_op: bool) -> None:
    from rich.table import Table

    from tt_torch.codegen.source import place
    from tt_torch.records.console import plain_console

    listed = report.verdicts if every_op else report.failures
    if listed:
        table = Table("op", "function", "location", "verdict", "difference")
        for v in listed:
            verdict = "refused" if v.refused else "differs" if v.differences else "ok"
            table.add_row(v.op, v.function, place(v.location), verdict, "\n".join(v.differences))
        plain_console().print(table)
    for function, peak in report.peaks.items():
        if function == "main" or every_op:
            sizes = f"{peak['DRAM']:,} bytes of DRAM, {peak['L1']:,} of L1, {peak['core']:,} in one core"
            print(f"{function}: peak {sizes}")
    print(f"{name} on {device}: {len(report.verdicts)} ops, {len(report.failures)} that differ")

"""The `tt-torch` command. Imports stay inside the commands, so that `tt-torch --help` is quick."""

from __future__ import annotations

import dataclasses
import json
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, Commands, ProgramCommand, print_json
from tt_torch.explore.cli import explore
from tt_torch.fuzz.cli import fuzz
from tt_torch.profiling.cli import compare_profiles, profile
from tt_torch.reports.cli import app as report
from tt_torch.sweep.cli import app as sweep
from tt_torch.tools import ttnn_cli
from tt_torch.tools.cache_cli import app as cache
from tt_torch.tools.compare_compilers import compare_compilers
from tt_torch.tools.compile_cli import compile_
from tt_torch.tools.doctor import doctor
from tt_torch.tools.explain_cli import explain
from tt_torch.tools.opt_cli import opt
from tt_torch.tools.run_cli import run
from tt_torch.tools.tune_cli import tune_precision
from tt_torch.tools.verify_cli import verify

app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(sweep, name="sweep")
app.add_typer(report, name="report")
app.add_typer(cache, name="cache")
app.command(cls=ProgramCommand)(verify)
app.command()(doctor)
app.command(cls=ProgramCommand)(profile)
app.command()(explain)
app.command()(compare_compilers)
app.command()(compare_profiles)
app.command()(explore)
app.command()(fuzz)
app.command()(opt)
app.command("compile")(compile_)
app.command()(run)
app.command()(tune_precision)
ttnn_cli.add_to(app)

Binary = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a .ttnn binary")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from tt_torch.version import __version__

        print(f"tt-torch {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Looks at and runs the binaries that tt_torch compiles."""


@app.command()
def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            help="a .ttnn binary, a .ttpkg package or a .ttsys file; for --why, saved IR or FILE.py:FUNCTION"
        ),
    ],
    as_json: AsJson = False,
    section: Annotated[str | None, typer.Option(help="print this part only, as JSON; all: as --json")] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="in JSON, print constants and host code by length and hash, not byte by byte"),
    ] = False,
    why: Annotated[
        str | None, typer.Option(metavar="OP", help="print the forms that the optimizer weighs for ops of this name")
    ] = None,
) -> None:
    """Shows the programs of a binary with inputs, outputs, memory and device ops, the system that it needs, and what
    its bytes are spent on. If FILE is a package, arguments, results and weights are shown, too.

    JSON is in the form of `ttrt read`. The JSON of a package is its manifest.

    With --why, FILE is StableHLO or TTIR that TT_TORCH_SAVE_MLIR has saved, or a model, and the optimizer decides again
    with the options in environment variables. OP is a pattern of module paths, parameters, names in locations, or ops.
    """
    if why is not None:
        return _print_reasons(str(file), why, as_json)
    if not file.is_file():
        raise typer.BadParameter(f"there is no file {file}", param_hint="FILE")
    from tt_torch.driver.package.contents import is_package
    from tt_torch.tools import inspection, package_inspection
    from tt_torch.wire.decode import decode

    with one_line_errors(file):
        if is_package(file):
            if section:
                raise typer.BadParameter(f"{file} is a package; only binaries have sections", param_hint="--section")
            manifest = json.dumps(package_inspection.as_json(file), indent=2) if as_json else ""
            return print(manifest or "\n".join(package_inspection.text(file)))
        data = file.read_bytes()
        if section or as_json:
            print(json.dumps(inspection.section(section or "all", decode(data), brief), indent=2))
        else:
            print("\n".join(inspection.text(file.name, data)))


def _print_reasons(source: str, op: str, as_json: bool) -> None:
    with one_line_errors(), redirect_stdout(sys.stderr) if as_json else nullcontext():
        from tt_torch.tools import why

        found = why.decisions(source, op)
        if not as_json:
            return why.show(found)
    print_json([dataclasses.asdict(each) for each in found])


@app.command()
def link(
    file: Binary, output: Annotated[Path | None, typer.Option("-o", "--output", help="default: FILE itself")] = None
) -> None:
    """Compiles host functions for a binary of tt-mlir that calls them but has no machine code for them."""
    from tt_torch import files
    from tt_torch.tools import link as linker

    with one_line_errors(file):
        files.write(output or file, linker.link(file.read_bytes()))
    print(output or file)


@app.command()
def query(
    output: Annotated[Path | None, typer.Option("-o", "--output", help="a .ttsys file to write")] = None,
    as_json: AsJson = False,
) -> None:
    """Shows the system that programs are compiled for; writes its descriptor, which compilers of tt-mlir read.

    TT_TORCH_ARCH and TT_TORCH_SYSTEM_DESC choose the system. With TT_TORCH_DEVICE=ttnn, the device is opened, so that
    an absent one is an error.
    """
    from tt_torch import files
    from tt_torch.tools.inspection import system_lines
    from tt_torch.tools.query import system_file
    from tt_torch.wire.as_json import as_json as plain
    from tt_torch.wire.encode import encode

    with one_line_errors():
        system = system_file()
        if output:
            files.write(output, encode(system))
    if as_json:
        return print_json(plain(system)["system_desc"])
    print(*system_lines(system["system_desc"]), *([output] if output else []), sep="\n")


if __name__ == "__main__":
    app()

"""The `tt-torch` command. Imports stay inside the commands, so that `tt-torch --help` is quick."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tt_torch.bringup import cli as bringup
from tt_torch.reports.cli import app as report
from tt_torch.sweep.cli import app as sweep
from tt_torch.tools import ttnn_cli
from tt_torch.tools.cli_errors import one_line_errors

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(sweep, name="sweep")
app.add_typer(report, name="report")
bringup.add_to(app)
ttnn_cli.add_to(app)

Binary = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a .ttnn binary")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"tt-torch {version('tt-torch')}")
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
    file: Binary, as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of text")] = False
) -> None:
    """Shows a binary's programs, their inputs and outputs, its device ops and its size."""
    with one_line_errors():
        summary = summarize(file.read_bytes())
    print(json.dumps(summary, indent=2) if as_json else "\n".join(_text(file.name, summary)))


def summarize(data: bytes) -> dict[str, Any]:
    """What `inspect` shows, as plain values."""
    from tt_torch.flatbuffer.binary import cost, op_histogram
    from tt_torch.flatbuffer.decode import decode

    message = decode(data)
    spent = cost(message)
    return {
        "size": len(data),
        "schema": message["schema_hash"],
        "programs": [_program(program) for program in message.get("programs", ())],
        "device_ops": spent.device_ops,
        "bytes_moved": spent.bytes_moved,
        "ops": dict(op_histogram(message).most_common()),
    }


def _program(program: dict) -> dict[str, Any]:
    return {
        "name": program["name"],
        "private": bool(program.get("private")),
        "inputs": [_tensor(ref) for ref in program.get("inputs") or ()],
        "outputs": [_tensor(ref) for ref in program.get("outputs") or ()],
        "operations": len(program.get("operations") or ()),
    }


def _tensor(ref: dict) -> dict[str, Any]:
    desc = ref["desc"]
    return {"shape": list(desc["shape"]), "dtype": desc["layout"]["memory_desc"]["data_type"]}


def _text(name: str, summary: dict[str, Any]) -> Iterator[str]:
    yield f"{name}: {summary['size']:,} bytes, schema {summary['schema'][:8]}"
    for program in summary["programs"]:
        private = ", private" if program["private"] else ""
        yield f"\nprogram {program['name']} ({program['operations']} operations{private})"
        for way in ("inputs", "outputs"):
            for i, tensor in enumerate(program[way]):
                yield f"  {way[:-1]} {i}: {tensor['dtype']} {'x'.join(map(str, tensor['shape'])) or 'scalar'}"
    yield f"\n{summary['device_ops']} device ops per call, {summary['bytes_moved']:,} bytes moved"
    for op, count in summary["ops"].items():
        yield f"  {count:5} {op}"


@app.command()
def run(file: Binary, seed: Annotated[int, typer.Option(help="of the random inputs")] = 0) -> None:
    """Runs a binary once on random inputs; shows the shapes of the outputs and the time."""
    import time

    import torch

    import tt_torch
    from tt_torch.runtime.loading import host_dtype
    from tt_torch.tools.verify import random_inputs

    with one_line_errors():
        program = tt_torch.load(file)
        torch.manual_seed(seed)
        inputs = random_inputs([i.shape for i in program.inputs], [host_dtype(i) for i in program.inputs])
        begin = time.perf_counter()
        outputs = program(*inputs)
    milliseconds = (time.perf_counter() - begin) * 1e3
    for i, output in enumerate(outputs):
        print(f"output {i}: {str(output.dtype).removeprefix('torch.')} {tuple(output.shape)}")
    print(f"{milliseconds:.1f} ms")


if __name__ == "__main__":
    app()

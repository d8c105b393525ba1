"""Runs steps of the pipeline on an MLIR file: `python -m tt_torch.tools.opt --step fuse model.mlir`.

IR tests use this tool, and so does the command that a failing step leaves in its repro folder.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import StageError, TTTorchError
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context, parse
from tt_torch.mlir.verify import verify

app = typer.Typer(add_completion=False)
SEPARATOR = "// -----"


def _read(file: str) -> str | bytes:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data if data.startswith(b"ML\xefR") else data.decode()  # bytecode, or text


def _split(source: str | bytes) -> list[str | bytes]:
    """The modules of a text. Empty lines stand for the text before each module, so that locations stay right."""
    if isinstance(source, bytes):
        return [source]
    parts = re.split(rf"^{SEPARATOR}.*$", source, flags=re.MULTILINE)
    before = [0, *(part.count("\n") for part in parts)]
    return ["\n" * sum(before[: i + 1]) + part for i, part in enumerate(parts)]


def _run(source: str | bytes, steps: list[pipeline.Step], config: CompilerConfig, locations: bool) -> str:
    module = parse(source, make_context())
    verify(module)
    for name, step in steps:
        try:
            step(module, config)
        except TTTorchError:
            raise
        except Exception as error:
            raise StageError(name, error, None) from error
        verify(module)
    return module.operation.get_asm(enable_debug_info=locations)


@app.command()
def main(
    file: Annotated[str, typer.Argument(help="MLIR text or bytecode; - for standard input.")] = "-",
    step: Annotated[list[str] | None, typer.Option(help="Steps to run, in the order given.")] = None,
    to: Annotated[str | None, typer.Option(help="Run all steps from StableHLO to TTIR or TTNN.")] = None,
    dtype: Annotated[str | None, typer.Option(help="bf16 or f32, for the step apply-dtype.")] = None,
    split: Annotated[bool, typer.Option("--split-input-file", help=f"Split at {SEPARATOR}")] = False,
    expect_error: Annotated[bool, typer.Option(help="Succeed when every module has an error.")] = False,
    locations: Annotated[bool, typer.Option(help="Print source locations.")] = False,
    show_steps: Annotated[bool, typer.Option("--list", help="List the steps and stop.")] = False,
) -> None:
    """Runs steps of the pipeline on a module, verifies it after each, and prints it."""
    if show_steps:
        print("\n".join(pipeline.STEPS))
        return
    if unknown := [s for s in step or [] if s not in pipeline.STEPS]:
        raise typer.BadParameter(f"there is no step {', '.join(unknown)}; --list shows all steps", param_hint="--step")
    config = CompilerConfig(dtype=dtype).with_env()
    steps = [(s, pipeline.STEPS[s]) for s in step or []]
    if to is not None:
        levels = {"TTIR": pipeline.TO_TTIR, "TTNN": pipeline.TO_TTIR + pipeline.TO_TTNN}
        if to not in levels:
            raise typer.BadParameter(f"got {to}, expected TTIR or TTNN", param_hint="--to")
        steps += levels[to]
    passed, failed = 0, 0
    try:
        source = _read(file)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error
    for number, part in enumerate(_split(source) if split else [source]):
        if number:
            print(SEPARATOR, flush=True)
        try:
            print(_run(part, steps, config, locations))
            passed += 1
        except (TTTorchError, ir.MLIRError) as error:
            print(f"error: {error}", file=sys.stdout if expect_error else sys.stderr)
            failed += 1
    if passed if expect_error else failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()

"""Runs steps of the pipeline on an MLIR file: `python -m tt_torch.tools.opt --step fuse model.mlir`.

The tool behind IR tests and behind the command that a failing step leaves in its repro folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import TTTorchError
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.verify import verify

app = typer.Typer(add_completion=False)


def _read(file: str) -> str | bytes:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data if data.startswith(b"ML\xefR") else data.decode()  # bytecode, or text


@app.command()
def main(
    file: Annotated[str, typer.Argument(help="MLIR text or bytecode; - for standard input.")] = "-",
    step: Annotated[list[str] | None, typer.Option(help="A step to run; several run in the order given.")] = None,
    to: Annotated[str | None, typer.Option(help="Run all steps from StableHLO to a level: TTIR or TTNN.")] = None,
    dtype: Annotated[str | None, typer.Option(help="bf16 or f32, for the step apply-dtype.")] = None,
    locations: Annotated[bool, typer.Option(help="Print source locations.")] = False,
    show_steps: Annotated[bool, typer.Option("--list", help="List the steps and stop.")] = False,
) -> None:
    """Runs steps of the pipeline on a module, verifies it after each, and prints it."""
    if show_steps:
        print("\n".join(pipeline.STEPS))
        return
    if unknown := [s for s in step or [] if s not in pipeline.STEPS]:
        raise typer.BadParameter(f"no step {', '.join(unknown)}; --list shows all", param_hint="--step")
    config = CompilerConfig(dtype=dtype, verify_ir=True)
    steps = [(s, pipeline.STEPS[s]) for s in step or []]
    if to is not None:
        levels = {"TTIR": pipeline.TO_TTIR, "TTNN": pipeline.TO_TTIR + pipeline.TO_TTNN}
        if to not in levels:
            raise typer.BadParameter("TTIR or TTNN", param_hint="--to")
        steps += levels[to]
    try:
        module = ir.Module.parse(_read(file), make_context())
        verify(module)
        pipeline.run_steps(module, steps, config, pipeline.Timings())
    except (TTTorchError, ir.MLIRError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(module.operation.get_asm(enable_debug_info=locations))


if __name__ == "__main__":
    app()

"""`tt-torch opt` runs steps of the pipeline on an MLIR file.

IR tests use this tool, and so does the command that a failing step leaves in its repro folder.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.errors import StageError, TTTorchError
from tt_torch.files import MLIR_BYTECODE

if TYPE_CHECKING:
    from tt_torch.config import CompilerConfig
    from tt_torch.mlir.pipeline import Step

SEPARATOR = "// -----"


def read(file: str) -> str | bytes:
    """The text or the bytecode of a file, or of standard input for `-`. Raises OSError and UnicodeDecodeError."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data if data.startswith(MLIR_BYTECODE) else data.decode()


def _split(source: str | bytes) -> list[str | bytes]:
    """The modules of a text. Empty lines stand for the text before each module, so that locations stay right."""
    if isinstance(source, bytes):
        return [source]
    parts = re.split(rf"^{SEPARATOR}.*$", source, flags=re.MULTILINE)
    before = [0, *(part.count("\n") for part in parts)]
    return ["\n" * sum(before[: i + 1]) + part for i, part in enumerate(parts)]


def _run(source: str | bytes, steps: Sequence[Step], config: CompilerConfig, locations: bool) -> str:
    from tt_torch.mlir.context import context_to_compile
    from tt_torch.mlir.reading import read_module
    from tt_torch.mlir.verify import verify

    module = read_module(source, context_to_compile())
    verify(module)
    for name, step in steps:
        try:
            step(module, config)
        except TTTorchError:
            raise
        except Exception as error:
            raise StageError(name, error, None) from error
        verify(module)
    return str(module.operation.get_asm(enable_debug_info=locations))


def _steps(names: Sequence[str], to: str) -> list[Step]:
    """The steps with these names, then the steps to a level. Raises BadParameter for an unknown step or level."""
    from tt_torch.mlir import pipeline

    if unknown := [name for name in names if name not in pipeline.STEPS]:
        raise typer.BadParameter(f"there is no step {', '.join(unknown)}; --list shows all steps", param_hint="--step")
    levels = {"": [], "TTIR": pipeline.TO_TTIR, "TTNN": pipeline.TO_TTIR + pipeline.TO_TTNN}
    if to not in levels:
        raise typer.BadParameter(f"got {to}, expected TTIR or TTNN", param_hint="--to")
    return [*((name, pipeline.STEPS[name]) for name in names), *levels[to]]


def opt(
    file: Annotated[str, typer.Argument(help="MLIR text or bytecode; - for standard input")] = "-",
    step: Annotated[list[str] | None, typer.Option(help="a step to run; may be repeated, in order")] = None,
    to: Annotated[str, typer.Option(help="run all steps from StableHLO to TTIR or TTNN")] = "",
    dtype: Annotated[str | None, typer.Option(help="bf16 or f32, for the step apply-dtype")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="default: standard output")] = None,
    split: Annotated[bool, typer.Option("--split-input-file", help=f"split at {SEPARATOR}")] = False,
    expect_error: Annotated[bool, typer.Option("--expect-error", help="succeed if every module has an error")] = False,
    locations: Annotated[bool, typer.Option("--locations", help="print source locations")] = False,
    show_steps: Annotated[bool, typer.Option("--list", help="list the steps and stop")] = False,
) -> None:
    """Runs steps of the pipeline on a module, verifies it after each, and prints it."""
    from tt_torch import files
    from tt_torch.config import CompilerConfig
    from tt_torch.mlir import pipeline

    if show_steps:
        return print("\n".join(pipeline.STEPS))
    try:
        source = read(file)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error
    with one_line_errors():
        config, steps = CompilerConfig(dtype=dtype).with_env(), _steps(step or (), to)
        results = [_result(part, steps, config, locations) for part in (_split(source) if split else [source])]
        shown = [text for is_right, text in results if is_right or expect_error]
        text = f"\n{SEPARATOR}\n".join(shown) + "\n" * bool(shown)
        for is_right, message in results:
            if not is_right and not expect_error:
                print(message, file=sys.stderr)
        wrong = any(is_right == expect_error for is_right, _ in results)
        if output and not wrong:
            files.write(output, text.encode())
        elif not output:
            print(text, end="")
    raise typer.Exit(int(wrong))


def _result(source: str | bytes, steps: Sequence[Step], config: CompilerConfig, locations: bool) -> tuple[bool, str]:
    """Whether the steps ran, and the text of the module after them, or of the error."""
    from torch_mlir import ir

    try:
        return True, _run(source, steps, config, locations)
    except (TTTorchError, ir.MLIRError) as error:
        return False, f"error: {error}"

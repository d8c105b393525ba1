"""`tt-torch inspect --why` shows the forms that the optimizer weighs for an op, and why it takes one of them.

The choices are made again, from the module before them, so that no compilation has to keep them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from torch_mlir import ir

from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.driver.backend import backend
from tt_torch.errors import ConfigError, ModuleFormatError, OpNameError
from tt_torch.layers import matches
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import context_to_compile
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.reading import read_module
from tt_torch.mlir.ttnn.optimizer import op_model
from tt_torch.mlir.ttnn.optimizer.placement import optimize
from tt_torch.option_kinds import nearest
from tt_torch.tools.explain_cli import model_of
from tt_torch.tools.opt_cli import read
from tt_torch.wire.binary import system

if TYPE_CHECKING:
    from rich.table import Table

    from tt_torch.mlir.ttnn.optimizer.weighing import Decision

_TAKEN = (
    "--why takes a model, as FILE.py:FUNCTION, or a module that TT_TORCH_SAVE_MLIR=TTIR or STABLEHLO has saved; TTNN, "
    "binaries and packages have the choices already"
)


def decisions(source: str, pattern: str) -> list[Decision]:
    """Decides again, and returns the decisions for ops with a name that a pattern matches. `ttnn.conv2d` and `conv2d`
    are names, too.

    `source` is a file with StableHLO or TTIR, or a model in the form of explain_cli.TARGET. Environment variables have
    the options of the compiler. Raises OpNameError if nothing matches.
    """
    config = CompilerConfig.from_env()
    if not config.level:
        raise ConfigError("optimization_level", 0, "1 or 2, at which there is an optimizer")
    made = [each for module in _sources(source, config) for each in _decided(module, config)]
    found = [each for each in made if matches(pattern, [*each.names, each.op, each.op.removeprefix("ttnn.")])]
    if not found:
        known = {name for each in made for name in (*each.names, each.op) if name}
        raise OpNameError(pattern, nearest(pattern, known), sorted({each.names[0] for each in made}))
    return found


def _sources(source: str, config: CompilerConfig) -> Sequence[str | bytes]:
    """The module in a file, or the modules that a call of a model compiles. The CPU computes the call."""
    if Path(source).is_file():
        return [_saved(source)]
    import torch

    from tt_torch.torch_private.dynamo import BackendCompilerFailed

    model, args, kwargs = model_of(source)
    with TemporaryDirectory() as folder, torch.no_grad():
        depth = CompileDepth.TTNN_IR
        kept = dataclasses.replace(config, save_mlir=("TTIR",), output_mlir_dir=folder, compile_depth=depth)
        run = torch.compile(model, backend=partial(backend, options=BackendOptions(compiler_config=kept)))
        try:
            run(*args, **kwargs)
        except BackendCompilerFailed as error:
            raise error.inner_exception from None
        return [file.read_text() for file in sorted(Path(folder).iterdir())]


def _saved(file: str) -> str | bytes:
    try:
        return read(file)
    except UnicodeDecodeError:
        raise ModuleFormatError(f"it is no text; {_TAKEN}") from None


def _decided(source: str | bytes, config: CompilerConfig) -> list[Decision]:
    try:
        module = read_module(source, context_to_compile())
    except ir.MLIRError as error:
        raise ModuleFormatError(f"{error}; {_TAKEN}") from None
    dialects = {op.operation.name.partition(".")[0] for op in block(main(module)).operations}
    if "ttnn" in dialects:
        raise ModuleFormatError(f"it is TTNN; {_TAKEN}")
    steps = [*(pipeline.TO_TTIR if "stablehlo" in dialects else ()), *pipeline.TO_TTNN]
    pipeline.run_steps(module, takewhile(lambda step: step[0] != "optimize", steps), config, pipeline.Timings())
    made: list[Decision] = []
    with op_model.chosen(config) as questions:
        chip = system(config.arch, config.system_desc)
        optimize(module, chip, config.level, questions, config.splits_weights, made)
    return made


def table(decision: Decision) -> Table:
    """The candidates of an op, in the order in which they are tried."""
    from rich import box
    from rich.table import Table

    from tt_torch.mlir.ttnn.optimizer.weighing import REFUSED

    named = ", ".join(name for name in decision.names if name)
    shown = Table(title=f"{decision.op} ({named}) at {decision.location}", title_justify="left", box=box.SIMPLE)
    for column in ("result", "moves of operands", "configuration"):
        shown.add_column(column, overflow="fold")
    for column in ("op, us", "readers, us", "L1, KiB"):
        shown.add_column(column, justify="right")
    shown.add_column("verdict", overflow="fold")
    for each in decision.candidates:
        times = [f"{seconds * 1e6:.2f}" for seconds in (each.seconds, each.readers)]
        verdict = "refused" if each.verdict.startswith(REFUSED) else each.verdict
        shown.add_row(each.result, each.moves, each.configuration, *times, f"{each.l1 / 1024:,.0f}", verdict)
    return shown


def show(found: Sequence[Decision]) -> None:
    """Prints the tables, and the op model's reasons to refuse forms below them."""
    from tt_torch.mlir.ttnn.optimizer.weighing import CHOSEN, REFUSED
    from tt_torch.records.console import plain_console

    console = plain_console()
    for decision in found:
        console.print(table(decision))
        for verdict in dict.fromkeys(each.verdict for each in decision.candidates):
            if verdict.startswith(REFUSED):
                console.print(f"{verdict}\n")
        if all(each.verdict != CHOSEN for each in decision.candidates):
            console.print("no form is known to fit, so it runs on interleaved tensors with all of L1 to itself\n")

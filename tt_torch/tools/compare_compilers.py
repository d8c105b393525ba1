"""`tt-torch compare-compilers` compiles a model by our stages and by tt-mlir, and compares the results."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from tt_torch.cli_errors import one_line_errors, refuse_compiler_variable
from tt_torch.command_line import AsJson, print_json
from tt_torch.tools.explain_cli import Target, model_of

if TYPE_CHECKING:
    from tt_torch.config import CompilerConfig
    from tt_torch.dynamo.types import Function

Levels = Annotated[list[int], typer.Option("--level", min=0, max=2, help="optimization levels of tt-mlir")]
Row: TypeAlias = tuple[str, ...]
HEAD = ("compiler", "device ops", "moves", "MB moved", "modelled ms", "compile s", "PCC", "largest difference")


def compare_compilers(
    target: Target,
    levels: Levels = [0, 2],  # noqa: B006 - typer only reads it
    as_json: AsJson = False,
) -> None:
    """Compares what our stages and tt-mlir make of a model, and compares the results of both with eager PyTorch.

    Both binaries run on the emulated device. `modelled ms` is what the roofline
    model of docs/profiling.md gives for a call. If a compiler fails, its row has the reason, and the exit status is 1.
    """
    refuse_compiler_variable()
    from tt_torch.config import CompilerConfig
    from tt_torch.records.markdown import table

    with one_line_errors():
        model, args, kwargs = model_of(target)
        configs = {"tt-torch": CompilerConfig(), "tt-torch, with optimizer": CompilerConfig(enable_optimizer=True)}
        for level in levels:
            theirs = CompilerConfig(compiler="tt-mlir", tt_mlir_options=(("optimization_level", str(level)),))
            configs[f"tt-mlir, level {level}"] = theirs
        for config in configs.values():
            config.cache_size = 0  # a column has the time of a compilation
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            rows = [(name, *row(model, args, kwargs, config)) for name, config in configs.items()]
        if as_json:
            print_json([dict(zip(HEAD, cells, strict=True)) for cells in rows])
        else:
            print(*table(HEAD, rows), sep="\n")
    if failed := [name for name, _, *cells in rows if not any(cells)]:
        print(f"error: not compared: {'; '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)


def row(model: Function, args: tuple[Any, ...], kwargs: dict[str, Any], config: CompilerConfig) -> Row:
    """The columns of HEAD after the first one; the reason and empty cells if the model cannot be compiled or run."""
    import torch

    from tt_torch import compile_model
    from tt_torch.errors import TTTorchError
    from tt_torch.profiling.cost_model import of_call
    from tt_torch.wire.decode import decode

    try:
        start = time.perf_counter()
        compiled = compile_model(model, args, config, kwargs=kwargs)
        seconds = time.perf_counter() - start
        with torch.no_grad():
            accuracy = agreement(compiled(*args, **kwargs), model(*args, **kwargs))
    except TTTorchError as error:
        return (f"{type(error).__name__}: {error}", *[""] * (len(HEAD) - 2))
    cost = of_call(decode(compiled.binary))
    counts = str(cost.device_ops), str(cost.moves), f"{cost.bytes / 1e6:.2f}"
    return (*counts, f"{cost.ideal * 1e3:.4f}", f"{seconds:.2f}", *accuracy)


def agreement(results: object, expected: object) -> tuple[str, str]:
    """The lowest PCC of all results, and the largest difference relative to the largest magnitude of its tensor.

    Both are empty if no result has elements. For a result of zeros, the difference is not relative.
    """
    import torch

    from tt_torch.accuracy import calculate_pcc
    from tt_torch.torch_private.trees import tree_leaves

    pairs = [
        (ours.double(), eager.double())
        for ours, eager in zip(tree_leaves(results), tree_leaves(expected), strict=True)
        if isinstance(eager, torch.Tensor) and eager.numel()
    ]
    if not pairs:
        return "", ""
    pcc = min(calculate_pcc(ours, eager) for ours, eager in pairs)
    difference = max(((ours - eager).abs().max() / (eager.abs().max() or 1)).item() for ours, eager in pairs)
    return f"{pcc:.7f}", f"{difference:.1e}"

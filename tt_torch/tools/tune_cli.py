"""The command `tt-torch tune-precision`."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, print_json
from tt_torch.files import require_writable, write
from tt_torch.tools.explain_cli import Target, model_of

if TYPE_CHECKING:
    from tt_torch.profiling.html import Table
    from tt_torch.tuning.search import Measure, Trial

Goal = Annotated[float, typer.Option("--pcc", min=0.0, max=1.0, help="the least correlation with eager PyTorch")]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="the file for the option `precision`; a page goes beside it, as .html")
]


def tune_precision(
    target: Target, pcc: Goal = 0.99, output: Output = Path("precision.json"), as_json: AsJson = False
) -> None:
    """Searches for the cheapest precision of each layer that keeps an accuracy on the arguments of the model.

    The model runs on an emulated device with the roundings of a chip, which is slow, and is compiled for each trial.
    Other options of the compiler are environment variables, such as TT_TORCH_DTYPE=bf16. Status 1: the goal is not
    reached.
    """
    with one_line_errors(), redirect_stdout(sys.stderr) if as_json else nullcontext():
        import torch

        from tt_torch.config import CompilerConfig
        from tt_torch.profiling.html import write_page
        from tt_torch.tuning import report
        from tt_torch.tuning.meter import Meter
        from tt_torch.tuning.search import LEVELS, Search

        model, args, kwargs = model_of(target)
        if not isinstance(model, torch.nn.Module):
            raise typer.BadParameter("the model is a function, and only modules have layers", param_hint="MODEL")
        _require_results_apart(output)
        meter = Meter(model, args, kwargs, CompilerConfig.from_env())
        if not meter.patterns:
            raise typer.BadParameter("the model has no weights of matrix products", param_hint="MODEL")
        with _progress(meter) as measure:
            search = Search(measure, len(meter.patterns), pcc)
            best = search.run()
        trials = list(search.trials.values())
        if best:
            write(output, (json.dumps(meter.precision(best.choice), indent=2) + "\n").encode())
            write_page(output.with_suffix(".html"), lambda: report.page(meter.patterns, trials, best, pcc))
        _print(report.table(trials, best))
    if as_json:
        found = {"goal": pcc, "layers": meter.patterns, "levels": [level.name for level in LEVELS]}
        print_json(found | {"trials": [*map(dataclasses.asdict, trials)], "best": best and dataclasses.asdict(best)})
    if best is None:
        most = max(trial.pcc for trial in trials)
        print(f"the goal {pcc:g} is not reached; the most precise level gives {most:.6f}", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{output} has the precision of {len(meter.patterns)} layers: TT_TORCH_PRECISION={output}", file=sys.stderr)


def _require_results_apart(output: Path) -> None:
    """Raises BadParameter if the page would replace the file, or if a variable would replace the levels of each trial.
    Raises OSError if the file cannot be written."""
    if output.suffix == ".html":
        raise typer.BadParameter(f"the page gets the name {output}; give the file another ending", param_hint="-o")
    if "TT_TORCH_PRECISION" in os.environ:
        raise typer.BadParameter("TT_TORCH_PRECISION is set, and would count instead of the levels to try; unset it")
    require_writable(output)


@contextmanager
def _progress(measure: Measure) -> Iterator[Measure]:
    """The function `measure`. The terminal shows how often it was called."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} trials{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=None)

        def counted(choice: tuple[int, ...]) -> Trial:
            trial = measure(choice)
            progress.update(task, advance=1, description=f", the last one with {trial.pcc:.6f}")
            return trial

        yield counted


def _print(table: Table) -> None:
    from rich import box
    from rich.table import Table as Shown

    from tt_torch.records.console import plain_console

    shown = Shown(*table.columns, box=box.SIMPLE)
    for row in table.rows:
        shown.add_row(*(cell.text for cell in row))
    plain_console().print(shown)

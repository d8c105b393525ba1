"""`tt-torch sweep`: its options, its progress bar."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tt_torch.sweep.engine import Item

app = typer.Typer(no_args_is_help=True, help="Compiles and runs many small programs; compares each with eager PyTorch.")

Select = Annotated[str, typer.Option("-k", help="only items whose key this regular expression finds")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="worker processes")]
Fraction = Annotated[float, typer.Option(min=0, max=1, help="run a stratified sample of this size")]
Seed = Annotated[int, typer.Option(help="of the stratified sample")]
Timeout = Annotated[float, typer.Option(help="seconds per item")]
Memory = Annotated[float, typer.Option(help="GiB of address space per worker")]
Output = Annotated[Path, typer.Option("-o", "--output", help="JSON lines; what it has of this commit is not run again")]


@app.command()
def ops(
    select: Select = "",
    dtype: Annotated[list[str] | None, typer.Option(help="data type of the samples; may be repeated")] = None,
    samples: Annotated[int, typer.Option(min=1, help="of each op and data type")] = 5,
    fraction: Fraction = 1.0,
    seed: Seed = 0,
    jobs: Jobs = 1,
    timeout: Timeout = 60.0,
    memory: Memory = 8.0,
    output: Output = Path("results/ops.jsonl"),
) -> None:
    """Sweeps over PyTorch's OpInfo database."""
    from tt_torch.sweep import ops

    unknown = set(dtype or ()) - set(ops.DTYPES)
    if unknown:
        raise typer.BadParameter(f"{unknown.pop()} is none of {', '.join(ops.DTYPES)}", param_hint="--dtype")
    items = choose(list(ops.items(dtype or ops.DTYPES, samples)), select, fraction, seed)
    _sweep("op", items, jobs, timeout, memory, output)


@app.command()
def models(
    file: Annotated[str, typer.Argument(help="a Python file with a list MODELS, in place of ours")] = "",
    select: Select = "",
    fraction: Fraction = 1.0,
    seed: Seed = 0,
    jobs: Jobs = 1,
    timeout: Timeout = 600.0,
    memory: Memory = 16.0,
    output: Output = Path("results/models.jsonl"),
) -> None:
    """Sweeps over small models of many families."""
    from tt_torch.sweep import models

    items = choose(list(models.items(file)), select, fraction, seed)
    _sweep("model", items, jobs, timeout, memory, output)


@app.command()
def summary(file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)]) -> None:
    """Counts the records of a sweep."""
    from tt_torch.sweep.results import read
    from tt_torch.sweep.summary import print_summary

    print_summary(read(file))


def choose(items: Sequence[Item], select: str, fraction: float, seed: int) -> list[Item]:
    """The items that are wanted. A fraction is one of each stretch of neighbours, so that each family has its share."""
    wanted = [item for item in items if re.search(select, item.key)]
    if fraction == 1.0:
        return wanted
    count = round(len(wanted) * fraction)
    edges = [len(wanted) * i // count for i in range(count + 1)] if count else [0]
    generator = random.Random(seed)
    return [wanted[generator.randrange(a, b)] for a, b in itertools.pairwise(edges)]


def _sweep(kind: str, items: Sequence[Item], jobs: int, timeout: float, memory: float, output: Path) -> None:
    """Runs what `output` does not have yet, shows all of it; exit status 1 when something is not right."""
    from tt_torch.sweep import engine
    from tt_torch.sweep.engine import Limits
    from tt_torch.sweep.results import Results, provenance, read, stamp
    from tt_torch.sweep.summary import good, print_summary

    results = Results(output)
    done = results.done()
    todo = [item for item in items if item.key not in done]
    for item, record in _progress(engine.run(todo, jobs, Limits(timeout, int(memory * 2**30))), len(todo)):
        labels = {"kind": kind, "key": item.key, **item.arguments}
        results.append({**labels, **record, **provenance(), "time": stamp()})
    keys = {item.key for item in items}
    records = [record for record in read(output) if record["key"] in keys]
    print_summary(records)
    raise typer.Exit(0 if all(map(good, records)) else 1)


def _progress(outcomes: Iterator[tuple[Item, dict[str, Any]]], total: int) -> Iterator[tuple[Item, dict[str, Any]]]:
    """Passes on the outcomes that are results, and shows how far they are."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counts: Counter[str] = Counter()
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns) as progress:
        bar = progress.add_task("", total=total)
        for item, record in outcomes:
            if record["verdict"] != "absent":
                counts[record["verdict"]] += 1
                yield item, record
            progress.update(
                bar, advance=1, description=" ".join(f"{v} {n}" for v, n in counts.items()) + f" {item.key}"
            )

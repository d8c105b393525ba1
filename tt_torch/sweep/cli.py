"""The command `tt-torch sweep`: its options and its progress bar."""

from __future__ import annotations

import itertools
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import typer.core

from tt_torch.cli_errors import needs, one_line_errors, refuse_compiler_variable
from tt_torch.command_line import AsJson, is_module, print_json

if TYPE_CHECKING:
    from typer._click.core import Context

    from tt_torch.records.lines import Record
    from tt_torch.workers.engine import Item


class _OrFile(typer.core.TyperGroup):
    """`sweep my_models.py` and `sweep -m module` are short for `sweep models my_models.py` and so on."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        is_program = bool(args) and (args[0] in ("-m", "--") or args[0].endswith(".py"))
        return super().parse_args(ctx, ["models", *args] if is_program else args)


app = typer.Typer(
    cls=_OrFile, no_args_is_help=True, help="Compiles and runs many small programs; compares each with eager PyTorch."
)

Select = Annotated[str, typer.Option("-k", help="run only items whose key matches this regular expression")]
Fraction = Annotated[float, typer.Option(min=0, max=1, help="run a stratified sample with this share of the items")]
Seed = Annotated[int, typer.Option(help="random seed of the stratified sample")]
Shard = Annotated[str, typer.Option(help="i/n: run the i-th of n parts, for machines that share the work")]
Compilers = Annotated[
    list[str], typer.Option("--compiler", help="tt-torch or tt-mlir; may be repeated: each item gets a record of each")
]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="number of worker processes")]
OpByOp = Annotated[bool, typer.Option("--op-by-op", help="run each unique op by itself, which takes long")]
Generate = Annotated[bool, typer.Option("--generate", help="write text with the models that can; count their programs")]
Ray = Annotated[str, typer.Option(help="address of a Ray cluster that runs the items instead of this machine")]
Timeout = Annotated[float, typer.Option(min=0.1, help="time limit per item, in seconds")]
Memory = Annotated[float, typer.Option(min=0.5, help="limit of address space per worker, in GiB")]
Output = Annotated[
    Path,
    typer.Option("-o", "--output", help="JSON lines; items with a record of this commit and models are skipped"),
]
Db = Annotated[str, typer.Option(help="results database to which each record is written, too")]
_LINE_SECONDS = 20.0  # between lines of progress
JUnit = Annotated[Path | None, typer.Option("--junit-xml", help="JUnit XML, complete after each item")]


@dataclass(frozen=True)
class Plan:
    """How a sweep runs and where its records go."""

    jobs: int
    ray: str
    timeout: float
    memory: float
    output: Path
    db: str
    junit: Path | None
    as_json: bool


@app.command()
def ops(
    select: Select = "",
    dtype: Annotated[list[str] | None, typer.Option(help="data type of the samples; may be repeated")] = None,
    samples: Annotated[int, typer.Option(min=1, help="number of samples per op and data type")] = 5,
    fraction: Fraction = 1.0,
    seed: Seed = 0,
    shard: Shard = "1/1",
    compiler: Compilers = ["tt-torch"],  # noqa: B006 - typer only reads it
    jobs: Jobs = 1,
    ray: Ray = "",
    timeout: Timeout = 60.0,
    memory: Memory = 8.0,
    output: Output = Path("results/ops.jsonl"),
    db: Db = "",
    junit_xml: JUnit = None,
    as_json: AsJson = False,
) -> None:
    """Sweeps over PyTorch's OpInfo database."""
    needs("sweeps")
    from tt_torch.sweep import ops

    unknown = set(dtype or ()) - set(ops.DTYPES)
    if unknown:
        raise typer.BadParameter(f"{unknown.pop()} is none of {', '.join(ops.DTYPES)}", param_hint="--dtype")
    items = choose(list(ops.items(dtype or ops.DTYPES, samples)), select, fraction, seed, shard)
    _sweep("op", by_compiler(items, compiler), Plan(jobs, ray, timeout, memory, output, db, junit_xml, as_json))


@app.command()
def models(
    file: Annotated[
        Path | None,
        typer.Argument(exists=True, dir_okay=False, help="a Python file with a list MODELS, instead of our models"),
    ] = None,
    module: Annotated[str, typer.Option("-m", "--module", help="a module with a list MODELS, instead of a file")] = "",
    op_by_op: OpByOp = False,
    generate: Generate = False,
    select: Select = "",
    fraction: Fraction = 1.0,
    seed: Seed = 0,
    shard: Shard = "1/1",
    compiler: Compilers = ["tt-torch"],  # noqa: B006 - typer only reads it
    jobs: Jobs = 1,
    ray: Ray = "",
    timeout: Timeout = 600.0,
    memory: Memory = 16.0,
    output: Output = Path("results/models.jsonl"),
    db: Db = "",
    junit_xml: JUnit = None,
    as_json: AsJson = False,
) -> None:
    """Sweeps over small models of many families."""
    if file is None:
        needs("sweeps")
    from tt_torch.sweep import generating, models
    from tt_torch.sweep.catalogue import content_hash

    plan = Plan(jobs, ray, timeout, memory, output, db, junit_xml, as_json)
    kind = _kind_of_models(op_by_op, generate, compiler)
    if module and (file or not is_module(module)):
        raise typer.BadParameter("there is a file, too" if file else f"there is no module {module!r}", param_hint="-m")
    with one_line_errors():
        source = str(file or module)
        if kind == "op-by-op":
            rows = list(models.op_by_op_items(source, output.parent / "models"))
        else:
            rows = list(generating.items(source) if generate else models.items(source))
    chosen = choose(rows, select, fraction, seed, shard)
    todo = by_compiler(chosen, compiler) if kind == "model" else chosen
    _sweep(kind, todo, plan, {"source_hash": content_hash(source)} if source else None)


def _kind_of_models(op_by_op: bool, generate: bool, compilers: Sequence[str]) -> str:
    """The kind of the records of a sweep of models. Raises typer.BadParameter for options that exclude each other."""
    if op_by_op and generate:
        raise typer.BadParameter("it cannot be used with --op-by-op", param_hint="--generate")
    if (op_by_op or generate) and compilers != ["tt-torch"]:
        how = "op by op" if op_by_op else "to generate"
        raise typer.BadParameter(f"{how}, models are compiled by tt-torch only", param_hint="--compiler")
    return "op-by-op" if op_by_op else "generation" if generate else "model"


@app.command()
def onnx(
    select: Select = "",
    fraction: Fraction = 1.0,
    seed: Seed = 0,
    shard: Shard = "1/1",
    jobs: Jobs = 1,
    ray: Ray = "",
    timeout: Timeout = 120.0,
    memory: Memory = 16.0,
    output: Output = Path("results/onnx.jsonl"),
    db: Db = "",
    junit_xml: JUnit = None,
    as_json: AsJson = False,
) -> None:
    """Sweeps over ONNX's own backend tests, with the results that come with them."""
    needs("onnx")
    from tt_torch.sweep import onnx_tests

    items = choose(list(onnx_tests.items()), select, fraction, seed, shard)
    _sweep("onnx", items, Plan(jobs, ray, timeout, memory, output, db, junit_xml, as_json))


@app.command("onnx-models")
def onnx_models(
    select: Select = "",
    jobs: Jobs = 1,
    ray: Ray = "",
    timeout: Timeout = 600.0,
    memory: Memory = 16.0,
    output: Output = Path("results/onnx_models.jsonl"),
    db: Db = "",
    junit_xml: JUnit = None,
    as_json: AsJson = False,
) -> None:
    """Sweeps over the ONNX models in installed packages, and compares and times them with ONNX Runtime."""
    needs("onnx")
    from tt_torch.sweep import onnx_models

    items = choose(list(onnx_models.items()), select, fraction=1.0, seed=0)
    _sweep("onnx-model", items, Plan(jobs, ray, timeout, memory, output, db, junit_xml, as_json))


@app.command()
def docs(
    files: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="records of sweeps")],
    output: Annotated[Path, typer.Option("-o", "--output", help="folder of the pages")] = Path("docs"),
) -> None:
    """Writes ops.md, models.md, onnx_tests.md and onnx_models.md, the pages of what is supported. With records of
    tt-mlir, it writes compilers.md instead, which compares the compilers."""
    from tt_torch.files import write
    from tt_torch.sweep import compilers, onnx_models_page, onnx_page, pages

    records = _records(files)
    if any(record.get("compiler") == "tt-mlir" for record in records):
        write(output / "compilers.md", compilers.page(records).encode())
        print(f"{output / 'compilers.md'}: {len(records)} records")
        return
    written = (
        (("op",), "ops.md", pages.ops_page),
        (("model", "generation"), "models.md", pages.models_page),
        (("onnx",), "onnx_tests.md", onnx_page.page),
        (("onnx-model",), "onnx_models.md", onnx_models_page.page),
    )
    for kinds, name, page in written:
        chosen = [record for record in records if record["kind"] in kinds]
        if chosen:
            write(output / name, page(chosen).encode())
            print(f"{output / name}: {len(chosen)} records")


@app.command()
def summary(
    files: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="records of sweeps")],
    as_json: AsJson = False,
) -> None:
    """Counts the records of sweeps."""
    _show(_records(files), as_json)


def _show(records: Sequence[Record], as_json: bool) -> None:
    from tt_torch.records.summary import as_facts, print_summary

    if as_json:
        print_json(as_facts(records))
    else:
        print_summary(records)


def _records(files: Sequence[Path]) -> list[Record]:
    from tt_torch.records.lines import read

    records = [record for file in files for record in read(file)]
    if not records:
        raise typer.BadParameter("the files have no record of a sweep", param_hint="FILES")
    return records


def choose(items: Sequence[Item], select: str, fraction: float, seed: int, shard: str = "1/1") -> list[Item]:
    """The wanted items. A fraction of 1/n takes one of every n neighbours, so that each family has its share."""
    index, count = _shard(shard)
    try:
        wanted = [item for item in items if re.search(select, item.key)]
    except re.error as error:
        raise typer.BadParameter(f"{select} is no regular expression: {error}", param_hint="-k") from None
    if not wanted:
        raise typer.BadParameter(f"no item's key matches {select}" if select else "there are no items", param_hint="-k")
    if fraction < 1.0:
        size = round(len(wanted) * fraction)
        edges = [len(wanted) * i // size for i in range(size + 1)] if size else []
        generator = random.Random(seed)
        wanted = [wanted[generator.randrange(a, b)] for a, b in itertools.pairwise(edges)]
    return wanted[index - 1 :: count]


def by_compiler(items: Sequence[Item], compilers: Sequence[str]) -> list[Item]:
    """Each item once per compiler, with the compiler as an argument. The keys of tt-mlir's items end with its name."""
    from tt_torch.workers.engine import Item

    refuse_compiler_variable()
    if unknown := set(compilers) - {"tt-torch", "tt-mlir"}:
        raise typer.BadParameter(f"got {unknown.pop()}, expected tt-torch or tt-mlir", param_hint="--compiler")
    return [
        Item(item.key if name == "tt-torch" else f"{item.key} {name}", item.call, {**item.arguments, "compiler": name})
        for item in items
        for name in dict.fromkeys(compilers)
    ]


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match and 1 <= int(match[1]) <= int(match[2]):
        return int(match[1]), int(match[2])
    raise typer.BadParameter(f"{text} is not i/n with 1 <= i <= n", param_hint="--shard")


def _sweep(kind: str, items: Sequence[Item], plan: Plan, source: Record | None = None) -> None:
    """Runs the items that have no record yet and shows all records. `source` has the hash of the user's file.

    The exit status is 1 if a record is not right, or an op took too long to compile.
    """
    from tt_torch.records.lines import Results, provenance, read, stamp
    from tt_torch.records.summary import good, slowness

    results = Results(plan.output)
    origin = {**provenance(), **(source or {})}
    done = results.done(origin)
    todo = [item for item in items if item.key not in done]
    keys = {item.key for item in items}
    if len(todo) < len(items):
        again = f"delete {plan.output}, or name another file with -o, to run them again"
        print(f"{len(items) - len(todo)} of {len(items)} items have a record already; {again}", file=sys.stderr)
    with ExitStack() as stack, one_line_errors():
        sinks = [results.append, *_sinks(kind, plan, stack)]
        for record in read(plan.output):
            for sink in sinks[1:]:
                if record["key"] in done & keys:
                    sink(record)
        for item, outcome in _progress(_outcomes(todo, plan), len(todo)):
            labels = {"kind": kind, "key": item.key, **item.arguments}
            record = {**labels, **outcome, **origin, "time": stamp()}
            for sink in sinks:
                sink(record)
    records = [record for record in read(plan.output) if record["key"] in keys]
    _show(records, plan.as_json)
    print(f"records: {', '.join(map(str, filter(None, [plan.output, plan.db, plan.junit])))}", file=sys.stderr)
    raise typer.Exit(0 if all(map(good, records)) and not any(map(slowness, records)) else 1)


def _sinks(kind: str, plan: Plan, stack: ExitStack) -> Iterator[Callable[[Record], object]]:
    """Functions that write a record to further places besides the output."""
    if plan.db:
        needs("reports")
        from tt_torch.reports.database import Database

        database = Database(plan.db)
        yield lambda record: database.add([record, *_ops_of(record)])
    if plan.junit:
        from tt_torch.records.lines import provenance
        from tt_torch.sweep.junit import JUnitFile

        junit = JUnitFile(plan.junit, f"sweep {kind}s", {"commit": provenance()["commit"]})
        stack.callback(junit.close)
        yield junit.append


def _ops_of(record: Record) -> list[Record]:
    """The records of a model's unique ops, if their file is on this machine."""
    from tt_torch.reports.reading import read

    path = Path(record.get("file", ""))
    return read(path) if path.is_file() else []


def _outcomes(todo: Sequence[Item], plan: Plan) -> Iterator[tuple[Item, Record]]:
    from tt_torch.workers import engine

    limits = engine.Limits(plan.timeout, int(plan.memory * 2**30))
    if not plan.ray:
        return engine.run(todo, plan.jobs, limits)
    needs("ray")
    from tt_torch.workers import cluster

    return cluster.run(todo, plan.ray, limits)


def _progress(outcomes: Iterator[tuple[Item, Record]], total: int) -> Iterator[tuple[Item, Record]]:
    """Yields the outcomes that are results, and shows the progress."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counts: Counter[str] = Counter()
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    said = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=total)
        for done, (item, record) in enumerate(outcomes, 1):
            if record["verdict"] != "absent":
                counts[record["verdict"]] += 1
                yield item, record
            told = " ".join(f"{v} {n}" for v, n in counts.items()) + f" {item.key}"
            progress.update(bar, advance=1, description=told)
            # a log gets lines instead of a bar
            if not progress.console.is_terminal and time.monotonic() - said > _LINE_SECONDS:
                print(f"{done}/{total} {told}", file=sys.stderr, flush=True)
                said = time.monotonic()

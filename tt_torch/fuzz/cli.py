"""The command `tt-torch fuzz`."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import needs
from tt_torch.command_line import AsJson, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from tt_torch.records.lines import Record
    from tt_torch.workers.engine import Item

_SECONDS_BETWEEN_LINES = 10


def fuzz(
    seed: Annotated[int, typer.Option(min=0, help="seed of the first program; the next ones follow")] = 0,
    count: Annotated[int, typer.Option(min=0, help="number of programs; 0: as many as there is time for")] = 0,
    minutes: Annotated[float, typer.Option(min=0, help="time to run; 0: until COUNT programs are done")] = 0.0,
    way: Annotated[
        str,
        typer.Option(
            help="how programs run: compile, bf16, aot (compiled, saved, loaded), cache (from the compile cache), "
            "again (after a call with other values), sizes (after one with other sizes), "
            "trace (`again`, with `enable_trace`), optimizer (compiled with optimization level 2), tt, "
            "mesh (compiled for DTensors on several chips) or mesh-eager"
        ),
    ] = "compile",
    samples: Annotated[
        bool, typer.Option("--samples", help="programs begin with a call from PyTorch's database of ops")
    ] = False,
    views: Annotated[bool, typer.Option("--views", help="programs make views of views, and write to them")] = False,
    length: Annotated[int, typer.Option(min=1, max=50, help="largest number of statements")] = 6,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="number of worker processes")] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="time limit per program, shrinking included, in seconds")] = 300,
    output: Annotated[Path, typer.Option("-o", "--output", help="folder for programs that are wrong")] = Path(
        "fuzz_findings"
    ),
    as_json: AsJson = False,
) -> None:
    """Compares random programs with eager PyTorch; writes each one that differs, made as small as possible."""
    from tt_torch.fuzz.check import NO_FINDING

    _require(way, samples)
    if not count and not minutes:
        raise typer.BadParameter("give a number of programs or of minutes", param_hint="--count, --minutes")
    os.environ["TT_TORCH_CACHE_SIZE"] = "0"  # each program is compiled, and none is met again
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    items = _items(seed, count, end, {"way": way, "length": length, "samples": samples, "views": views})
    verdicts, findings = _compared(items, jobs, timeout, output, sys.stderr if as_json else sys.stdout)
    if as_json:
        print_json({"programs": verdicts.total(), "verdicts": verdicts, "files": findings})
    if verdicts.keys() - set(NO_FINDING):
        raise typer.Exit(1)


def _require(way: str, samples: bool) -> None:
    from tt_torch.fuzz.ways import WAYS

    if way not in WAYS:
        raise typer.BadParameter(f"got {way}, expected {', '.join(WAYS)}", param_hint="--way")
    if samples:
        needs("sweeps")


def _compared(
    items: Iterator[Item], jobs: int, timeout: float, output: Path, out: TextIO
) -> tuple[Counter[str], list[str]]:
    """How many programs had each verdict, and the files of those that differ. `out` gets the number of programs
    every ten seconds."""
    from tt_torch.files import write
    from tt_torch.fuzz.check import NO_FINDING
    from tt_torch.workers.engine import Limits, run

    verdicts, findings, start, told = Counter[str](), list[str](), time.monotonic(), time.monotonic()
    for item, record in run(items, jobs, Limits(seconds=timeout)):
        verdicts[record["verdict"]] += 1
        if record["verdict"] not in NO_FINDING:
            file = output / f"{item.arguments['way']}_{item.arguments['seed']}.py"
            write(file, (record.get("source") or _again(item.arguments, record)).encode())
            findings.append(str(file))
            print(f"{item.key}: {record['verdict']}: {record.get('message', '')}\n  {file}", file=out, flush=True)
        if time.monotonic() - told > _SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            print(_line(verdicts, told - start), file=out, flush=True)
    print(_line(verdicts, time.monotonic() - start), file=out)
    return verdicts, findings


def _again(arguments: Mapping[str, object], record: Record) -> str:
    """A script that repeats a program that ended in an error, in a crash or after the time limit."""
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    message = "".join(f"# {line}\n" for line in f"{record['verdict']}: {record.get('message', '')}".splitlines())
    return f"{message}from tt_torch.fuzz.check import run_seed\n\nprint(run_seed({given}))\n"


def _line(verdicts: Counter[str], seconds: float) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    return f"{verdicts.total()} programs, {seconds:.0f} s: {counts}"


def _items(seed: int, count: int, end: float, options: Mapping[str, object]) -> Iterator[Item]:
    """The programs, as many as begin before `end`."""
    from tt_torch.workers.engine import Item

    seeds = itertools.islice(itertools.count(seed), count or None)
    for each in itertools.takewhile(lambda _: time.monotonic() < end, seeds):
        yield Item(f"{options['way']}/{each}", "tt_torch.fuzz.check:run_seed", {"seed": each, **options})

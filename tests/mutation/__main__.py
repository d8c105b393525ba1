"""`python -m tests.mutation --seed 0 --count 240 --cpp 100`: breaks the package at places drawn at random, one at a
time, and lists the breaks that no test notices. docs/testing.md says how to read the report."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tests.mutation import cpp, drawing, python


def main(
    seed: Annotated[int, typer.Option(help="Draws other places.")] = 0,
    count: Annotated[int, typer.Option(help="Places of the Python package.")] = 240,
    cpp_count: Annotated[int, typer.Option("--cpp", help="Places of the runtime, each of which is built.")] = 100,
    again: Annotated[Path | None, typer.Option(help="Places that this log does not call noticed.")] = None,
    jobs: Annotated[int, typer.Option(help="Places of the Python package at a time.")] = 2,
    seconds: Annotated[float, typer.Option(help="Tests of a place, by the time that they took when recorded.")] = 60.0,
    limit: Annotated[float, typer.Option(help="Seconds of processor time for the tests of a place.")] = 300.0,
    log: Annotated[Path | None, typer.Option(help="Appends each verdict to this file, as a line of JSON.")] = None,
    record: Annotated[list[str] | None, typer.Option(help="Records which lines these tests run, at first.")] = None,
) -> None:
    if record or (count and not python.MAP.exists()):
        python.record(record or ["tests"])
    if again:
        places, built = drawing.left(again, drawing.every_place()), drawing.left(again, cpp.every_place())
    else:
        places, built = drawing.draw(count, seed), cpp.draw(seed)
    outcomes = dict[str, Counter[str]]()
    with tempfile.TemporaryDirectory() as folder:
        verdicts = itertools.chain(
            python.judged(places, Path(folder), jobs, seconds, limit),
            cpp.judged(built, cpp_count, Path(folder) / "built", limit),
        )
        for place, verdict in verdicts:
            if log:
                with log.open("a") as file:
                    file.write(json.dumps(asdict(place) | verdict) + "\n")
            kind = f"{Path(place.path).suffix[1:]} {place.kind}"
            outcomes.setdefault(kind, Counter())[verdict["outcome"]] += 1
            if verdict["outcome"] != "noticed":
                print(f"{verdict['outcome']} ({verdict['tests']} tests): {place}", flush=True)
    for kind, numbers in sorted(outcomes.items()):
        print(f"{kind:16} {numbers['noticed']:4} of {numbers.total():4} noticed")
    total = sum(outcomes.values(), Counter[str]())
    print(f"{total['survives']} of {total.total()} survive, {total['unjudged']} are unjudged")


if __name__ == "__main__":
    typer.run(main)

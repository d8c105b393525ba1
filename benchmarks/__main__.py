"""`python -m benchmarks [NAME ...]`: what we measure, each against its peer in the same run."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

NAMES = ("quality", "compile", "binary", "speed", "overhead", "eager", "memory", "legality", "linalg", "bringup")


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {', '.join(NAMES)}; all when none is given.")
    ] = None,
    threads: Annotated[int, typer.Option(help="torch.set_num_threads, the same for every side.")] = 2,
) -> None:
    """Runs benchmarks and prints a table for each. Figures mean something on a quiet machine only."""
    for name in names or NAMES:
        if name not in NAMES:
            raise typer.BadParameter(f"{name} is none of {', '.join(NAMES)}")
        importlib.import_module(f"benchmarks.{name}").run(threads)


if __name__ == "__main__":
    typer.run(main)

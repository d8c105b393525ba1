"""`python -m benchmarks [NAME ...]` runs benchmarks. Each measures a peer, such as inductor, in the same run."""

from __future__ import annotations

import importlib
import os
from typing import Annotated

import typer

NAMES = (
    "quality",
    "precision",
    "optimizer",
    "chips",
    "compile",
    "cache",
    "binary",
    "speed",
    "overhead",
    "stages",
    "mesh",
    "eager",
    "memory",
    "legality",
    "linalg",
    "weights",
    "bringup",
    "package",
    "generate",
    "decode_cost",
    "mesh_memory",
    "serving",
)


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {', '.join(NAMES)}. Without a name, all run.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of PyTorch and of the emulated device.")] = 2,
) -> None:
    """Runs benchmarks and prints a table for each. The figures are meaningful only on a machine that is not busy."""
    os.environ["TT_TORCH_CACHE_SIZE"] = "0"  # `cache` turns it on; all others compile
    for name in names or NAMES:
        if name not in NAMES:
            raise typer.BadParameter(f"there is no benchmark {name}; there are {', '.join(NAMES)}")
        importlib.import_module(f"benchmarks.{name}").run(threads)


if __name__ == "__main__":
    typer.run(main)

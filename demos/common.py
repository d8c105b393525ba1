"""Functions that the demos share: options, one-line errors, steps with their time, and compiling with a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

import tt_torch
from tt_torch.errors import ConfigError, ExtraMissingError
from tt_torch.extras import require
from tt_torch.files import write_by
from tt_torch.mlir.pipeline import LEVELS


def needs(extra: str) -> None:
    """Ends the program with one line and status 2 if a package of the extra is not installed."""
    try:
        require(extra)
    except ExtraMissingError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


needs("demos")

# Without a terminal, rich would wrap lines at 80 columns, which is too narrow for a log.
console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


class Dtype(StrEnum):
    """The values of --dtype."""

    bf16 = "bf16"
    f32 = "f32"


DtypeOption = Annotated[
    Dtype | None, typer.Option("--dtype", help="compute type on the device; by default the model's own")
]
SaveOption = Annotated[
    Path | None, typer.Option("--save", dir_okay=False, metavar="FILE.ttnn", help="write the compiled binary")
]


def check_folder(path: Path | None) -> Path | None:
    if path and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.absolute().parent}")
    return path


OutOption = Annotated[
    Path | None,
    typer.Option("-o", "--out", dir_okay=False, metavar="FILE.png", callback=check_folder, help="the picture to write"),
]


def run(command: Callable[..., Any]) -> None:
    """Runs a demo as a command line program. Bad input gives one line and status 2, a failed check status 1."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(command)
    try:
        sys.exit(app(standalone_mode=False))
    except (typer.TyperException, ConfigError) as error:
        message = str(error) if isinstance(error, ConfigError) else error.format_message()
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Shows a spinner while the body runs, and then one line with its time."""
    start = time.perf_counter()
    with console.status(f"{title} ..."):
        yield
    console.print(f"{title}: {short_time(time.perf_counter() - start)}")


def compile_for_device(
    model: Any, inputs: Sequence[torch.Tensor], dtype: Dtype | None, save: Path | None
) -> tuple[tt_torch.CompiledModel, dict[str, str]]:
    """Returns the model compiled for the shapes of `inputs`, and facts about the compilation, which a demo prints."""
    config = tt_torch.CompilerConfig(dtype=dtype.value if dtype else None).with_env()
    start = time.perf_counter()
    with console.status("Compiling for the device ..."):
        compiled = tt_torch.compile_model(model, inputs, config)
    total = time.perf_counter() - start
    facts = {
        "compute type": config.dtype or "the model's own",
        "compile time": short_time(total),
        "of which": _stages(compiled.executor.compiled.timings.steps, total),
        "binary": f"{len(compiled.binary) / 1e3:.0f} kB" + (f", saved to {save}" if save else ""),
    }
    if save:
        compiled.save(save)
    return compiled, facts


def _stages(steps: Mapping[str, float], total: float) -> str:
    """The time per stage. The time that is not spent in our own steps is for PyTorch's capture and the first run."""
    level_of = {name: level for level, level_steps in LEVELS.items() for name, _ in level_steps}
    stages = {"capture and first run": total - sum(steps.values())}
    for name, seconds in steps.items():
        stage = level_of.get(name, "FX" if name != "flatbuffer" else name)
        stages[stage] = stages.get(stage, 0.0) + seconds
    return ", ".join(f"{stage} {short_time(seconds)}" for stage, seconds in stages.items())


def short_time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def time_per_call(functions: Sequence[Callable[..., Any]], *args: Any, repeats: int = 3) -> list[float]:
    """Median seconds per call of each function. They take turns, so that a busy machine slows down all of them."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, measured in zip(functions, times, strict=True):
            start = time.perf_counter()
            function(*args)
            measured.append(time.perf_counter() - start)
    return [median(measured) for measured in times]


def installed(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = find_spec(package)
    assert spec and spec.origin, f"{package} is a package of the extra `demos`"
    return Path(spec.origin).parent


def save_curves(path: Path, curves: dict[str, tuple[Sequence[float], Sequence[float]]], **axes: str) -> None:
    """Plots lines by name, from x and y, as a PNG. The second one is dashed. `axes` are the title and the labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), dpi=100, layout="constrained")
    plot = figure.subplots()
    for (name, (x, y)), style in zip(curves.items(), ("-", "--"), strict=True):
        plot.plot(x, y, style, label=name)
    plot.set(**axes)
    plot.grid(alpha=0.3)
    plot.legend()
    save_figure(figure, path)


def save_figure(figure: Any, path: Path) -> None:
    """Writes a figure of matplotlib as a PNG. An existing file is replaced only by a complete new one."""
    write_by(path, lambda unfinished: figure.savefig(unfinished, format="png"))


def print_facts(facts: Mapping[str, str]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        console.print(f"{name:{width}}  {value}", markup=False, soft_wrap=True)


def conclude(checks: Mapping[str, bool]) -> None:
    """Prints the result of each check. If one failed, the program ends with status 1."""
    for text, passed in checks.items():
        console.print(f"[green]ok[/]      {text}" if passed else f"[red]FAILED[/]  {text}")
    if not all(checks.values()):
        raise typer.Exit(1)

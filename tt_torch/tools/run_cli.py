"""`tt-torch run` runs a compiled file on given or random inputs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, print_json

if TYPE_CHECKING:
    from tt_torch.tools.running import Comparison, Loaded, Tensors, Times

Compiled = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a .ttnn binary or a .ttpkg package")]
Inputs = Annotated[
    list[Path] | None,
    typer.Option("-i", "--inputs", exists=True, dir_okay=False, help=".npz or .safetensors; may be repeated"),
]
Saved = Annotated[Path | None, typer.Option("-o", "--output", help="save the outputs as .npz or .safetensors")]
Golden = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="saved outputs to compare with; status 1 if they differ"),
]
Tolerance = Annotated[
    float,
    typer.Option(min=0, help="largest difference from --golden, relative to its largest magnitude; integers are exact"),
]


def run(
    file: Compiled,
    inputs: Inputs = None,
    output: Saved = None,
    golden: Golden = None,
    pcc: Annotated[float, typer.Option(min=-1, max=1, help="lowest correlation with --golden")] = 0.99,
    tolerance: Tolerance = 0.01,
    repeat: Annotated[int, typer.Option(min=0, help="number of further calls, for a median of the time")] = 0,
    seed: Annotated[int, typer.Option(help="seed of random inputs, if there are no --inputs")] = 0,
    allow_host_code: Annotated[bool, typer.Option(help="run machine code in the file, if you trust it")] = False,
    as_json: AsJson = False,
) -> None:
    """Runs a file on inputs by name, or on random ones; shows the outputs and the time.

    `tt-torch inspect FILE` shows the names of inputs and outputs. Arrays that `numpy.savez` names arr_0, arr_1, ... are
    taken in order. A .ttnn binary takes its weights as inputs, too; a package has them.
    """
    from tt_torch.tools import running, tensor_files

    for option, path in (*(("--inputs", path) for path in inputs or ()), ("--output", output), ("--golden", golden)):
        if path:
            tensor_files.check_suffix(path, option)
    with one_line_errors(file):
        model = running.loaded(file, _device(allow_host_code))
        given = _read(model, inputs) if inputs else running.drawn(model.inputs, seed)
        outputs, times = running.timed(model, given, repeat)
        if output:
            tensor_files.write(output, outputs)
        compared = running.compare(outputs, tensor_files.read(golden), str(golden), pcc, tolerance) if golden else []
    if as_json:
        print_json(_facts(outputs, times, compared))
    else:
        _show(outputs, times, compared)
        if output:
            print(output)
    if wrong := [each.name for each in compared if not each.ok]:
        print(f"error: {file} differs from {golden} in {', '.join(wrong)}", file=sys.stderr)
        raise typer.Exit(1)


def _device(allow_host_code: bool):  # type: ignore[no-untyped-def]
    from tt_torch.runtime import Device

    return Device(allow_host_code=True) if allow_host_code else None


def _read(model: Loaded, files: list[Path]) -> Tensors:
    from tt_torch.tools import tensor_files

    found: Tensors = {}
    for path in files:
        found |= tensor_files.read(path)
    given = tensor_files.by_name(list(model.inputs), found, ", ".join(map(str, files)))
    return {name: x.to(model.inputs[name].device) for name, x in given.items()}


def _facts(outputs: Tensors, times: Times, compared: list[Comparison]) -> dict[str, object]:
    shown = {name: {"dtype": _dtype(x), "shape": list(x.shape)} for name, x in outputs.items()}
    return {"outputs": shown, "milliseconds": asdict(times), "golden": [asdict(each) for each in compared]}


def _show(outputs: Tensors, times: Times, compared: list[Comparison]) -> None:
    for name, x in outputs.items():
        print(f"{name}: {_dtype(x)} {tuple(x.shape)}")
    print(times)
    print(*compared, sep="\n", end="\n" if compared else "")


def _dtype(x: object) -> str:
    return str(x.dtype).removeprefix("torch.")  # type: ignore[attr-defined]

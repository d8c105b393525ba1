"""`tt-torch compile` compiles a model to a package or a binary."""

from __future__ import annotations

import re
import sys
import time
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, print_json
from tt_torch.files import STABLEHLO_SUFFIXES
from tt_torch.tools.explain_cli import FORM, TARGET

if TYPE_CHECKING:
    from tt_torch.driver.compiled import CompiledModel
    from tt_torch.driver.package.loading import LoadedModel

FILES = f"a StableHLO file ({', '.join(STABLEHLO_SUFFIXES)}), an .onnx file, or a .pt2 file of torch.export"
Source = Annotated[str, typer.Argument(metavar="MODEL", help=f"{TARGET}: a function that returns {FORM}; or {FILES}")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="a .ttpkg package or a .ttnn binary; default: the model's name with .ttpkg"),
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", metavar="NAME=SIZE,SIZE,...", help="the shape of an input of an ONNX model; may be repeated"
    ),
]


def compile_(source: Source, output: Output = None, shape: Shape = None, as_json: AsJson = False) -> None:
    """Compiles a model to a package, which has its weights, or to a binary, which takes them as inputs.

    The weights of a .ttnn binary from a file go into a .safetensors file beside it, by the names that `tt-torch run`
    takes. Options of the compiler are environment variables, such as TT_TORCH_DTYPE=bf16.
    """
    suffix, shapes = Path(source).suffix, dict(map(_shape, shape or ()))
    if shapes and suffix != ".onnx":
        raise typer.BadParameter("only ONNX models have open dimensions", param_hint="--shape")
    is_file = suffix in (*STABLEHLO_SUFFIXES, ".onnx", ".pt2")
    target = output or Path((Path(source).stem if is_file else source.rpartition(":")[2]) + ".ttpkg")
    if target.suffix not in (".ttpkg", ".ttnn"):
        raise typer.BadParameter(f"{target} does not end in .ttpkg or .ttnn", param_hint="--output")
    if is_file and not Path(source).is_file():
        raise typer.BadParameter(f"there is no file {source!r}", param_hint="MODEL")
    with one_line_errors(), redirect_stdout(sys.stderr) if as_json else nullcontext():
        from tt_torch.tools.models import model_in

        begin = time.perf_counter()
        model = model_in(source, shapes).compiled()
        model.save(target)
        written = [target, *_weights_beside(model, target)]
        seconds = time.perf_counter() - begin
    with one_line_errors():
        _show(written, seconds, as_json)


def _shape(text: str) -> tuple[str, list[int]]:
    """The name and the shape of an input. Raises BadParameter for a text of another form."""
    found = re.fullmatch(r"(.+)=((?:\d+(?:,\d+)*)?)", text, re.ASCII | re.DOTALL)
    if not found:
        raise typer.BadParameter(f"{text!r} is no NAME=SIZE,SIZE,...", param_hint="--shape")
    return found[1], [int(size) for size in found[2].split(",") if size]


def _weights_beside(model: CompiledModel | LoadedModel, target: Path) -> list[Path]:
    """Writes the weights of a model from a file beside its binary. A model of PyTorch has a checkpoint of its own."""
    from tt_torch.driver.package.loading import LoadedModel
    from tt_torch.tools import tensor_files

    if target.suffix == ".ttpkg" or not isinstance(model, LoadedModel) or not model.weights:
        return []
    first = len(model.tensor_forms)
    beside = target.with_suffix(".safetensors")
    tensor_files.write(beside, {f"input {first + i}": x for i, x in enumerate(model.weights.values())})
    return [beside]


def _show(written: list[Path], seconds: float, as_json: bool) -> None:
    """Prints the files, and what the programs of the first file cost.

    If there are several programs, it is not known how often the host runs each of them.
    """
    from tt_torch.driver.package.contents import binaries
    from tt_torch.wire.calls import cost
    from tt_torch.wire.decode import decode

    spent = [cost(decode(binary)) for binary in binaries(written[0]).values()]
    ops, moved = sum(each.device_ops for each in spent), sum(each.bytes_moved for each in spent)
    if as_json:
        files = {str(path): path.stat().st_size for path in written}
        facts = {"programs": len(spent), "device_ops": ops, "bytes_moved": moved, "seconds": seconds}
        return print_json({"files": files, **facts})
    for path in written:
        print(f"{path}: {path.stat().st_size:,} bytes")
    per = "call" if len(spent) == 1 else f"run of each of the {len(spent)} programs"
    print(f"{ops} device ops per {per}, {moved:,} bytes moved; compiled in {seconds:.1f} s")

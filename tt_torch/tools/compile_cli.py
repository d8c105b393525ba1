"""`tt-torch compile`: a model becomes a package or a binary."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, print_json
from tt_torch.tools.explain_cli import FORM, TARGET, model_of

Source = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help=f"{TARGET}: a function that returns {FORM}; or a StableHLO .mlir or an .onnx file"
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="a .ttpkg package or a .ttnn binary; default: the model's name"),
]
FROM_FILE = (".mlir", ".mlirbc", ".onnx")  # models without weights of their own, or in another form: no packages


def compile_(source: Source, output: Output = None, as_json: AsJson = False) -> None:
    """Compiles a model to a package, which has its weights, or to a binary, which takes them as inputs.

    A .mlir or .onnx file becomes a binary. The weights of an .onnx file go into a .safetensors file beside it, by the
    names that `tt-torch run` takes. Options of the compiler are environment variables, such as TT_TORCH_DTYPE=bf16.
    """
    suffix = Path(source).suffix
    kinds = (".ttnn",) if suffix in FROM_FILE else (".ttpkg", ".ttnn")
    name = Path(source).stem if suffix in FROM_FILE else source.rpartition(":")[2]
    target = output or Path(f"{name}{kinds[0]}")
    if target.suffix not in kinds:
        raise typer.BadParameter(f"{target} does not end in {' or '.join(kinds)}", param_hint="--output")
    if suffix in FROM_FILE and not Path(source).is_file():
        raise typer.BadParameter(f"there is no file {source!r}", param_hint="MODEL")
    with one_line_errors(), redirect_stdout(sys.stderr) if as_json else nullcontext():
        begin = time.perf_counter()
        if suffix == ".onnx":
            binary, written = _onnx(Path(source), target)
        elif suffix in FROM_FILE:
            binary, written = _stablehlo(Path(source), target)
        else:
            binary, written = _pytorch(source, target)
        seconds = time.perf_counter() - begin
    _show(binary, written, seconds, as_json)


def _pytorch(source: str, target: Path) -> tuple[bytes, list[Path]]:
    """The main program of a model, and the files that were written."""
    model, args, kwargs = model_of(source)
    import tt_torch

    compiled = tt_torch.compile_model(model, args, kwargs=kwargs)
    compiled.save(target)
    return compiled.binary, [target]


def _stablehlo(source: Path, target: Path) -> tuple[bytes, list[Path]]:
    from torch_mlir import ir

    from tt_torch.config import CompilerConfig
    from tt_torch.driver.compile import compile_stablehlo
    from tt_torch.errors import CompileError
    from tt_torch.files import write
    from tt_torch.mlir.context import make_context, parse
    from tt_torch.tools.opt_cli import read

    try:
        module = parse(read(str(source)), make_context())
    except (ir.MLIRError, UnicodeDecodeError) as error:
        raise CompileError(f"{source} is no MLIR module: {error}") from None
    binary = compile_stablehlo(module, CompilerConfig.from_env())
    write(target, binary)
    return binary, [target]


def _onnx(source: Path, target: Path) -> tuple[bytes, list[Path]]:
    from tt_torch.config import CompilerConfig
    from tt_torch.driver.compile import compile_stablehlo
    from tt_torch.files import write
    from tt_torch.mlir.functions import main
    from tt_torch.mlir.onnx import onnx_to_stablehlo, read_onnx
    from tt_torch.tools import tensor_files

    config = CompilerConfig.from_env()
    module, weights = onnx_to_stablehlo(read_onnx(source), config)
    first = len(main(module).arguments) - len(weights)
    binary = compile_stablehlo(module, config)
    write(target, binary)
    if not weights:
        return binary, [target]
    beside = target.with_suffix(".safetensors")
    tensor_files.write(beside, {f"input {first + i}": x for i, x in enumerate(weights)})
    return binary, [target, beside]


def _show(binary: bytes, written: list[Path], seconds: float, as_json: bool) -> None:
    from tt_torch.wire.calls import cost
    from tt_torch.wire.decode import decode

    spent = cost(decode(binary))
    if as_json:
        files = {str(path): path.stat().st_size for path in written}
        facts = {"device_ops": spent.device_ops, "bytes_moved": spent.bytes_moved, "seconds": seconds}
        return print_json({"files": files, **facts})
    for path in written:
        print(f"{path}: {path.stat().st_size:,} bytes")
    print(f"{spent.device_ops} device ops per call, {spent.bytes_moved:,} bytes moved; compiled in {seconds:.1f} s")

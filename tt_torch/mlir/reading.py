"""Reads StableHLO modules: text, bytecode, portable artifacts, files, and modules of any MLIR package for Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

from tt_torch.errors import ModuleFormatError
from tt_torch.mlir.context import make_context, parse
from tt_torch.mlir.stablehlo.flatten import name_entry
from tt_torch.mlir.stablehlo.shardy import plain_text, remove_annotations

Source: TypeAlias = Any  # str, bytes, Path, or a module: an object with an `operation` that can print itself
SUFFIXES = (".mlir", ".mlirbc", ".stablehlo", ".vhlo")  # a text that ends so, and is one line, is the name of a file
BYTECODE = b"ML\xefR"  # the first bytes of MLIR bytecode; its version follows in one byte, and then its producer
_ARTIFACTS = "; stderr has the cause; an artifact must not be of a newer StableHLO, nor have ops of the dialect sdy"
ARTIFACT = b"StableHLO_v"  # the producer of portable artifacts, which are bytecode of the dialect VHLO


def read_stablehlo(source: Source) -> ir.Module:
    """A new module, whose program is the function `main`.

    `source` is StableHLO as text; bytecode or a portable artifact as bytes; the path of a file with any of these; or a
    module, also one of another MLIR package, such as that of JAX. A text in one line that ends in one of SUFFIXES is a
    path. Raises ModuleFormatError for anything else, UnsupportedOpError for a module without a program, and OSError.
    """
    if isinstance(source, str) and source.endswith(SUFFIXES) and "\n" not in source:
        source = Path(source)
    if isinstance(source, Path):
        source = source.read_bytes()
    if hasattr(source, "operation"):
        # The generic form of ops can be read without their dialect.
        source = source.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    if not isinstance(source, (str, bytes, bytearray)):
        raise ModuleFormatError(f"a {type(source).__name__} is neither text, nor bytes, nor a path, nor a module")
    module = _parsed(bytes(source) if isinstance(source, bytearray) else source)
    remove_annotations(module)
    name_entry(module)
    return module


def _parsed(source: str | bytes) -> ir.Module:
    context = make_context()
    context.allow_unregistered_dialects = True  # torch-mlir lacks Shardy's
    artifact = isinstance(source, bytes) and source[len(BYTECODE) + 1 :].startswith(ARTIFACT)
    try:
        if isinstance(source, bytes) and artifact:
            return _stablehlo.deserialize_portable_artifact(context, source)
        if isinstance(source, bytes) and source.startswith(BYTECODE):
            return parse(source, context)
        return parse(plain_text(source if isinstance(source, str) else source.decode()), context)
    except ModuleFormatError:
        raise
    except (ir.MLIRError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        raise ModuleFormatError(f"{error}{_ARTIFACTS if artifact else ''}") from None

"""Reads StableHLO modules: text, bytecode, portable artifacts, files, and modules of any MLIR package for Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from torch_mlir import ir

from tt_torch.errors import ModuleFormatError
from tt_torch.files import STABLEHLO_SUFFIXES
from tt_torch.mlir.child import NativeCrash
from tt_torch.mlir.context import BYTECODE, is_artifact, make_context, parse
from tt_torch.mlir.guard import read_guarded
from tt_torch.mlir.stablehlo.flatten import name_entry
from tt_torch.mlir.stablehlo.shardy import plain_text, remove_annotations

Source: TypeAlias = Any  # str, bytes, Path, or a module: an object with an `operation` that can print itself
_ARTIFACTS = "; stderr has the cause; an artifact must not be of a newer StableHLO, nor have ops of the dialect sdy"


def read_stablehlo(source: Source) -> ir.Module:
    """A new module, whose program is the function `main`.

    `source` is StableHLO as text; bytecode or a portable artifact as bytes; the path of a file with any of these; or a
    module, also one of another MLIR package, such as that of JAX. A text in one line that ends in one of
    STABLEHLO_SUFFIXES is a path. Raises ModuleFormatError for anything else, UnsupportedOpError for a module without a
    program, and OSError.
    """
    if isinstance(source, str) and source.endswith(STABLEHLO_SUFFIXES) and "\n" not in source:
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
    binary = source if isinstance(source, bytes) and source.startswith(BYTECODE) else b""
    try:
        if binary:
            return parse(read_guarded(binary), context)
        return parse(plain_text(source if isinstance(source, str) else source.decode()), context)
    except ModuleFormatError:
        raise
    except (ir.MLIRError, NativeCrash, ValueError) as error:  # UnicodeDecodeError is a ValueError
        cause = f"the process that read it ended: {error}" if isinstance(error, NativeCrash) else str(error)
        raise ModuleFormatError(f"{cause}{_ARTIFACTS if is_artifact(binary) else ''}") from None

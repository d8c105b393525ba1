"""Reads StableHLO modules: text, bytecode, portable artifacts, files, and modules of any MLIR package for Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeAlias

from torch_mlir import ir

from tt_torch.errors import ModuleFormatError
from tt_torch.files import MLIR_BYTECODE, STABLEHLO_SUFFIXES, is_artifact
from tt_torch.mlir.child import NativeCrash
from tt_torch.mlir.context import make_context, parse
from tt_torch.mlir.guard import read_guarded
from tt_torch.mlir.stablehlo.flatten import name_entry
from tt_torch.mlir.stablehlo.gspmd import ATTRIBUTE
from tt_torch.mlir.stablehlo.manual import inline_manual_computations, is_in_usual_form, with_calls_apart
from tt_torch.mlir.stablehlo.shard_shapes import enter_and_leave_parts
from tt_torch.mlir.stablehlo.shardy import plain_text, remove_annotations
from tt_torch.mlir.stablehlo.shardy_passes import in_generic_form, note_shardings, program_of_one_chip, splits_values

Source: TypeAlias = Any  # str, bytes, Path, or a module: an object with an `operation` that can print itself
_ARTIFACTS = "; stderr has the cause; an artifact must not be of a newer StableHLO"
_SHARDY = re.compile(rb"(?<![\w.])sdy\0")  # the name of the dialect among the strings of bytecode


def read_stablehlo(source: Source) -> ir.Module:
    """A new module, whose program is the function `main`.

    `source` is StableHLO as text, bytecode or a portable artifact as bytes, the path of a file with any of these, or a
    module. The module may come from another MLIR package, such as JAX's. A text in one line that ends in one of
    STABLEHLO_SUFFIXES is a path. Raises ModuleFormatError for anything else, UnsupportedOpError for a module without a
    program, and OSError.
    """
    if isinstance(source, str) and source.endswith(STABLEHLO_SUFFIXES) and "\n" not in source:
        source = Path(source)
    if isinstance(source, Path):
        source = source.read_bytes()
    if hasattr(source, "operation"):
        source = _generic(source)
    if not isinstance(source, (str, bytes, bytearray)):
        raise ModuleFormatError(f"a {type(source).__name__} is neither text, nor bytes, nor a path, nor a module")
    module = _parsed(bytes(source) if isinstance(source, bytearray) else source)
    inline_manual_computations(module)
    enter_and_leave_parts(module)
    remove_annotations(module)
    name_entry(module)
    return module


def _generic(module: Any) -> str:
    """The generic form of ops, which can be read without their dialect."""
    text: str = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    return text


def read_module(source: str | bytes, context: ir.Context) -> ir.Module:
    """The module in a user's text, bytecode or portable artifact. Another process reads bytes first, because damaged
    bytes may end the process that reads them. Raises MLIRError for a text that cannot be read, and ModuleFormatError
    for such bytes and for a text that would end this process."""
    if not isinstance(source, bytes):
        return parse(source, context)
    hint = _ARTIFACTS if is_artifact(source) else ""
    try:
        return parse(read_guarded(source), context)
    except NativeCrash as crash:
        raise ModuleFormatError(f"the process that read it ended: {crash}{hint}") from None
    except (ir.MLIRError, ValueError) as error:
        raise error if isinstance(error, ModuleFormatError) else ModuleFormatError(f"{error}{hint}") from None


def _parsed(source: str | bytes) -> ir.Module:
    context = make_context()
    context.allow_unregistered_dialects = True  # torch-mlir lacks Shardy's
    if isinstance(source, bytes) and source.startswith(MLIR_BYTECODE):
        if _SHARDY.search(source):
            return _parsed(in_generic_form(source))
        module = read_module(source, context)
        split = ATTRIBUTE.encode() in source and splits_values(text := _generic(module))
        return _parsed(text) if split else module
    try:
        text = source if isinstance(source, str) else source.decode("utf-8-sig")  # Windows' files have a mark
        if not splits_values(text):
            text = in_generic_form(text) if is_in_usual_form(text) else text
            return read_module(with_calls_apart(plain_text(text)), context)
        module = read_module(program_of_one_chip(text), context)
        note_shardings(module)
        return module
    except (ir.MLIRError, UnicodeDecodeError) as error:
        raise ModuleFormatError(str(error)) from None

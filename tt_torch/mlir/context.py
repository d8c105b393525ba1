"""The entry to torch_mlir: it makes contexts with our dialects, parses modules, reads locations and runs passes."""

from __future__ import annotations

import re
import sys
import threading
import types
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import TypeVar

from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.passmanager import PassManager

from tt_torch import user_code
from tt_torch.errors import ModuleFormatError, UnsupportedOpError
from tt_torch.files import is_artifact
from tt_torch.mlir.ttir.dialect import TTIR
from tt_torch.mlir.ttnn.dialect import TTNN
from tt_torch.mlir.types import Op
from tt_torch.wire import locations

_stablehlo.register_stablehlo_passes()

# The binding imports the Python module of an op's dialect each time it makes an object for an op. The wheel has no
# module for these dialects. Each failing import searches the file system, which makes compiling ten times slower.
for _dialect in ("chlo", "stablehlo", "ttir", "ttnn"):
    sys.modules.setdefault(f"torch_mlir.dialects.{_dialect}", types.ModuleType(_dialect))


def make_context() -> ir.Context:
    """A context with the torch, StableHLO, TTIR and TTNN dialects. Diagnostics become exceptions."""
    context = ir.Context()
    context.emit_error_diagnostics = False
    context.enable_multithreading(False)  # `guard` forks this process, and threads do not survive a fork
    torch_dialect.register_dialect(context)
    _stablehlo.register_dialect(context, True)
    with context:
        TTIR.load()
        TTNN.load()
        # The wheel has no function that loads CHLO. A pass that can produce its ops loads it, even if it changes
        # nothing.
        run_native(ir.Module.parse("module {}"), "func.func(convert-torch-to-stablehlo)")
    return context


_MOST_COMPILES = 16  # in one context


class _Kept(threading.local):
    context: ir.Context | None = None
    compiles = 0


_KEPT = _Kept()


def context_to_compile() -> ir.Context:
    """A context as `make_context` makes it, for one compile. Making a context takes 20 ms, a tenth of a small compile,
    so a thread compiles several programs in one context. Types, attributes and locations stay in memory until their
    context is freed, so after some programs a new context is made."""
    if _KEPT.context is None or _KEPT.compiles == _MOST_COMPILES:
        _KEPT.context, _KEPT.compiles = make_context(), 0
    _KEPT.compiles += 1
    return _KEPT.context


MOST_SHOWN = 200  # characters of a string in a message
MOST_NESTED = 256  # levels of brackets in a text and of ops in a module: MLIR and our code recurse into each level
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|.)")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|->|[<>]=|[<({\[]|[>)}\]]')


def parse(source: str | bytes, context: ir.Context) -> ir.Module:
    """The module in a text or in bytecode. Raises MLIRError if MLIR cannot read it. Raises ModuleFormatError for what
    would end this process: ops that are nested too deeply for its stack, and strings that are not UTF-8."""
    if isinstance(source, str):
        require_harmless(source)
    module = ir.Module.parse(source, context)
    level = [module.operation]
    for _ in range(MOST_NESTED):
        level = [
            inner.operation for op in level for region in op.regions for block in region for inner in block.operations
        ]
    if level:
        raise ModuleFormatError(f"it has more than {MOST_NESTED} ops inside one another")
    return module


def parse_bytecode(source: bytes, context: ir.Context) -> ir.Module:
    """The module in bytecode or in a portable artifact. Raises MLIRError and ValueError. Damaged bytes may end the
    process, so `guard.read_guarded` reads the bytes of a user first."""
    if is_artifact(source):
        return _stablehlo.deserialize_portable_artifact(context, source)
    return ir.Module.parse(source, context)


def require_harmless(text: str) -> None:
    """Raises ModuleFormatError for a text with too deeply nested brackets, or with a string that is not UTF-8."""
    depth = 0
    for token in map(itemgetter(0), _TOKENS.finditer(text)):
        if token.startswith('"'):
            _require_utf8(token)
        else:
            depth += (token in "<({[") - (token in ">)}]")
        if depth > MOST_NESTED:
            raise ModuleFormatError(f"it has more than {MOST_NESTED} brackets inside one another")


def _require_utf8(string: str) -> None:
    """Raises ModuleFormatError for a string with bytes that are not UTF-8. MLIR writes them as `\\FF`. The binding
    aborts the process when it makes a Python string of them."""
    if "\\" in string:
        try:
            _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()) if match[1] else b"", string.encode()).decode()
        except UnicodeDecodeError:
            raise ModuleFormatError(f"its string {string[:MOST_SHOWN]} is not UTF-8") from None


def run_native(module: ir.Module, *passes: str) -> None:
    """Runs passes of MLIR or torch-mlir, for example `run_native(module, "canonicalize", "cse")`."""
    with module.context:
        PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)


Frame = TypeVar("Frame")


def describe(location: ir.Location | str) -> str:
    """The user's source line of a location or of its text, as `file.py:12`; the text if it names no file."""
    text = str(location)
    frame = _users(locations.lines(text), itemgetter(0))
    return ":".join(map(str, frame)) if frame else text


def brief(location: ir.Location) -> ir.Location:
    """The location with one frame in place of each chain of calls: the user's frame, or the innermost frame if no frame
    is the user's."""
    match location:
        case ir.NameLoc():
            return ir.Location.name(location.name_str, brief(location.child_loc), location.context)
        case ir.FusedLoc():
            return ir.Location.fused([brief(part) for part in location.locations], context=location.context)
        case ir.CallSiteLoc():
            frames = _frames(location)
            return _users(frames, attrgetter("filename")) or next(iter(frames), location)
    return location


def _frames(location: ir.Location) -> list[ir.FileLineColLoc]:
    """The files and lines of a chain of calls, from the innermost out."""
    match location:
        case ir.CallSiteLoc():
            return _frames(location.callee) + _frames(location.caller)
        case ir.NameLoc():
            return _frames(location.child_loc)
        case ir.FileLineColLoc():
            return [location]
    return []


def _users(frames: Sequence[Frame], path: Callable[[Frame], str]) -> Frame | None:
    """The user's frame in a chain of calls, which begins with the innermost one. See `user_code.innermost`."""
    outermost_first = frames[::-1]
    position = user_code.innermost([path(frame) for frame in outermost_first])
    return None if position is None else outermost_first[position]


def node_of(location: ir.Location) -> tuple[str, str]:
    """Name and target of the FX node of a location; ("", "") if the location names no node."""
    name, target = locations.only_node(str(location))
    return (name, target) if target else ("", "")


def unsupported(op: Op, stage: str, accepted: str = "") -> UnsupportedOpError:
    """The error of an op for which a stage has no rule. It names the ATen op if the location has its name. `accepted`
    says which forms have a rule."""
    name, target = node_of(op.location)
    signature = str(op).split(" loc(")[0].strip().splitlines()[0][:200]
    detail = f"node {name} needs {signature}" if name else signature
    detail = f"{detail}\n  expected {accepted}" if accepted else detail
    return UnsupportedOpError(target or op.operation.name, stage, describe(op.location), detail)

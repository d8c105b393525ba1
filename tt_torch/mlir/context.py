"""The one door to torch_mlir: contexts with our dialects, locations, native pass pipelines."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.passmanager import PassManager

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.ttir.dialect import TTIR
from tt_torch.mlir.ttnn.dialect import TTNN
from tt_torch.wire import locations

_stablehlo.register_stablehlo_passes()

# For each op object that it makes, the binding imports the Python module of the op's dialect. The wheel has none
# for these, and a failing import searches the file system every time: compiling takes ten times longer.
for _dialect in ("chlo", "stablehlo", "ttir", "ttnn"):
    sys.modules.setdefault(f"torch_mlir.dialects.{_dialect}", types.ModuleType(_dialect))


def make_context() -> ir.Context:
    """A context with the torch, StableHLO, TTIR and TTNN dialects. Diagnostics become exceptions."""
    context = ir.Context()
    context.emit_error_diagnostics = False
    context.enable_multithreading(False)  # `guard` forks, and threads do not survive that
    torch_dialect.register_dialect(context)
    _stablehlo.register_dialect(context, True)
    with context:
        TTIR.load()
        TTNN.load()
        # The wheel has no call that loads CHLO; a pass that produces its ops loads it even with nothing to do.
        run_native(ir.Module.parse("module {}"), "func.func(convert-torch-to-stablehlo)")
    return context


def run_native(module: ir.Module, *passes: str) -> None:
    """Runs passes that MLIR or torch-mlir bring along, e.g. `run_native(module, "canonicalize", "cse")`."""
    with module.context:
        PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)


Frame = TypeVar("Frame")
_INSTALLED = ("/site-packages/", "/site-packages/torch/")


def describe(location: ir.Location) -> str:
    """The user's source line of a location, as `file.py:12`, or the location's text when it names no file."""
    text = str(location)
    frame = _users(locations.lines(text), itemgetter(0))
    return ":".join(map(str, frame)) if frame else text


def brief(location: ir.Location) -> ir.Location:
    """The location with one frame in place of each chain of calls: the user's, or the innermost if it has none."""
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
    """The user's frame among those of a chain of calls, from the innermost out: the first one outside of installed
    packages, and if all are inside, the first one outside of torch itself."""
    return next((frame for inside in _INSTALLED for frame in frames if inside not in path(frame)), None)


def node_of(location: ir.Location) -> tuple[str, str]:
    """Name and target of the FX node of a location, ("", "") when it names none."""
    name, target = locations.only_node(str(location))
    return (name, target) if target else ("", "")


def unsupported(op: Any, stage: str, accepted: str = "") -> UnsupportedOpError:
    """The error of an op that a stage has no rule for, by its ATen name where the location has it; `accepted` says
    what has one."""
    name, target = node_of(op.location)
    signature = str(op).split(" loc(")[0].strip().splitlines()[0][:200]
    detail = f"node {name} needs {signature}" if name else signature
    detail = f"{detail}\n  accepted is {accepted}" if accepted else detail
    return UnsupportedOpError(target or op.operation.name, stage, describe(op.location), detail)

"""The one door to torch_mlir: contexts with our dialects, locations, native pass pipelines."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import Any

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


_INSTALLED = ("/site-packages/", "/site-packages/torch/")


def describe(location: ir.Location) -> str:
    """The user's source line of a location, as `file.py:12`, or the location's text when it names no file."""
    text = str(location)
    return _users([f"{file}:{number}" for file, number in locations.lines(text)]) or text


def brief(location: ir.Location) -> ir.Location:
    """The location with the user's frame in place of each chain of calls."""
    match location:
        case ir.NameLoc():
            return ir.Location.name(location.name_str, brief(location.child_loc), location.context)
        case ir.FusedLoc():
            return ir.Location.fused([brief(part) for part in location.locations], context=location.context)
        case ir.CallSiteLoc():
            frames = {str(frame): frame for frame in _frames(location)}
            return frames[_users(list(frames)) or next(iter(frames))]
    return location


def _frames(location: ir.Location) -> list[ir.Location]:
    """The frames of a chain of calls, from the innermost out."""
    if isinstance(location, ir.CallSiteLoc):
        return _frames(location.callee) + _frames(location.caller)
    return [location]


def _users(frames: Sequence[str]) -> str:
    """The user's frame of a chain from the innermost out: the first one outside of installed packages, and if all are
    inside, the first one outside of torch itself; "" if there is none."""
    return next((frame for inside in _INSTALLED for frame in frames if inside not in frame), "")


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

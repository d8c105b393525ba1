"""Modules whose annotations of Shardy split values over a mesh of chips.

Shardy's passes in jaxlib make the program of one chip, in a process of its own (shardy_worker.py). The module that is
read from its text has attributes which say how the whole inputs and results lie on the chips.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable

from torch_mlir import ir

from tt_torch.errors import CompileError, ModuleFormatError, UnsupportedOpError
from tt_torch.extras import require
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import main, nested, returned
from tt_torch.mlir.mesh import Mesh, set_mesh
from tt_torch.mlir.stablehlo import gspmd
from tt_torch.mlir.stablehlo.gspmd import SLICE, TO_PARTS, TO_WHOLE
from tt_torch.mlir.stablehlo.manual import along, mesh_and_axes, partition, shardings_in
from tt_torch.mlir.types import Op
from tt_torch.runtime.mesh import Sharding, Shardings

SECONDS = 600
REFUSED = "refused: "  # the worker writes this before the op, its location and the reason, each in a line
INPUTS, RESULTS = "tt.input_shardings", "tt.result_shardings"
WORK = """import sys, json
sys.path[:] = json.loads(sys.argv[1])
from tt_torch.mlir.stablehlo.shardy_worker import work
work(*sys.argv[2:])"""
_MESH = re.compile(r"sdy\.mesh.*?<\[(.*?)\]")
_NAMED = r'<@[^\[\n]*\[[^\[\]\n]*\{"'  # a sharding that names an axis
_SPLIT = re.compile(
    rf"#sdy\.sharding{_NAMED}|sdy\.sharding = #sdy\.sharding_per_value<\[{_NAMED}|"
    rf"sdy\.(?:sharding_constraint|reshard) %[\w#]+ {_NAMED}"
)


def splits_values(text: str) -> bool:
    """Whether annotations in the text of a module split values over several chips. The parts that each chip computes by
    itself (`sdy.manual_computation`, or custom calls of GSPMD) are no annotations."""
    if gspmd.splits_values(text):
        return TO_PARTS not in text and TO_WHOLE not in text
    several = any(int(size) > 1 for axes in _MESH.findall(text) for size in re.findall(r"=(\d+)", axes))
    return several and bool(_SPLIT.search(text))


def program_of_one_chip(text: str) -> str:
    """The program of each chip, in the generic form of MLIR. Raises ExtraMissingError if JAX is not installed,
    UnsupportedOpError for an op that cannot be split as the annotations ask, and CompileError if Shardy fails."""
    return _asked("program_of_one_chip", text, CompileError, "Shardy cannot split the module over its mesh")


def in_generic_form(source: str | bytes) -> str:
    """The text of a module in the generic form of MLIR. The module is a text, whose ops of `sdy` may be in their usual
    form, or bytecode or a portable artifact with such ops. Raises ExtraMissingError if JAX is not installed, and
    ModuleFormatError for a module that cannot be read."""
    return _asked("in_generic_form", source, ModuleFormatError, "JAX cannot read it")


def _asked(function: str, source: str | bytes, error: Callable[[str], Exception], failure: str) -> str:
    """The text that a function of shardy_worker.py makes of a module. The function runs in a process of its own. If it
    fails, `error` is raised, and its message begins with `failure`."""
    require("jax")
    given = source.encode() if isinstance(source, str) else source
    folders = [folder for folder in sys.path if isinstance(folder, str)]
    command = [sys.executable, "-c", WORK, json.dumps(folders), function, str(os.getpid()), REFUSED]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS, env=environment, check=False)
    except subprocess.TimeoutExpired:
        raise CompileError(f"Shardy's passes took more than {SECONDS} s") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace")
        if words.startswith(REFUSED):
            op, location, reason = words.removeprefix(REFUSED).strip().split("\n", 2)
            raise UnsupportedOpError(op, "shardy", describe(location), reason)
        said = "; ".join(line.strip() for line in words.strip().splitlines()[-4:])
        raise error(f"{failure}: {said or 'its process ended'}")
    return done.stdout.decode()


def note_shardings(module: ir.Module) -> None:
    """Writes the mesh, and the shardings of the inputs and the results, into attributes of the program of one chip.
    Raises UnsupportedOpError for a mesh with more than two axes of several chips, and for another order of the axes."""
    function = main(module)
    mesh, places = mesh_and_axes(module, function)
    set_mesh(module, mesh)
    _take_parts(module, places, mesh)
    counts = len(function.arguments), len(returned(module))
    with module.context:
        for name, given, count in zip((INPUTS, RESULTS), ("arg_attrs", "res_attrs"), counts, strict=True):
            attributes = list(function.attributes[given]) if given in function.attributes else [{}] * count
            texts = [str(each["sdy.sharding"]) if "sdy.sharding" in each else "" for each in attributes]
            rows = [ir.DenseI64ArrayAttr.get(_axes(function, text, places)) for text in texts]
            module.operation.attributes[name] = ir.ArrayAttr.get(rows)
        for name, number in (("mhlo.num_partitions", mesh[0] * mesh[1]), ("mhlo.num_replicas", 1)):
            module.operation.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)


def _take_parts(module: ir.Module, places: dict[str, int], mesh: Mesh) -> None:
    """Replaces the custom calls that stand for `sdy.all_slice`, which takes a chip's own part along an axis."""
    for op in [each for each in nested(module) if each.name == "stablehlo.custom_call"]:
        if op.attributes["call_target_name"].value == SLICE and "axis" in op.attributes:
            dim, axis = op.attributes["dim"].value, places[op.attributes["axis"].value]
            with op.location, ir.InsertionPoint(op):
                op.results[0].replace_all_uses_with(partition(op.operands[0], dim, axis, mesh))
            op.erase()


def _axes(function: Op, text: str, places: dict[str, int]) -> list[int]:
    """For the rows and the columns of the mesh, the dimension that they split, or -1."""
    found = [-1, -1]
    for dims in shardings_in(text)[:1]:
        for dim, names in enumerate(dims):
            for axis in along(function, names, places):
                found[axis] = dim
    return found


def shardings_of(module: ir.Module) -> Shardings | None:
    """How the whole inputs and results lie on the chips; None for a module without such annotations."""
    attributes = module.operation.attributes
    if INPUTS not in attributes:
        return None
    inputs, results = ([_sharding(row) for row in attributes[name]] for name in (INPUTS, RESULTS))
    return inputs, results


def _sharding(row: ir.Attribute) -> Sharding:
    rows, columns = (None if dim < 0 else dim for dim in ir.DenseI64ArrayAttr(row))
    return rows, columns

"""Parts of a module that each chip computes by itself, as XLA's custom calls write them.

    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[2,1]<=[2]}"}
    %2 = stablehlo.custom_call @SPMDFullToShardShape(%1) {mhlo.sharding = "{manual}"}
    %3 = ... ops on the parts
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[2,1]<=[2]}"}

JAX's `shard_map` writes them without Shardy. As for `sdy.manual_computation` (manual.py), each chip has all values
outside of these parts. Other annotations of such a module change no value, and are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import nested
from tt_torch.mlir.mesh import Mesh, axes_of, set_mesh
from tt_torch.mlir.stablehlo import gspmd, manual
from tt_torch.mlir.stablehlo.gspmd import TO_PARTS, TO_WHOLE
from tt_torch.mlir.stablehlo.manual import WHOLE, shard
from tt_torch.mlir.types import Op

SHARDING = "Sharding"


def enter_and_leave_parts(module: ir.Module) -> None:
    """Replaces the custom calls by ops that take and gather the parts, and gives the module its mesh. Raises
    UnsupportedOpError for shardings that are not ACCEPTED."""
    found = [op for op in nested(module) if _target(op) in (TO_PARTS, TO_WHOLE)]
    tiles = {op: _tiles(op) for op in found}
    chips = max([_partitions(module), *(len(dim) for each in tiles.values() for dim in each or ())])
    if not found or chips == 1:
        return
    try:
        mesh = gspmd.mesh_of([each for each in tiles.values() if each], chips, lambda mesh: _fits(module, mesh))
    except ValueError as error:
        raise _unsupported(found[0], str(error)) from None
    set_mesh(module, mesh)
    with module.context:
        module.operation.attributes[WHOLE] = ir.UnitAttr.get()
    for op, each in tiles.items():
        with op.location, ir.InsertionPoint(op):
            _replace(op, gspmd.axes(each, mesh) or [] if each else [], mesh)


def _target(op: Op) -> str:
    return op.attributes["call_target_name"].value if op.name == "stablehlo.custom_call" else ""


def _tiles(op: Op) -> gspmd.Tiles | None:
    """How the whole value lies on the chips."""
    whole, part = op.results[0], op.operands[0]
    said, of_part = _said(op), _said(part.owner)
    if _target(op) == TO_PARTS:
        (whole, part), (said, of_part) = (part, whole), (of_part, said)
    if not said and whole.type != part.type:
        raise _unsupported(op, "nothing says how the whole value is split")
    try:
        if of_part and gspmd.splits(of_part):
            raise ValueError(f"the chips do not compute all of it by themselves: {of_part}")
        return gspmd.tiles(said, ir.RankedTensorType(whole.type).rank) if said else None
    except ValueError as error:
        raise _unsupported(op, str(error)) from None


def _said(made_by: Op | ir.Block) -> str:
    """The sharding that a custom call gives to its result. It is empty for other ops, and for inputs of a block."""
    if isinstance(made_by, ir.Block):
        return ""
    attributes = made_by.operation.attributes
    known = _target(made_by.operation) in (SHARDING, TO_PARTS, TO_WHOLE) and gspmd.ATTRIBUTE in attributes
    return str(attributes[gspmd.ATTRIBUTE].value) if known else ""


def _partitions(module: ir.Module) -> int:
    attributes = module.operation.attributes
    return int(attributes["mhlo.num_partitions"].value) if "mhlo.num_partitions" in attributes else 1


def _fits(module: ir.Module, mesh: Mesh) -> bool:
    """Whether the groups of all collectives are rows, columns or all of the mesh."""
    return all(axes_of(groups, mesh) is not None for groups in _groups(module))


def _groups(module: ir.Module) -> Iterator[list[list[int]]]:
    for op in nested(module):
        if "replica_groups" in op.attributes:
            groups = ir.DenseIntElementsAttr(op.attributes["replica_groups"])
            rows, count = ir.RankedTensorType(groups.type).shape
            flat = [int(chip) for chip in groups]
            yield [flat[row * count : (row + 1) * count] for row in range(rows)]


def _replace(op: Op, dims: list[tuple[int, ...]], mesh: Mesh) -> None:
    value = shard(op.operands[0], dims, mesh, manual.TO_PARTS if _target(op) == TO_PARTS else manual.TO_WHOLE)
    if value.type != op.results[0].type:
        raise _unsupported(op, f"its result is a {op.results[0].type}, and the parts make a {value.type}")
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _unsupported(op: Op, reason: str) -> UnsupportedOpError:
    name = f"stablehlo.custom_call @{_target(op)}"
    return UnsupportedOpError(name, "stablehlo", describe(op.location), f"{reason}; it takes {gspmd.ACCEPTED}")

"""Collectives: chips exchange values along the axes of their mesh. On one chip, the result is the operand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.infer import make
from tt_torch.mlir.mesh import axes_of, counts_chips, groups_along, mesh_of
from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import body_op
from tt_torch.mlir.ttir.exchanges import gathered, of_each_chip, own_part, resized
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.reduction import COMBINED, reduced_over
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES, unsupported
from tt_torch.mlir.types import Op, Value

GROUPED = ["all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter"]
ALONE = "a collective among the members of groups of one device: replica_groups = [[0]]"
# The element types that the library adds by its documentation. It adds some integers, too, but does not promise that.
SUMMED = ("f32", "bf16")


@RULES.rewrites(*(f"stablehlo.{name}" for name in GROUPED))
def grouped(op: Op, b: Builder) -> list[Value]:
    """Exchanges each operand by itself, in the type of its result, which may be wider. All have the same groups."""
    axes = _axes(op)
    pairs = zip(op.operands, op.results, strict=True)
    operands = [x if dtype(x) == dtype(r) else b("ttir.typecast", x, dtype=dtype(r)) for x, r in pairs]
    if not axes:
        return operands
    family = FAMILIES[op.operation.name.removeprefix("stablehlo.")]
    return [family(op, b, x, axes) for x in operands]


def _axes(op: Op) -> tuple[int, ...]:
    """The axes of the mesh along which the groups of the op lie. Raises UnsupportedOpError for other groups."""
    mesh, table = mesh_of(op), attrs.elements(op.attributes["replica_groups"])
    groups = [[int(chip) for chip in row if chip >= 0] for row in np.atleast_2d(table)]
    if mesh == (1, 1):
        # Equal shapes show that groups have one member, even if the groups are not listed.
        if any(chip > 0 for group in groups for chip in group) or shape(op.operands[0]) != shape(op.results[0]):
            raise unsupported(op, accepted=ALONE)
        return ()
    if not _counts_chips(op):
        return ()
    if not any(groups):
        groups = [list(range(math.prod(mesh)))]
    axes = axes_of(groups, mesh)
    if axes is None:
        raise unsupported(
            op, accepted=f"groups that are the rows, the columns or all chips of the mesh {mesh}, in order"
        )
    return tuple(axis for axis in axes if mesh[axis] > 1)


def _counts_chips(op: Op) -> bool:
    """Whether the numbers in the op's groups count chips. In an op with a channel they count partitions, and in another
    op they count replicas. With `use_global_device_ids`, both are numbered together."""
    attributes = op.operation.attributes
    channel = "channel_handle" in attributes and "handle = 0" not in str(attributes["channel_handle"])
    return "use_global_device_ids" in attributes or _counted(op, channel)


def _counted(op: Op, across_partitions: bool) -> bool:
    """Returns what `counts_chips` finds. Raises UnsupportedOpError if the numbers say nothing about the mesh."""
    found = counts_chips(op, across_partitions)
    if found is None:
        chips = math.prod(mesh_of(op))
        raise unsupported(op, accepted=f"a module of {chips} replicas or {chips} partitions, as the mesh has chips")
    return found


def _combining(op: Op) -> str:
    name = body_op(op)
    if name not in COMBINED:
        raise unsupported(op, accepted=f"a body of one op that is {', '.join(COMBINED)}")
    return name


def _is_summed(x: Value, name: str) -> bool:
    return name == "add" and str(dtype(x)) in SUMMED


def all_gather(op: Op, b: Builder, x: Value, axes: Sequence[int]) -> Value:
    return gathered(b, mesh_of(op), x, axes, attrs.integer(op, "all_gather_dim"))


def all_reduce(op: Op, b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """TTNN's collectives only add. For other reductions, each chip gathers the values of all chips and reduces them."""
    name = _combining(op)
    if not _is_summed(x, name):
        return reduced_over(b, of_each_chip(b, mesh_of(op), x, axes), name, [0])
    for axis in axes:
        x = b("ttir.all_reduce", x, type=make(shape(x), dtype(x)), cluster_axis=axis)
    return x


def reduce_scatter(op: Op, b: Builder, x: Value, axes: Sequence[int]) -> Value:
    dim = attrs.integer(op, "scatter_dimension")
    if not _is_summed(x, _combining(op)):
        return own_part(b, mesh_of(op), all_reduce(op, b, x, axes), axes, dim)
    for axis in axes:
        kind = resized(x, dim, shape(x)[dim] // mesh_of(op)[axis])
        x = b("ttir.reduce_scatter", x, type=kind, scatter_dim=dim, cluster_axis=axis)
    return x


def all_to_all(op: Op, b: Builder, x: Value, axes: Sequence[int]) -> Value:
    groups = groups_along(axes, mesh_of(op))
    split, join = attrs.integer(op, "split_dimension"), attrs.integer(op, "concat_dimension")
    return b("ttir.all_to_all", x, split_dim=split, concat_dim=join, split_count=len(groups[0]), replica_groups=groups)


def collective_broadcast(op: Op, b: Builder, x: Value, axes: Sequence[int]) -> Value:
    return b("ttir.collective_broadcast", x, replica_groups=groups_along(axes, mesh_of(op)))


FAMILIES = {
    "all_gather": all_gather,
    "all_reduce": all_reduce,
    "all_to_all": all_to_all,
    "collective_broadcast": collective_broadcast,
    "reduce_scatter": reduce_scatter,
}


@RULES.rewrites("stablehlo.collective_permute")
def collective_permute(op: Op, b: Builder) -> Value:
    """The value of the chip that sends to this chip, or zeros if no chip does."""
    (x,), pairs = op.operands, attrs.ints(op, "source_target_pairs")
    chips = math.prod(mesh_of(op))
    if chips > 1 and _counts_chips(op):
        if any(not 0 <= chip < chips for chip in pairs) or len(set(pairs[1::2])) < len(pairs[1::2]):
            raise unsupported(op, accepted=f"source_target_pairs of {chips} chips, each of which is a target once")
        return b("ttir.collective_permute", x, type=make(shape(x), dtype(x)), source_target_pairs=pairs)
    if pairs not in ([], [0, 0]):
        raise unsupported(op, accepted="source_target_pairs of device 0 alone: [[0, 0]], or none")
    return x if pairs else full(b, shape(x), dtype(x), 0)


@RULES.rewrites("stablehlo.partition_id", "stablehlo.replica_id")
def device_id(op: Op, b: Builder) -> Value:
    """Each chip makes the numbers of all chips, and keeps its own number."""
    element, chips = dtype(op.results[0]), math.prod(mesh_of(op))
    if not _counted(op, op.operation.name == "stablehlo.partition_id") or chips == 1:
        return full(b, [], element, 0)
    numbers = b("ttir.arange", type=make([chips], ir.IntegerType.get_signless(32)), start=0, end=chips, step=1,
                arange_dimension=0)  # fmt: skip
    own = own_part(b, mesh_of(op), numbers, [axis for axis in (0, 1) if mesh_of(op)[axis] > 1], 0)
    return b("ttir.reshape", b("ttir.typecast", own, dtype=element), shape=[])

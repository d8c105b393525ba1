"""Collectives on one device: in a group of one member, the result is the operand."""

from __future__ import annotations

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES, unsupported
from tt_torch.mlir.types import Op, Value

GROUPED = ["all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter"]
ALONE = "a collective among the members of groups of one device: replica_groups = [[0]]"


@RULES.rewrites(*(f"stablehlo.{name}" for name in GROUPED))
def grouped(op: Op, b: Builder) -> list[Value]:
    """The operands, in the types of the results, which may be wider. Equal shapes show that groups have one member,
    even if the groups are not listed. All operands have the same groups."""
    groups = attrs.ints(op, "replica_groups")
    if any(group > 0 for group in groups) or shape(op.operands[0]) != shape(op.results[0]):
        raise unsupported(op, accepted=ALONE)
    pairs = zip(op.operands, op.results, strict=True)
    return [x if dtype(x) == dtype(r) else b("ttir.typecast", x, dtype=dtype(r)) for x, r in pairs]


@RULES.rewrites("stablehlo.collective_permute")
def collective_permute(op: Op, b: Builder) -> Value:
    """The operand, or zeros if no pair sends it to this device."""
    (x,), pairs = op.operands, attrs.ints(op, "source_target_pairs")
    if pairs not in ([], [0, 0]):
        raise unsupported(op, accepted="source_target_pairs of device 0 alone: [[0, 0]], or none")
    return x if pairs else full(b, shape(x), dtype(x), 0)


@RULES.rewrites("stablehlo.partition_id", "stablehlo.replica_id")
def device_id(op: Op, b: Builder) -> Value:
    return full(b, [], dtype(op.results[0]), 0)

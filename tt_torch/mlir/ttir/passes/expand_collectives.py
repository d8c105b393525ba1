"""Writes the collectives without a table in the file format as gathers and parts.

TTIR has these ops under the names of tt-mlir, and they stay whole until TTNN. What they are made of may join its
neighbours: a gather of the parts of a sum is an `all_reduce`.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.mesh import axes_of, mesh_of
from tt_torch.mlir.rules import Builder, RuleSet, shape
from tt_torch.mlir.ttir.exchanges import gathered, of_each_chip, own_part
from tt_torch.mlir.ttir.from_stablehlo.arranging import part
from tt_torch.mlir.ttir.passes import fuse_collectives
from tt_torch.mlir.types import Op, Value

RULES = RuleSet("expand-collectives")


def expand_collectives(module: ir.Module) -> None:
    if mesh_of(module.operation) != (1, 1):
        (RULES + fuse_collectives.RULES).simplify(module)


def _axes(op: Op) -> tuple[int, ...]:
    mesh = mesh_of(op)
    return tuple(axis for axis in axes_of(ods.attr(op, "replica_groups"), mesh) or () if mesh[axis] > 1)


@RULES.rewrites("ttir.all_to_all")
def all_to_all(op: Op, b: Builder) -> Value:
    """Each chip gathers the values of all chips and keeps its part of each."""
    (x,), mesh, axes = op.operands, mesh_of(op), _axes(op)
    split, join = ods.attr(op, "split_dim"), ods.attr(op, "concat_dim")
    if split != join:
        return own_part(b, mesh, gathered(b, mesh, x, axes, join), axes, split)
    every = own_part(b, mesh, of_each_chip(b, mesh, x, axes), axes, split + 1)
    order = [*range(1, join + 1), 0, *range(join + 1, len(shape(every)))]
    return b("ttir.reshape", b("ttir.permute", every, permutation=order), shape=shape(op.results[0]))


@RULES.rewrites("ttir.collective_broadcast")
def collective_broadcast(op: Op, b: Builder) -> Value:
    (x,) = op.operands
    return b("ttir.reshape", part(b, of_each_chip(b, mesh_of(op), x, _axes(op)), 0, 0, 1), shape=shape(x))


@RULES.rewrites("ttir.mesh_shard")
def mesh_shard(op: Op, b: Builder) -> Value:
    (x,), mesh, split = op.operands, mesh_of(op), ods.attr(op, "shard_dims")
    step = own_part if ods.attr(op, "shard_direction") == "full_to_shard" else gathered
    for dim in sorted({dim for dim in split if dim >= 0}):
        x = step(b, mesh, x, [axis for axis in (0, 1) if split[axis] == dim and mesh[axis] > 1], dim)
    return x

"""What crosses the links between the chips of a mesh.

The chips of a row, or of a column, form a line: each one is linked to the next, and the last one is not linked to the
first. All values that a chip at the end gets come through one link, in one direction. So the busiest link decides.
"""

from __future__ import annotations

import math

from tt_torch.wire.facts import TILE, Op, physical_bytes

Mesh = tuple[int, int]  # rows and columns


def chips_of(op: Op, mesh: Mesh) -> int:
    """The chips of a line that exchange values in an op."""
    axis = op.record.get("cluster_axis")
    return mesh[axis] if isinstance(axis, int) and axis in (0, 1) else math.prod(mesh)


def crossing(op: Op, mesh: Mesh) -> int:
    """The bytes that cross the busiest link in one direction; 0 for an op that exchanges nothing.

    For n chips in a line, with t bytes of operands on each of them:

    - a gather sends what each of the other n - 1 chips has to the last one: (n - 1) * t;
    - a reduce_scatter sends the sums of n - 1 parts, each of t / n bytes, over the first link: (n - 1) * t / n;
    - an all_reduce is a reduce_scatter and a gather of its parts: 2 * (n - 1) * t / n;
    - an RMS norm gathers a tile of statistics, so t is the size of this tile;
    - a point-to-point op sends t.

    Example: an all_reduce of 8,192 bytes over 8 chips sends 2 * 7 * 1,024 = 14,336 bytes over a link.
    """
    if op.name == "PointToPointOp":
        return sum(t.bytes for t in op.results)
    n = chips_of(op, mesh)
    size = op.read[0].bytes if op.name in FORMS and op.read else 0
    if op.name == NORM:
        size = physical_bytes("Float32", True, (TILE, TILE))
    return FORMS[op.name](n, size) if size else 0


def hops(op: Op, mesh: Mesh) -> int:
    """How many links the values of an op that exchanges something cross one after the other.

    The values of the first chip of a line cross n - 1 links to the last one, and those of an all_reduce twice as many,
    because the parts are first added, and then gathered. A point-to-point op may be between neighbours.
    """
    if not crossing(op, mesh):
        return 0
    return PHASES[op.name] * (chips_of(op, mesh) - 1) if op.name in FORMS else 1


NORM = "DistributedRMSNormOp"
PHASES = {"AllGatherOp": 1, "ReduceScatterOp": 1, "AllReduceOp": 2, NORM: 1}
FORMS = {
    "AllGatherOp": lambda n, size: (n - 1) * size,
    "ReduceScatterOp": lambda n, size: (n - 1) * size // n,
    NORM: lambda n, size: (n - 1) * size,
    "AllReduceOp": lambda n, size: 2 * (n - 1) * size // n,
}

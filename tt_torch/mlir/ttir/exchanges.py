"""Values that go from chip to chip, and the parts of chips, along several axes of their mesh.

TTIR's collectives work along one axis, so a group of all chips needs a collective for each axis. Their order follows
the numbers of the chips: the rows come first when a value is taken apart, and the columns come first when it is put
together.
"""

from __future__ import annotations

from collections.abc import Sequence

from tt_torch.mlir.infer import make
from tt_torch.mlir.mesh import Mesh
from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.types import TensorType, Value


def resized(x: Value, dim: int, size: int) -> TensorType:
    """The type of `x` with another size of one dimension."""
    sizes = shape(x)
    sizes[dim] = size
    return make(sizes, dtype(x))


def gathered(b: Builder, mesh: Mesh, x: Value, axes: Sequence[int], dim: int) -> Value:
    """The values of the chips of a group, one after the other along a dimension."""
    for axis in reversed(axes):
        kind = resized(x, dim, shape(x)[dim] * mesh[axis])
        x = b("ttir.all_gather", x, type=kind, all_gather_dim=dim, cluster_axis=axis)
    return x


def of_each_chip(b: Builder, mesh: Mesh, x: Value, axes: Sequence[int]) -> Value:
    """The values of the chips of a group, in a new first dimension."""
    return gathered(b, mesh, b("ttir.reshape", x, shape=[1, *shape(x)]), axes, 0)


def own_part(b: Builder, mesh: Mesh, x: Value, axes: Sequence[int], dim: int) -> Value:
    """The part of `x` along a dimension that belongs to the chip's place in its group."""
    for axis in axes:
        kind = resized(x, dim, shape(x)[dim] // mesh[axis])
        x = b("ttir.mesh_partition", x, type=kind, dim=dim, cluster_axis=axis)
    return x

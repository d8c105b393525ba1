"""The mesh of chips for which a module is compiled, and the groups of chips that exchange values.

A module for several chips is the program that each of them runs. Its attribute `ttcore.mesh_shape` has the rows and
columns of the mesh; chips are numbered row by row. In StableHLO, JAX's attributes `mhlo.num_replicas` and
`mhlo.num_partitions` say whether the numbers in groups are numbers of replicas or of partitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.types import Op

MESH = "ttcore.mesh_shape"
Mesh = tuple[int, int]  # rows and columns


def module_of(op: Op) -> ir.Operation:
    """The module that has an op, or the module itself."""
    inner = op.operation
    while inner.name != "builtin.module":
        inner = inner.parent
    return inner


def mesh_of(op: Op) -> Mesh:
    """The mesh of the module that has an op; (1, 1) for one chip."""
    attributes = module_of(op).attributes
    if MESH not in attributes:
        return 1, 1
    rows, columns = ir.DenseI64ArrayAttr(attributes[MESH])
    return rows, columns


def set_mesh(module: ir.Module, mesh: Sequence[int]) -> None:
    with module.context:
        module.operation.attributes[MESH] = ir.DenseI64ArrayAttr.get(list(mesh))


def axes_of(groups: Sequence[Sequence[int]], mesh: Mesh) -> tuple[int, ...] | None:
    """The axes of the mesh along which groups of chips lie: (1,) if they are its rows, (0,) if they are its columns,
    (0, 1) if one group has all chips, and () if each chip is alone. None for other groups, or another order in them."""
    given = sorted(map(list, groups))
    return next((axes for axes in ((), (1,), (0,), (0, 1)) if groups_along(axes, mesh) == given), None)


def groups_along(axes: Sequence[int], mesh: Mesh) -> list[list[int]]:
    """The groups of chips that lie along these axes."""
    chips = np.arange(math.prod(mesh)).reshape(mesh)
    if list(axes) == [0]:
        chips = chips.T
    lines = chips.reshape([-1, math.prod(mesh[axis] for axis in axes)])
    return [[int(chip) for chip in line] for line in lines]


def counts_chips(op: Op, across_partitions: bool) -> bool | None:
    """Whether the number of a partition is the number of a chip. Without `across_partitions`, this is about replicas.

    If the result is False, the module has only one of them. The result is None if the module has several
    partitions and several replicas, or if their number is not the number of chips in the mesh.
    """
    attributes, names = module_of(op).attributes, ("mhlo.num_replicas", "mhlo.num_partitions")
    replicas, partitions = (attributes[name].value if name in attributes else 1 for name in names)
    if replicas == partitions == 1:
        return True  # the module does not distinguish them
    if sorted((replicas, partitions)) != [1, math.prod(mesh_of(op))]:
        return None
    return (partitions if across_partitions else replicas) > 1

"""Programs of collectives on a mesh of one chip, which kernels refuse. refusals.py says how they are written."""

from kernel_rows.fields import x, y

SHAPE = "the result has another shape"
DTYPES = "operand and result have different data types"
AXES = "a mesh has the axes 0 and 1"
SCALAR = {"in": x(), "out": y()}
KEPT = "operand and result have different shapes or data types"
REPLICATE = {"type": "Replicate", "dim": 0}
AXIS_EACH = "there must be a dimension for each of the two axes of the mesh"


def mapped(*placements, **more):
    return {"mapper_config": {"placements": list(placements), **more}}


def composed(dims, **more):
    return {"composer_config": {"dims": dims, **more}}


PROGRAMS = {
    "AllGatherOp": {"in": x(4, 8), "out": y(4, 8), "all_gather_dim": 1, "cluster_axis": 1},
    "AllReduceOp": {"in": x(4, 8), "out": y(4, 8), "cluster_axis": 1},
    "ReduceScatterOp": {"in": x(4, 8), "out": y(4, 8), "scatter_dim": 1, "cluster_axis": 1},
    "DistributedRMSNormOp": {"input": x(4, 8), "out": y(4, 8), "cluster_axis": 1, "epsilon": 0.1},
    "MeshPartitionOp": {"in": x(4, 8), "out": y(4, 8), "dim": 1},
    "PointToPointOp": {"in": x(4, 8), "out": y(4, 8), "sender_coord": [0, 0], "receiver_coord": [0, 0]},
    "DistributeTensorOp": {"in": x(4, 8), "out": y(4, 8)} | mapped({"type": "Shard", "dim": 1}, REPLICATE),
    "AggregateTensorOp": {"in": x(4, 8), "out": y(4, 8)} | composed([0, 1]),
}
COLLECTIVES = {
    "AllGatherOp": [
        (SHAPE, {"out": y(4, 16)}), (DTYPES, {"out": y(4, 8, dtype="BFloat16")}), (AXES, {"cluster_axis": 2}),
        ("the operand has no dimensions", SCALAR),
        ("dimension 2 is out of range for a tensor of rank 2", {"all_gather_dim": 2}),
    ],
    "AllReduceOp": [
        (KEPT, {"out": y(8, 4)}), (KEPT, {"out": y(4, 8, dtype="BFloat16")}), (AXES, {"cluster_axis": 2}),
        ("the reduction of a collective must be a sum", {"reduce_type": 2}),
    ],
    "ReduceScatterOp": [
        (SHAPE, {"out": y(4, 4)}), (DTYPES, {"out": y(4, 8, dtype="BFloat16")}), (AXES, {"cluster_axis": 9}),
        ("the operand has no dimensions", SCALAR), ("the reduction of a collective must be a sum", {"reduce_type": 6}),
        *((SHAPE, {"out": y(*shape)}) for shape in ((), (4,), (4, 8, 1))),
    ],
    "DistributedRMSNormOp": [
        (SHAPE, {"out": y(4, 16)}), (AXES, {"cluster_axis": 2}),
        ("the operand has no dimensions", {"input": x(), "out": y()}),
        ("the weight does not have one value per element of the last dimension", {"weight": x(4)}),
        ("residual has another shape than the input", {"residual": x(8)}),
    ],
    "MeshPartitionOp": [
        *((SHAPE, {"out": y(*shape)}) for shape in ((4, 4), (), (4,), (4, 8, 1))), (AXES, {"cluster_axis": 2}),
        ("the operand has no dimensions", SCALAR),
        ("dimension -3 is out of range for a tensor of rank 2", {"dim": -3}),
    ],
    "PointToPointOp": [
        *(("a chip is not on the mesh", {field: place}) for field in ("sender_coord", "receiver_coord")
          for place in ([0, 1], [1, 0], [0], [0, 0, 0])),
        (KEPT, {"out": y(8, 4)}), (KEPT, {"out": y(4, 8, dtype="BFloat16")}),
        (KEPT, {"optional_output_tensor": x(4, 4)}),
    ],
    "DistributeTensorOp": [
        ("mapper_config is missing", {"mapper_config": None}),
        ("mesh_shape_override has no kernel", mapped(REPLICATE, REPLICATE, mesh_shape_override=[1, 1])),
        ("there must be a placement for each of the two axes of the mesh", mapped(REPLICATE)),
        ("a scalar cannot be split", SCALAR),
        ("dimension 2 is out of range for a tensor of rank 2", mapped({"type": "Shard", "dim": 2}, REPLICATE)),
        ("operand and result have different ranks", {"out": y(4, 8, 1)}), (SHAPE, {"out": y(4, 4)}),
    ],
    "AggregateTensorOp": [
        ("composer_config is missing", {"composer_config": None}),
        (AXIS_EACH, composed([0])), ("the operand has no dimensions", SCALAR),
        ("dimension 2 is out of range for a tensor of rank 2", composed([0, 2])),
        *(("mesh_shape_override must have all chips of an axis, or one", composed([0, 1], mesh_shape_override=shape))
          for shape in ([2, 1], [1, 2], [1])),
        (SHAPE, {"out": y(4, 16)}),
    ],
}  # fmt: skip

"""Custom calls by the name of the target: annotations of XLA and tt-xla, and functions that StableHLO does not have."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import set_argument_texts
from tt_torch.mlir.layer_names import WEIGHT_DTYPE, WEIGHT_DTYPES, constants_of
from tt_torch.mlir.mesh import Mesh, mesh_of
from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttir.exchanges import own_part
from tt_torch.mlir.ttir.from_stablehlo import attention_calls, cache_calls, choosing_calls
from tt_torch.mlir.ttir.from_stablehlo.ordering import extremes
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES, unsupported
from tt_torch.mlir.ttir.from_stablehlo.user_ops import user_op
from tt_torch.mlir.types import Attrs, Op, Results, Value
from tt_torch.mlir.user_ops import TARGET

# Annotations about sharding, roles and types of arguments; one device has nothing to compute for them.
MARKS = (
    "Sharding SPMDFullToShardShape SPMDShardToFullShape xla.sdy.FuncResultSharding xla.sdy.GlobalToLocalShape "
    "xla.sdy.LocalToGlobalShape xla.sdy.ShardingGroup tt.mark_argument tt.sharding_constraint tt.weight_dtype_override"
).split()


def _mesh(x: Value) -> Mesh:
    return mesh_of(x.owner.owner if isinstance(x.owner, ir.Block) else x.owner)


def mesh_partition(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """The chip's own part of a tensor that all chips of a group have."""
    (x,) = operands
    return own_part(b, _mesh(x), x, a["axes"], a["dim"])


def mesh_shard(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """A whole value becomes the parts of the chips, or the reverse."""
    (x,), split = operands, a["shard_dims"]
    counts = [1] * len(shape(x))
    for axis, dim in enumerate(split):
        if dim >= 0:
            counts[dim] *= _mesh(x)[axis]
    return b("ttir.mesh_shard", x, shard_direction=a["shard_direction"], shard_shape=counts, shard_dims=split)


CALLS: dict[str, attention_calls.Expand] = {
    "mhlo.asinh": lambda b, operands, _: b("ttir.asinh", *operands),
    "mhlo.erf": lambda b, operands, _: b("ttir.erf", *operands),
    "mhlo.topk": lambda b, operands, a: extremes(b, operands[0], a["k"], a["largest"]),
    "tt_mesh.mesh_partition": mesh_partition,
    "tt_mesh.mesh_shard": mesh_shard,
    **attention_calls.CALLS,
    **cache_calls.CALLS,
    **choosing_calls.CALLS,
}


@RULES.rewrites("stablehlo.custom_call")
def custom_call(op: Op, b: Builder) -> Results:
    name = ods.attr(op, "call_target_name")
    if name == TARGET:
        return user_op(op, b)
    if name in MARKS:
        if [x.type for x in op.operands[: len(op.results)]] != [r.type for r in op.results]:
            raise unsupported(op, accepted="a mark that leaves the shape as it is, as on one device")
        if name == "tt.weight_dtype_override":
            _mark_weight(op)
        return list(op.operands)[: len(op.results)]
    if name not in CALLS:
        return None
    try:
        return CALLS[name](b, list(op.operands), _attributes(op))
    except KeyError as missing:
        raise unsupported(op, accepted=f"{name} with {missing.args[0]} among its attributes") from missing


def _mark_weight(op: Op) -> None:
    """Writes the data type to the arguments from which a weight is computed, as tt-mlir does."""
    dtype = _attributes(op).get(WEIGHT_DTYPE)
    if dtype not in WEIGHT_DTYPES:
        raise unsupported(op, accepted=f"{WEIGHT_DTYPE} of {', '.join(WEIGHT_DTYPES)}")
    arguments = constants_of(op.operands[0])
    if arguments:
        numbers = {argument.arg_number: dtype for argument in arguments}
        set_argument_texts(arguments[0].owner.owner, WEIGHT_DTYPE, numbers)


def _attributes(op: Op) -> Attrs:
    return (ods.attr(op, "mhlo.attributes") or {}) | (ods.attr(op, "mhlo.frontend_attributes") or {})

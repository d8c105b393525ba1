"""TTNN: the ops of the binary, one row each. A row names the wire table and the fields of its operands and results. The
kinds of attributes come from the table, so printing, encoding and verifying need nothing else.

Fields of placement and type (`memcfg`, `dtype`, `layout`, `device`, ...) are not attributes. They follow from the
`#ttnn.layout` of the result when the program is written (see `to_binary.py`).
"""

from __future__ import annotations

import types
from functools import cache
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import ext

from tt_torch.mlir import infer
from tt_torch.mlir.ods import OPS, REQUIRED, OpDef, declare, emitted_once
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn.layout import Changes, Layout, layout_of
from tt_torch.mlir.types import Attr, Attrs, Infer, Op, Operand, TensorType, Value
from tt_torch.wire import schema
from tt_torch.wire.custom_ops import MOST_RESULTS, NO_LIBRARY, TABLE
from tt_torch.wire.facts import SUM, TILE


@emitted_once
class TTNN(ext.Dialect, name="ttnn"):  # type: ignore[call-arg]
    pass


# Parameters of `#ttnn.layout`; layout.py explains and reads them.
LAYOUT = dict.fromkeys(("dtype", "page_layout", "buffer", "memory_layout"), ir.StringAttr) | {"grid": Any}
types.new_class("LayoutAttr", (TTNN.Attribute,), {"name": "layout"}, lambda ns: ns.update(__annotations__=LAYOUT))


KINDS = {"float": "f32", "double": "f64", "bool": "bool", "string": "str", "obj": "dict", "union": "dict"}


@cache
def wire_fields(table: str) -> dict[str, schema.Field]:
    """Fields of a wire table by name, e.g. `wire_fields("Conv2dOp")["groups"]`."""
    return {field.name: field for field in schema.load().fields(table)}


def _kind(field: schema.Field) -> str:
    if field.type == "vector":
        return "i64s" if field.element in ("int", "uint", "long", "ulong") else "any"
    is_enum = field.ref and field.type not in ("obj", "union")
    return "str" if is_enum else KINDS.get(field.type, "i64")


def _without_config(rule: Infer) -> Infer:
    """The rule for the types of results, which do not depend on how the matrix unit computes."""

    def infer_without(*operands: Operand, **attributes: Attr) -> Any:
        return rule(*operands, **{k: v for k, v in attributes.items() if k not in CONFIGS})

    return infer_without


CONFIGS = ("compute_config", "matmul_program_config")  # how an op computes


def op(
    name: str,
    table: str,
    operands: str = "",
    attrs: str = "",
    results: str = "out",
    fixed: Attrs | None = None,
    infer: Infer | None = None,
    typed: bool = True,
    **facts: Any,
) -> OpDef:
    """Declares `ttnn.<name>`, which is stored as `table`. Operands and results are in the order of use, and have the
    names of the table's fields.

    `attrs` lists fields that each op gives (`?` if they may be absent). `fixed` has fields with one value for this op.
    `vector` is the field that lists all results, whose names are then free. `needs` maps operands to the layout they
    must have (see passes/layouts.py). `any_tiles` says that Tenstorrent's library takes tiles of all data types; other
    ops have a rule in legality.py. `infer` is the rule for the types of results. Its default is the rule of the TTIR op
    of this name. `typed` is False for an op without a rule for types.
    """
    if infer is None and typed and f"ttir.{name}" in OPS:
        infer = OPS[f"ttir.{name}"].infer
    fields = wire_fields(table)
    if "compute_config" in fields and "compute_config" not in (fixed or {}):  # passes/compute_config.py sets it
        attrs += " compute_config?"
        infer = infer and _without_config(infer)
    kinds = {a.rstrip("?"): (_kind(fields[a.rstrip("?")]), None if a[-1] == "?" else REQUIRED) for a in attrs.split()}
    facts |= {"table": table, "fixed": fixed or {}}
    return declare(TTNN, name, operands, kinds, results, infer, pure=facts.pop("pure", True), **facts)


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def on_host_as_result(op: Op, operand: Layout) -> Changes:
    return {} if layout_of(op.results[0]).on_device else HOST_ROW_MAJOR


def as_result(op: Op, _: Layout) -> Changes:
    """The same page layout as the result of the op."""
    return {"tiled": layout_of(op.results[0]).tiled}


def a_core_per_user(op: Op, _: Layout) -> Changes:
    """One part in L1 for each user. The users are the second dimension."""
    users = list(op.operands[1].type.shape)[1]
    return {"buffer": "L1", "memory_layout": "HeightSharded", "grid": (users, 1)}


def tiles_of_floats(_: Op, operand: Layout) -> Changes:
    return {"tiled": operand.dtype in ("Float32", "BFloat16")}


WIRE_COMPARISONS = {
    "eq": "Equal",
    "ne": "NotEqual",
    "ge": "GreaterEqual",
    "gt": "GreaterThan",
    "le": "LessEqual",
    "lt": "LessThan",
}
COMPOSITE_BINARY = {"maximum", "minimum", "remainder", "pow", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor"}
COMPOSITE_BINARY |= {"logical_left_shift"}

# --- element-wise
for name in [*ttir.UNARY, *ttir.UNARY_PREDICATES]:
    composite = name in ("cbrt", "log1p")
    table = "EltwiseUnaryCompositeOp" if composite else "EltwiseUnaryOp"
    member = {"isfinite": "IsFinite"}.get(name, camel(name))
    op(name, table, "in", fixed={"type": member}, infer=infer.same)
for name in [*ttir.BINARY, *ttir.COMPARISONS, *ttir.LOGICAL]:
    table = "EltwiseBinaryCompositeOp" if name in COMPOSITE_BINARY else "EltwiseBinaryOp"
    kind = {"type": WIRE_COMPARISONS.get(name, camel(name))}
    # By default, the result of a comparison has the data type of its operands in the library.
    op(name, table, "lhs rhs", fixed=kind, derived=("output_dtype",))
op("leaky_relu", "EltwiseUnaryOp", "in", "params", fixed={"type": "LeakyRelu"})
op("clamp_scalar", "EltwiseUnaryCompositeOp", "in", "params", fixed={"type": "ClampScalar"})
op("pow_scalar", "EltwiseBinaryCompositeScalarOp", "lhs", "rhs", fixed={"type": "PowScalar"}, infer=infer.same)
op("where", "EltwiseTernaryWhereOp", "first second third")
op("typecast", "TypecastOp", "in", derived=("dtype",), needs={"in": as_result}, typed=False)

op("bitcast_convert", "BitcastConvertOp", "in", derived=("dtype",), typed=False)

# --- reductions
for name in ("sum", "mean", "max", "min"):
    op(name, "ReductionOp", "in", "dim_arg? keep_dim", fixed={"type": camel(name)})
op("prod", "ReductionProdOp", "in", "dim_arg? keep_dim", typed=False)
op("argmax", "ReductionArgMaxOp", "in", "dim? keep_dim", needs={"in": tiles_of_floats}, typed=False)
op("cumsum", "CumSumOp", "in", "dim", derived=("dtype",), any_tiles=True)
op("cumprod", "CumProdOp", "in", "dim", derived=("dtype",), any_tiles=True)
# They have no rule for types, because the library chooses the type of positions (see passes/workarounds/).
PAIR: dict[str, Any] = {"results": "values indices", "vector": "outputs", "typed": False}
op("sort", "SortOp", "in", "dim descending stable", **PAIR)
op("topk", "TopKOp", "input_tensor", "k dim largest sorted", **PAIR)

# --- matrix products
# The optimizer chooses the configuration of the kernel. If it chooses none, the library does.
op("matmul", "MatmulOp", "a b", "transpose_a transpose_b matmul_program_config?")
op("linear", "LinearOp", "a b bias?", "transpose_a transpose_b activation? matmul_program_config?")

# --- convolution and pooling
SLIDING = "batch_size input_height input_width kernel_size stride padding dilation"
CONV = f"in_channels out_channels {SLIDING} groups"
HOST_ROW_MAJOR: Changes = {"buffer": "SystemMemory", "tiled": False}
# They describe the input of the convolution for which the weights are prepared.
FUTURE_INPUT = "input_dtype input_tensor_layout input_memory_config"
op(
    "conv2d",
    "Conv2dOp",
    "input weight bias?",
    f"{CONV} conv2d_config?",
    needs={"weight": HOST_ROW_MAJOR, "bias": HOST_ROW_MAJOR},
    derived=("device", "output_dtype"),
)
op(
    "prepare_conv2d_weights",
    "PrepareConv2dWeightsOp",
    "weight_tensor",
    f"{CONV} {FUTURE_INPUT} has_bias conv2d_config?",
    fixed={"weights_format": "OIHW"},
    needs={"weight_tensor": HOST_ROW_MAJOR},
    derived=("device",),
)
op(
    "prepare_conv2d_bias",
    "PrepareConv2dBiasOp",
    "bias_tensor",
    f"{CONV} {FUTURE_INPUT} conv2d_config?",
    typed=False,  # the bias gets the data type of the weights
    needs={"bias_tensor": HOST_ROW_MAJOR},
    derived=("device",),
)
op(
    "conv_transpose2d",
    "ConvTranspose2dOp",
    "input weight bias?",
    f"{CONV} output_padding",
    needs={"weight": HOST_ROW_MAJOR, "bias": HOST_ROW_MAJOR},
    derived=("device", "output_dtype"),
)
op(
    "conv3d",
    "Conv3dOp",
    "input weight bias?",
    "in_channels out_channels batch_size input_depth input_height input_width kernel_size stride padding groups",
    fixed={"padding_mode": "zeros"},
    needs={"input": {"tiled": False}},
    makes={"tiled": False},
    derived=("device", "output_dtype"),
)
POOL = f"channels {SLIDING} extra_params"
POOL_SETTINGS = {"reallocate_halo_output": False, "config_tensors_in_dram": True}
op("max_pool2d", "Pool2dOp", "in", POOL, fixed={"type": "MaxPool2d", **POOL_SETTINGS})
op(
    "max_pool2d_with_indices",
    "MaxPool2dWithIndicesOp",
    "in",
    f"channels {SLIDING}",
    fixed=POOL_SETTINGS,
    results="result result_indices",  # the library chooses the type of the positions, as for sort and topk
    typed=False,
)
op("avg_pool2d", "Pool2dOp", "in", POOL, fixed={"type": "AvgPool2d", **POOL_SETTINGS})

# --- data movement
op("reshape", "ReshapeOp", "in", "shape", needs={"in": on_host_as_result})
op("permute", "PermuteOp", "in", "permutation")
op("transpose", "TransposeOp", "in", "dim0 dim1")
op("concat", "ConcatOp", "inputs*", "dim")
op("slice_static", "SliceOp", "in", "step params", fixed={"type": "SliceStaticOp"}, typed=False)
op("pad", "PadOp", "in", "padding value", fixed={"use_multicore": True}, needs={"in": as_result})
op("repeat", "RepeatOp", "in", "repeat_dims", infer=infer.repeat)
op(
    "embedding",
    "EmbeddingOp",
    "input weight",
    needs={"input": {"tiled": False, "dtype": "UInt32"}, "weight": {"tiled": False}},
)
op("gather", "GatherOp", "input index", "dim", needs={"index": {"dtype": "UInt32"}})
op(
    "scatter",
    "ScatterOp",
    "input index source",
    "dim scatter_reduce_type",
    needs={"input": as_result, "index": lambda op, x: as_result(op, x) | {"dtype": "UInt32"}, "source": as_result},
)

# --- creation
op("full", "FullOp", "", "fill_value", derived=("device", "dtype", "layout", "shape"))
op("rand", "RandOp", "", "size low high seed", derived=("device", "dtype", "layout"), pure=False)
op("arange", "ArangeOp", "", "start end step", derived=("device", "dtype", "layout"), makes={"tiled": False})
op("constant", "ConstantOp", "", "input", derived=("input_dtype", "dtype"), makes=HOST_ROW_MAJOR)

# --- normalization and attention
op("softmax", "SoftmaxOp", "in", "dimension numeric_stable")
op("layer_norm", "LayerNormOp", "input weight? bias?", "epsilon")
op("rms_norm", "RMSNormOp", "input weight?", "epsilon")
op(
    "scaled_dot_product_attention",
    "ScaledDotProductAttentionOp",
    "query key value attention_mask?",
    "is_causal scale",
)
op(
    "split_query_key_value_and_split_heads",
    "SplitQueryKeyValueAndSplitHeadsOp",
    "in kv_input?",
    "num_heads num_kv_heads? transpose_key",
    results="q_out k_out v_out",
)
op("concatenate_heads", "ConcatenateHeadsOp", "in")
# They change the cache, and have no result.
UPDATE: dict[str, Any] = {"results": "", "pure": False, "typed": False}
NUMBERS: Changes = {"tiled": False, "dtype": "Int32"}
op(
    "update_cache",
    "UpdateCacheOp",
    "cache input update_index",
    "batch_offset",
    needs={"update_index": {"tiled": False, "dtype": "UInt32"}},
    **UPDATE,
)
op(
    "paged_scaled_dot_product_attention_decode",
    "PagedScaledDotProductAttentionDecodeOp",
    "query key value page_table attention_mask? cur_pos_tensor?",
    "is_causal scale",
    needs={"page_table": NUMBERS, "cur_pos_tensor": NUMBERS},
)
op("fill_cache", "FillCacheOp", "cache input", "batch_offset", **UPDATE)
op(
    "paged_update_cache",
    "PagedUpdateCacheOp",
    "cache input update_index page_table",
    needs={"input": a_core_per_user, "update_index": NUMBERS, "page_table": NUMBERS},
    fixed={"share_cache": False},
    **UPDATE,
)
op(
    "paged_fill_cache",
    "PagedFillCacheOp",
    "cache input page_table batch_idx_tensor?",
    needs={"page_table": NUMBERS, "batch_idx_tensor": NUMBERS},
    **UPDATE,
)


def rows_of_tiles(x: Value, *_: Value, **__: Attr) -> TensorType:
    """The shape of `x` with its rows rounded up to whole tiles, because the library makes no other shape."""
    *outer, rows, width = infer.dims(x)
    return infer.make([*outer, -(-rows // TILE) * TILE, width], infer.element(x))


op("rotary_embedding", "RotaryEmbeddingOp", "input cos_cache sin_cache", infer=rows_of_tiles)
op(
    "rotary_embedding_llama",
    "RotaryEmbeddingLlamaOp",
    "input cos_cache sin_cache trans_mat",
    fixed={"is_decode_mode": False},
)

# --- collectives; the library refuses tiles that are cut
op("all_gather", "AllGatherOp", "in", "all_gather_dim cluster_axis", typed=False, collective=True)
REDUCED = {"reduce_type": SUM}
op("all_reduce", "AllReduceOp", "in", "cluster_axis", fixed=REDUCED, collective=True)
op("reduce_scatter", "ReduceScatterOp", "in", "scatter_dim cluster_axis", fixed=REDUCED, typed=False, collective=True)
op(
    "mesh_partition",
    "MeshPartitionOp",
    "in",
    "dim cluster_axis?",
    needs={"in": {"tiled": False}},
    makes={"tiled": False},
    typed=False,
    collective=True,
)
# The receiver gets the value of the sender. The result is in the memory of the second operand, so the other chips keep
# their values of it. Without a second operand, they may have any values. Two ops must not become one, because each
# result is written to.
op(
    "point_to_point",
    "PointToPointOp",
    "in optional_output_tensor?",
    "sender_coord receiver_coord",
    needs={"optional_output_tensor": as_result},
    infer=infer.same,
    collective=True,
    pure=False,
)


def on_its_cores(op: Op, _: Layout) -> Changes:
    """The place of the result, which passes/distributed_norms.py has chosen."""
    made = layout_of(op.results[0])
    return {"buffer": made.buffer, "memory_layout": made.memory_layout, "grid": made.grid}


# The chips write their means of squares to the tensor `stats` of each other, which counts them at a semaphore. So no
# two of these ops may become one (see passes/distributed_norms.py). Statistics have the data type of sums in the op.
op(
    "distributed_rms_norm",
    "DistributedRMSNormOp",
    "input weight stats?",
    "cluster_axis epsilon program_config? semaphore?",
    fixed={"compute_config": {"math_fidelity": "HiFi4", "fp32_dest_acc_en": True}},
    needs={"input": on_its_cores, "weight": {"tiled": False}},
    collective=True,
    pure=False,
)

# --- layout, placement, program structure
op("to_layout", "ToLayoutOp", "in", derived=("layout", "dtype"))
op("to_memory_config", "ToMemoryConfigOp", "in0")
op("to_device", "ToDeviceOp", "in", derived=("device",))
op("from_device", "FromDeviceOp", "in")
op("deallocate", "DeallocateOp", "in", "force", results="", pure=False)

# --- recordings and memory of their own; they change memory and command queues
EFFECT: dict[str, Any] = {"pure": False, "typed": False}
DEVICE = {"global_id": 0}  # the id of a DeviceRef is its first chip
op("create_global_semaphore", "CreateGlobalSemaphoreOp", "", "core_range_set initial_value out", results="", **EFFECT)
op("empty", "EmptyOp", derived=("device", "dtype", "layout", "shape"), **EFFECT)
op("write_tensor", "WriteTensorOp", "host_tensor device_tensor", "blocking cq_id", results="", **EFFECT)
op("copy", "CopyOp", "src dst", results="", **EFFECT)
QUEUE: dict[str, Any] = {"fixed": {"device": DEVICE}, **EFFECT}
op("begin_trace_capture", "BeginTraceCaptureOp", "", "cq_id", results="trace_id", **QUEUE)
op("end_trace_capture", "EndTraceCaptureOp", "trace_id", "cq_id", results="", **QUEUE)
op("execute_trace", "ExecuteTraceOp", "trace_id", "cq_id blocking", results="", **QUEUE)

# --- ops of the user with a kernel
for count in range(1, MOST_RESULTS + 1):
    names = " ".join(f"out_{i}" for i in range(count))
    library = {"dylib_id": NO_LIBRARY}
    op(f"custom_{count}", TABLE, "ins*", "func_name", results=names, vector="outs", fixed=library, typed=False)

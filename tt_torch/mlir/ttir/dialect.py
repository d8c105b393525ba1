"""TTIR: device-independent tensor ops. Names, operands and attributes follow tt-mlir's TTIR dialect.

Element types are those that a device has (see `stablehlo.normalize`): booleans are bf16 zeros and ones,
64-bit types are 32-bit ones. Element-wise ops broadcast as NumPy does. Convolution and pooling take NHWC
flattened to (1, 1, N*H*W, C), the form that TTNN computes on.
"""

from __future__ import annotations

from functools import partial

from torch_mlir.dialects import ext

from tt_torch.mlir import infer
from tt_torch.mlir.ods import declare, emitted_once
from tt_torch.wire.custom_ops import MOST_RESULTS


@emitted_once
class TTIR(ext.Dialect, name="ttir"):  # type: ignore[call-arg]
    pass


op = partial(declare, TTIR)

UNARY = (
    "abs acos asin asinh atan cbrt ceil cos erf erfc exp expm1 floor gelu hardsigmoid log log1p mish neg reciprocal "
    "relu relu6 rsqrt sigmoid sign silu sin sqrt tan tanh bitwise_not"
).split()
UNARY_PREDICATES = ["isfinite", "logical_not"]
BINARY = (
    "add subtract multiply divide maximum minimum remainder pow atan2 "
    "bitwise_and bitwise_or bitwise_xor logical_left_shift logical_right_shift"
).split()
COMPARISONS = "eq ne ge gt le lt".split()
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
REDUCTIONS = "sum mean max min prod".split()
IN_FLOAT32 = "tt.in_float32"  # an attribute of an op that computes in float32 under each policy for data types

for name in UNARY:
    op(name, "input", infer=infer.same)
for name in UNARY_PREDICATES:
    op(name, "input", infer=infer.predicate)
for name in BINARY:
    op(name, "lhs rhs", infer=infer.elementwise)
for name in [*COMPARISONS, *LOGICAL]:
    op(name, "lhs rhs", infer=infer.predicate)
for name in REDUCTIONS:
    op(name, "input", {"dim_arg": "i64s", "keep_dim": ("bool", False)}, infer=infer.reduction)

op("gelu_tanh", "input", infer=infer.same)
op("leaky_relu", "input", {"parameter": "f32"}, infer=infer.same)
op("clamp_scalar", "input", {"min": "f32", "max": "f32"}, infer=infer.same)
op("where", "condition true false", infer=infer.where)
# Converts values: 1 becomes 1.0.
op("typecast", "input", {"dtype": "type"}, infer=infer.typecast)
# Keeps the bits.
op("bitcast_convert", "input", {"dtype": "type"}, infer=infer.typecast)
op("argmax", "input", {"dim_arg": "i64s", "keep_dim": ("bool", False)}, infer=infer.argmax)
# `scan_of` is the StableHLO op that combines the elements.
op("cumsum", "input", {"dim": "i64"}, infer=infer.same, scan_of="add")
op("cumprod", "input", {"dim": "i64"}, infer=infer.same, scan_of="multiply")
op(
    "sort",
    "input",
    {"dim": "i64", "descending": ("bool", False), "stable": ("bool", False)},
    results="values indices",
    infer=infer.ordering,
)
op(
    "topk",
    "input_tensor",
    {"k": "i64", "dim": "i64", "largest": "bool", "sorted": "bool"},
    results="values indices",
    infer=infer.ordering,
)

op("matmul", "a b", {"transpose_a": ("bool", False), "transpose_b": ("bool", False)}, infer=infer.matmul)
# activation(a @ b + bias).
op(
    "linear",
    "a b bias?",
    {"transpose_a": ("bool", False), "transpose_b": ("bool", False), "activation": ("str", None)},
    infer=infer.matmul,
)

SLIDING = {"batch_size": "i64", "input_height": "i64", "input_width": "i64"}
# Padding is top, bottom, left, right.
op(
    "conv2d",
    "input weight bias?",
    {
        **SLIDING,
        "in_channels": "i64",
        "out_channels": "i64",
        "kernel_size": "i64s",
        "stride": "i64s",
        "padding": "i64s",
        "dilation": "i64s",
        "groups": "i64",
        "activation": ("str", None),
    },
    infer=infer.conv2d,
)
WINDOW = ("kernel_size", "stride", "padding", "output_padding", "dilation")
# The weight is (C, O / groups, KH, KW); padding is the height's, then the width's.
op(
    "conv_transpose2d",
    "input weight bias?",
    {**SLIDING, "in_channels": "i64", "out_channels": "i64", **dict.fromkeys(WINDOW, "i64s"), "groups": "i64"},
    infer=infer.conv_transpose2d,
)
VOLUME = ("batch_size", "input_depth", "input_height", "input_width", "in_channels", "out_channels", "groups")
# The input is NDHWC and not flattened. The weight is (KD * KH * KW * C / groups, O).
op(
    "conv3d",
    "input weight bias?",
    {**dict.fromkeys(VOLUME, "i64"), **dict.fromkeys(("kernel_size", "stride", "padding"), "i64s")},
    infer=infer.conv3d,
)
POOL = {"channels": "i64", "kernel_size": "i64s", "stride": "i64s", "padding": "i64s", "dilation": "i64s"}
op("max_pool2d", "input", {**SLIDING, **POOL}, infer=infer.pool2d)
# An index counts the elements of its image.
op(
    "max_pool2d_with_indices",
    "input",
    {**SLIDING, **POOL},
    results="result result_indices",
    infer=infer.pool2d_with_indices,
)
# The average counts the padding as zeros.
op("avg_pool2d", "input", {**SLIDING, **POOL}, infer=infer.pool2d)

op("reshape", "input", {"shape": "i64s"}, infer=infer.reshape)
op("permute", "input", {"permutation": "i64s"}, infer=infer.permute)
op("broadcast", "input", {"broadcast_dimensions": "i64s"}, infer=infer.broadcast)
op("slice_static", "input", {"begins": "i64s", "ends": "i64s", "step": "i64s"}, infer=infer.slice_static)
op("concat", "inputs*", {"dim": "i64"}, infer=infer.concat)
op("pad", "input", {"padding": "i64s", "value": "f32"}, infer=infer.pad)
op("embedding", "input weight", infer=infer.embedding)
# Like torch.gather.
op("gather", "input index", {"dim": "i64"}, infer=infer.gather)
# Like torch.scatter. "Invalid" means that elements are overwritten.
op(
    "scatter",
    "input index source",
    {"dim": "i64", "scatter_reduce_type": ("str", "Invalid")},
    infer=infer.same,
)

# All elements have one value.
op("full", "", {"shape": "i64s", "fill_value": "any"})
# The elements of the result are an attribute of the op.
op("constant", "", {"value": "any"})
# Numbers that are uniformly distributed in [low, high). Each run makes other numbers.
op(
    "rand",
    "",
    {"size": "i64s", "low": "f32", "high": "f32"},
    pure=False,
)
op("arange", "", {"start": "i64", "end": "i64", "step": "i64", "arange_dimension": "i64"})

op("softmax", "input", {"dimension": "i64", "numeric_stable": ("bool", True)}, infer=infer.same)
# Over the last dimension.
op("layer_norm", "input weight? bias?", {"epsilon": "f32"}, infer=infer.same)
# Over the last dimension.
op("rms_norm", "input weight?", {"epsilon": "f32"}, infer=infer.same)
op(
    "batch_norm_inference",
    "input scale offset mean variance",
    {"dimension": "i64", "epsilon": "f32"},
    infer=infer.same,
)
# The mask is added to the scaled scores.
op(
    "scaled_dot_product_attention",
    "query key value attention_mask?",
    {"is_causal": ("bool", False), "scale": "f32"},
    infer=infer.attention,
)
# One query per user, (1, users, H, D), and caches in pages. If `is_causal`, a user sees the keys up to its position.
op(
    "paged_scaled_dot_product_attention_decode",
    "query key value page_table attention_mask? cur_pos_tensor?",
    {"is_causal": ("bool", False), "scale": "f32"},
    infer=infer.attention,
)
op(
    "split_query_key_value_and_split_heads",
    "input_tensor kv_input_tensor?",
    {"num_heads": "i64", "num_kv_heads": ("i64", None), "transpose_key": ("bool", False)},
    results="query key value",
    infer=infer.split_heads,
)
# input * cos + concat(-input[..., D/2:], input[..., :D/2]) * sin, on (B, H, S, D) with tables of (1, 1, S, D).
op("rotary_embedding", "input cos_cache sin_cache", infer=infer.same)
# input * cos + rotated * sin, where `rotated` has each 32 columns of the input times a matrix of (1, 1, 32, 32).
WIDEST_TURNED = 256  # columns, in Tenstorrent's library
op("rotary_embedding_llama", "input cos_cache sin_cache trans_mat", infer=infer.same)
op("concatenate_heads", "input", infer=infer.concat_heads)
# The cache (B, H, S, D), in which the input (1, H, B, D) replaces the row `update_index` of each head.
op("update_cache", "cache input update_index", {"batch_offset": ("i64", 0)}, infer=infer.same)
# The cache (B, H, S, D) with new first positions: (b, H, s, D).
op("fill_cache", "cache input", {"batch_offset": ("i64", 0)}, infer=infer.same)
# The cache (pages, H, S, D) with one new position per user, (1, users, H, D). A negative index skips the user. The page
# table, (users, n), lists the pages of each user.
op("paged_update_cache", "cache input update_index page_table", infer=infer.same)
# The cache (pages, H, S, D) with new first positions, (1, H, s, D), of one user. The default is the first user.
op("paged_fill_cache", "cache input page_table batch_idx_tensor?", infer=infer.same)

# Collectives along an axis of the mesh: 0 joins the chips of a column, 1 those of a row. Sizes depend on the mesh.
# Reductions are sums, because the library has no others.
op("all_gather", "input", {"all_gather_dim": "i64", "cluster_axis": "i64"}, collective=True)
op("all_reduce", "input", {"cluster_axis": "i64"}, infer=infer.same, collective=True)
op("reduce_scatter", "input", {"scatter_dim": "i64", "cluster_axis": "i64"}, collective=True)
# An RMS norm of (1, 1, rows, N). The last dimension is split along the axis, and the mean of the squares is that of all
# parts.
op("distributed_rms_norm", "input weight", {"cluster_axis": "i64", "epsilon": "f32"}, infer=infer.same, collective=True)
# The part of a dimension that belongs to the place of the chip.
op("mesh_partition", "input", {"dim": "i64", "cluster_axis": "i64"}, collective=True)
# The pairs have the numbers of a sender and of its receiver. A chip that no chip sends to gets zeros.
op("collective_permute", "input", {"source_target_pairs": "i64s"}, infer=infer.same, collective=True)
# These three are made of others on the way to TTNN: see passes/expand_collectives.py. A group is a list of chips.
op(
    "all_to_all",
    "input",
    {"split_dim": "i64", "concat_dim": "i64", "split_count": "i64", "replica_groups": "any"},
    infer=infer.all_to_all,
    collective=True,
)
op("collective_broadcast", "input", {"replica_groups": "any"}, infer=infer.same, collective=True)
# A value that all chips have becomes the parts of the chips (full_to_shard), or the reverse (shard_to_full). The shape
# has the number of parts of each dimension. `shard_dims` are the dimensions that rows and columns split, or -1.
op(
    "mesh_shard",
    "input",
    {"shard_type": ("str", "devices"), "shard_direction": "str", "shard_shape": "i64s", "shard_dims": "i64s"},
    infer=infer.mesh_shard,
    collective=True,
)

# An op of the user with a kernel and this number of results. `func_name` is its text on the wire.
for count in range(1, MOST_RESULTS + 1):
    op(f"custom_{count}", "ins*", {"func_name": "str"}, results=" ".join(f"out_{i}" for i in range(count)))

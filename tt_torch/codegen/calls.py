"""How each op of the binary is called in the `ttnn` package.

Most calls follow from the declaration of the op in our TTNN dialect, or from the member of an element-wise family. Each
other wire table has a row here. A row is a call whose arguments are fields of the table:

    "ttnn.permute(in, permutation, memory_config=memory_config, pad_value=pad_value)"

A keyword argument is left out if its field is absent. `a.b` is the field `b` of the field `a`; a tensor also has
`shape`, `dtype`, `layout` and `memory_config`. `f(a)` is the result of `VALUES["f"]` (values.py) for the field `a`,
or of `OF_TENSORS["f"]` for the name of the tensor `a`.
An argument that starts with a capital letter, such as `True`, is Python text and not a field; `Device` is the device
of the program. Generated programs and the conformance check are made from these rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tt_torch.mlir import ods
from tt_torch.mlir.ttnn import dialect
from tt_torch.wire import custom_ops, facts, schema
from tt_torch.wire.messages import Record


@dataclass(frozen=True, slots=True)
class Argument:
    keyword: str  # empty: positional
    path: str
    convert: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    function: str
    arguments: tuple[Argument, ...]


# Reductions and some other ops have no field for the placement of their result: the result's descriptor has it.
PLACED = "memory_config=out.memory_config"
COMPUTE = "compute_kernel_config=compute(compute_config)"
SLIDING = (
    "in_channels=in_channels, out_channels=out_channels, batch_size=batch_size, input_height=input_height, "
    "input_width=input_width, kernel_size=kernel_size, stride=stride, padding=padding, "
    "dilation=dilation, groups=groups"
)
CONFIGURED = (
    "conv_config=conv_config(conv2d_config), compute_config=compute(compute_config), "
    "slice_config=slice_config(conv2d_slice_config)"
)
FUTURE = "input_memory_config=input_memory_config, input_layout=input_tensor_layout"
FUTURE_TYPES = "device=device, input_dtype=input_dtype, output_dtype=output_dtype"
POOL = "in, batch_size, input_height, input_width, channels, kernel_size, stride, pool_padding(padding)"
POOLED = (
    "memory_config=memory_config, applied_shard_scheme=applied_shard_scheme, "
    "reallocate_halo_output=reallocate_halo_output, config_tensor_in_dram=config_tensors_in_dram"
)
PRODUCT = (
    "transpose_a=transpose_a, transpose_b=transpose_b, memory_config=out.memory_config, dtype=out.dtype, "
    f"activation=text(activation), program_config=program_config(matmul_program_config), {COMPUTE}"
)
LINE = (
    "cluster_axis=cluster_axis, subdevice_id=sub_device(sub_device_id), num_links=num_links, topology=topology, "
    "memory_config=memory_config"
)
CREATED = "dtype, layout, device, memcfg"

ROWS = {
    # layout and placement
    "ToLayoutOp": "ttnn.to_layout(in, layout, dtype=dtype, memory_config=memcfg)",
    "ToDeviceOp": "ttnn.to_device(in, device, memory_config=memcfg)",
    "FromDeviceOp": "ttnn.from_device(in)",
    "BitcastConvertOp": "ttnn.bitcast(in, dtype, memory_config=memcfg)",
    "AssignOp": "ttnn.assign(input, memory_config=output.memory_config, dtype=output_dtype)",
    "DeallocateOp": "ttnn.deallocate(in, force=force)",
    # recordings
    "WriteTensorOp": "ttnn.copy_host_to_device_tensor(host_tensor, device_tensor, cq_id=queue(cq_id))",
    "CopyOp": "ttnn.copy(src, dst)",
    "BeginTraceCaptureOp": "ttnn.begin_trace_capture(device, cq_id=queue(cq_id))",
    "EndTraceCaptureOp": "ttnn.end_trace_capture(device, trace_id, cq_id=queue(cq_id))",
    "ExecuteTraceOp": "ttnn.execute_trace(device, trace_id, cq_id=queue(cq_id), blocking=blocking)",
    # creation
    "EmptyOp": f"ttnn.empty(out.shape, {CREATED})",
    "FullOp": f"ttnn.full(shape, number(fill_value), {CREATED})",
    "NamedFullOp.Zeros": f"ttnn.zeros(shape, {CREATED})",
    "NamedFullOp.Ones": f"ttnn.ones(shape, {CREATED})",
    "ArangeOp": (
        "ttnn.arange(whole(start), whole(end), whole(step), dtype=dtype, device=device, memory_config=memcfg, "
        "layout=layout)"
    ),
    "RandOp": (
        "ttnn.rand(size, device, dtype=dtype, layout=layout, memory_config=memcfg, low=low, high=high, seed=seed)"
    ),
    # element-wise; the plain families are below
    "EltwiseUnaryOp.LeakyRelu": "ttnn.leaky_relu(in, params.parameter, memory_config=memory_config)",
    "EltwiseUnaryCompositeOp.ClampScalar": (
        "ttnn.clamp(in, min=number(params.min), max=number(params.max), memory_config=memory_config)"
    ),
    "EltwiseUnaryCompositeOp.ClampTensor": (
        "ttnn.clamp(in, min=params.min, max=params.max, memory_config=memory_config)"
    ),
    "EltwiseBinaryCompositeScalarOp.PowScalar": "ttnn.pow(lhs, number(rhs), memory_config=memory_config)",
    # reductions
    "ReductionOp.Sum": f"ttnn.sum(in, dim_arg, keep_dim, {PLACED}, {COMPUTE})",
    "ReductionOp.Mean": f"ttnn.mean(in, dim_arg, keep_dim, {PLACED}, {COMPUTE})",
    "ReductionOp.Max": f"ttnn.max(in, dim_arg, keep_dim, {PLACED}, {COMPUTE})",
    "ReductionOp.Min": f"ttnn.min(in, dim_arg, keep_dim, {PLACED}, {COMPUTE})",
    # matrix products
    "MatmulOp": f"ttnn.matmul(a, b, {PRODUCT})",
    "LinearOp": f"ttnn.linear(a, b, bias=bias, {PRODUCT})",
    # convolution and pooling
    "Conv2dOp": (
        f"ttnn.conv2d(input_tensor=input, weight_tensor=weight, bias_tensor=bias, device=device, {SLIDING}, "
        f"dtype=output_dtype, {CONFIGURED}, memory_config=out.memory_config)"
    ),
    "ConvTranspose2dOp": (
        "ttnn.conv_transpose2d(input_tensor=input, weight_tensor=weight, bias_tensor=bias, device=device, "
        f"{SLIDING}, output_padding=output_padding, dtype=output_dtype, "
        "conv_config=conv_config(conv2d_config), compute_config=compute(compute_config), "
        "memory_config=memory_config)"
    ),
    "PrepareConv2dWeightsOp": (
        f"ttnn.prepare_conv_weights(weight_tensor=weight_tensor, {FUTURE}, weights_format=text(weights_format), "
        f"has_bias=has_bias, {SLIDING}, {FUTURE_TYPES}, {CONFIGURED})"
    ),
    "PrepareConv2dBiasOp": (
        f"ttnn.prepare_conv_bias(bias_tensor=bias_tensor, {FUTURE}, {SLIDING}, {FUTURE_TYPES}, {CONFIGURED})"
    ),
    "PrepareConvTranspose2dWeightsOp": (
        f"ttnn.prepare_conv_transpose2d_weights(weight_tensor=weight_tensor, {FUTURE}, "
        f"weights_format=text(weights_format), has_bias=has_bias, {SLIDING}, {FUTURE_TYPES}, "
        "conv_config=conv_config(conv2d_config), compute_config=compute(compute_config), "
        "mirror_kernel=mirror_kernel)"
    ),
    "PrepareConvTranspose2dBiasOp": (
        f"ttnn.prepare_conv_transpose2d_bias(bias_tensor=bias_tensor, {FUTURE}, {SLIDING}, {FUTURE_TYPES}, "
        "conv_config=conv_config(conv2d_config), compute_config=compute(compute_config))"
    ),
    "Pool2dOp.MaxPool2d": f"ttnn.max_pool2d({POOL}, dilation, ceil_mode=ceil_mode, {POOLED}, output_layout=out.layout)",
    "Pool2dOp.AvgPool2d": (
        f"ttnn.avg_pool2d({POOL}, ceil_mode=ceil_mode, count_include_pad=extra_params.count_include_pad, {POOLED}, "
        "output_layout=out.layout)"
    ),
    "MaxPool2dWithIndicesOp": (
        f"ttnn.max_pool2d({POOL}, dilation, ceil_mode=ceil_mode, {POOLED}, return_indices=True)"
    ),
    "Conv3dOp": (
        "ttnn.experimental.conv3d(input_tensor=input, weight_tensor=weight, bias_tensor=bias, device=device, "
        "dtype=output_dtype, output_channels=out_channels, kernel_size=kernel_size, stride=stride, padding=padding, "
        "padding_mode=text(padding_mode), groups=groups, memory_config=memory_config, "
        "compute_kernel_config=compute(compute_config))"
    ),
    "GlobalAvgPool2dOp": "ttnn.global_avg_pool2d(in, memory_config=memory_config, dtype=dtype)",
    "UpsampleOp": "ttnn.upsample(in, scale(scale_factor), mode=text(mode), memory_config=memory_config)",
    # data movement
    "PermuteOp": "ttnn.permute(in, permutation, memory_config=memory_config, pad_value=pad_value)",
    "SliceOp.SliceStaticOp": f"ttnn.slice(in, params.begins, params.ends, step, {PLACED})",
    "SliceOp.SliceDynamicOp": f"ttnn.slice(in, params.begins, params.ends, step, {PLACED})",
    "PadOp": "ttnn.pad(in, pairs(padding), value, use_multicore=use_multicore, memory_config=memcfg)",
    "RepeatInterleaveOp": "ttnn.repeat_interleave(input, repeats, dim, memory_config=memory_config)",
    "GatherOp": "ttnn.gather(input, dim, index, memory_config=memory_config)",
    "ScatterOp": (
        "ttnn.scatter(input, dim, index, source, memory_config=memory_config, reduce=reduce(scatter_reduce_type))"
    ),
    "EmbeddingOp": "ttnn.embedding(input, weight, layout=out.layout, dtype=out.dtype, memory_config=out.memory_config)",
    # normalization and attention
    "SoftmaxOp": f"ttnn.softmax(in, dimension, {PLACED}, {COMPUTE}, numeric_stable=numeric_stable)",
    "UpdateCacheOp": "ttnn.update_cache(cache, input, element(update_index), batch_offset=batch_offset)",
    "PagedScaledDotProductAttentionDecodeOp": (
        "ttnn.transformer.paged_scaled_dot_product_attention_decode(query, key, value, page_table, "
        "is_causal=is_causal, attn_mask=attention_mask, cur_pos_tensor=cur_pos_tensor, "
        "attention_sink=attention_sink, scale=scale, sliding_window_size=sliding_window_size, memory_config=memcfg)"
    ),
    "FillCacheOp": "ttnn.fill_cache(cache, input, batch_offset)",
    "PagedUpdateCacheOp": (
        "ttnn.experimental.paged_update_cache(cache, input, update_idxs_tensor=update_index, page_table=page_table, "
        "share_cache=share_cache)"
    ),
    "PagedFillCacheOp": (
        "ttnn.experimental.paged_fill_cache(cache, input, page_table, batch_idx_tensor=batch_idx_tensor)"
    ),
    "RMSNormOp": (
        f"ttnn.rms_norm(input, epsilon=epsilon, weight=weight, bias=bias, memory_config=memory_config, {COMPUTE})"
    ),
    "LayerNormOp": "ttnn.layer_norm(input, epsilon=epsilon, weight=weight, bias=bias, memory_config=memory_config)",
    "BatchNormInferenceOp": (
        "ttnn.batch_norm(input, running_mean=running_mean, running_var=running_var, eps=epsilon, "
        f"weight=weight, bias=bias, memory_config=out.memory_config, {COMPUTE})"
    ),
    "ScaledDotProductAttentionOp": (
        "ttnn.transformer.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, "
        "is_causal=is_causal, scale=scale, sliding_window_size=sliding_window_size, "
        "attention_sink=attention_sink, memory_config=memcfg)"
    ),
    "SplitQueryKeyValueAndSplitHeadsOp": (
        "ttnn.transformer.split_query_key_value_and_split_heads(in, kv_input_tensor=kv_input, num_heads=num_heads, "
        "num_kv_heads=num_kv_heads, transpose_key=transpose_key, memory_config=memcfg)"
    ),
    "RotaryEmbeddingOp": (
        "ttnn.experimental.rotary_embedding(input, cos_cache, sin_cache, token_index=token_index, "
        f"memory_config=memcfg, {COMPUTE})"
    ),
    "RotaryEmbeddingLlamaOp": (
        "ttnn.experimental.rotary_embedding_llama(input, cos_cache, sin_cache, trans_mat, "
        f"is_decode_mode=is_decode_mode, memory_config=memcfg, {COMPUTE})"
    ),
    "ConcatenateHeadsOp": "ttnn.transformer.concatenate_heads(in, memory_config=memcfg)",
    "NLPConcatHeadsOp": "ttnn.experimental.nlp_concat_heads(in, memory_config=memcfg)",
    # exchange between the chips of a mesh
    "AllGatherOp": f"ttnn.all_gather(in, all_gather_dim, {LINE})",
    "AllReduceOp": f"ttnn.all_reduce(in, {LINE})",
    "ReduceScatterOp": f"ttnn.reduce_scatter(in, scatter_dim, {LINE}, {COMPUTE})",
    "MeshPartitionOp": "ttnn.mesh_partition(in, dim, cluster_axis=cluster_axis, memory_config=memory_config)",
    "PointToPointOp": (
        "ttnn.point_to_point(in, sender_coord=coordinate(sender_coord), receiver_coord=coordinate(receiver_coord), "
        "output_tensor=optional_output_tensor)"
    ),
    "CreateGlobalSemaphoreOp": "ttnn.create_global_semaphore(Device, core_ranges(core_range_set), initial_value)",
    "DistributedRMSNormOp": (
        "ttnn.fused_rms_minimal(input, norm_config(program_config), cluster_axis, Device, semaphore(semaphore), "
        "topology=topology, num_links=num_links, subdevice_id=sub_device(sub_device_id), "
        "residual_input_tensor=residual, epsilon=epsilon, weight=weight, stats=stats, memory_config=memory_config, "
        "compute_kernel_config=compute(compute_config))"
    ),
    "DistributeTensorOp": "ttnn.distribute_tensor(in, mapper(mapper_config), device)",
    "AggregateTensorOp": "ttnn.aggregate_tensor(in, composer(composer_config))",
}

# Members of element-wise families whose ttnn function is not the member's name in snake case.
RENAMED = {
    "IsFinite": "isfinite", "Equal": "eq", "NotEqual": "ne", "GreaterEqual": "ge", "GreaterThan": "gt",
    "LessEqual": "le", "LessThan": "lt",
}  # fmt: skip
FAMILIES = {
    "EltwiseUnaryOp": "ttnn.{}(in, memory_config=memory_config)",
    "EltwiseBinaryOp": "ttnn.{}(lhs, rhs, dtype=output_dtype, memory_config=memory_config)",
    "EltwiseBinaryCompositeOp": "ttnn.{}(lhs, rhs, memory_config=memory_config)",
}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _family_rows() -> Iterator[tuple[str, str]]:
    wire = schema.load()
    for table, text in FAMILIES.items():
        (kind,) = (field.ref for field in wire.fields(table) if field.name == "type")
        for member in wire.enum(kind).values:
            yield f"{table}.{member}", text.format(RENAMED.get(member, snake(member)))


def _declared_rows() -> Iterator[tuple[str, str]]:
    """The usual calls of ops of our dialect. The function has the op's name. It takes the operands and the attributes
    in their order, then the data type if it is a field that follows from the result, and then the placement."""
    for op in (op for name, op in ods.OPS.items() if name.startswith("ttnn.")):
        if op.facts["table"] == custom_ops.TABLE:
            continue  # functions of the user, which user_ops.py calls
        table, member = op.facts["table"], op.facts["fixed"].get("type")
        fields = dialect.wire_fields(table)
        arguments = [operand.name for operand in op.operands] + list(op.attrs)
        arguments += ["dtype=dtype"] if "dtype" in op.facts.get("derived", ()) else []
        placement = next((name for name in ("memory_config", "memcfg") if name in fields), "out.memory_config")
        text = f"{op.name}({', '.join(arguments)}, memory_config={placement})"
        yield (f"{table}.{member}" if member else table), text


@cache
def rows() -> dict[str, Row]:
    """All rows, by the key of the op (`facts.key_of`)."""
    texts = {**dict(_declared_rows()), **dict(_family_rows()), **ROWS}
    return {key: _parse(text) for key, text in texts.items()}


def _parse(text: str) -> Row:
    function, _, rest = text.partition("(")
    return Row(function, tuple(map(_argument, rest.removesuffix(")").split(", "))))


def _argument(text: str) -> Argument:
    keyword, _, value = text.rpartition("=")
    convert, inside, path = value.rpartition("(")
    return Argument(keyword, path.removesuffix(")") if inside else value, convert)


def unread(table: str, record: Record) -> Iterator[str]:
    """The fields that are set in a table, or in the tables in it, although the default schema does not have them.

    The rows are written for the fields of the default schema, so no argument has the value of such a field.
    """
    wire, fields = schema.load(), dialect.wire_fields(table)
    for name, value in record.items():
        field = fields.get(name)
        if field is None:
            if value:
                yield f"{table.rpartition('.')[2]}.{name}"
        elif field.type == "union":
            for member, part in value.items():
                yield from unread(wire.enum(field.ref).refs[member], part)
        elif field.type == "obj" and not wire.is_struct(field.ref) and not facts.is_tensor(value):
            yield from unread(field.ref, value)


def missing(keys: Iterable[str]) -> list[str]:
    """The keys that have no row, sorted and without duplicates."""
    return sorted(set(keys) - rows().keys())

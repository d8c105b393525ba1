"""Attention that the library's fused op does not support."""

from __future__ import annotations

import math

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttnn import heads, legality
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.passes.workarounds.registry import full, make, reshape, slices, workaround
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import TILE


@workaround("ttnn.scaled_dot_product_attention")
def whole_mask(op: Op, b: Builder) -> Value | None:
    """A mask gets an element for each query and key. A causal attention of other sizes gets such a mask, too:

    "Mask batch dim must either be 1 (to be broadcasted across all batches) or must match Q batch dimension"
    "Mask num_heads must either be 1 (to be broadcasted across all heads) or must match Q heads dimension"
    "Mask sequence length must match Q sequence length"
    "Causal SDPA requires Q and K to have the same sequence length. Got Q: 4, K: 8"
    """
    query, key, value, mask = ods.operands_of(op).values()
    if not _sizes_fit(op) or not heads.unfit_mask(op.operation):
        return None
    rows, columns = shape(query)[2], shape(key)[2]
    parts = []
    if mask is not None:
        sizes = [1] * (4 - len(shape(mask))) + shape(mask)
        factors = [1, 1, rows // sizes[2], columns // sizes[3]]
        mask = reshape(b, mask, sizes)
        parts.append(mask if factors == [1] * 4 else make(b, "repeat", mask, repeat_dims=factors))
    if ods.attr(op, "is_causal"):
        parts.append(reshape(b, _causal_mask(b, rows, columns, layout_of(query).dtype), [1, 1, rows, columns]))
    whole = parts[0] if len(parts) == 1 else make(b, "add", *parts)
    scale = ods.attr(op, "scale")
    return make(b, "scaled_dot_product_attention", query, key, value, whole, is_causal=False, scale=scale)


def _sizes_fit(op: Op) -> bool:
    """Whether the fused op takes query, key and value."""
    return legality.takes(op, op.operands[0]) and not heads.unfit_sizes(op.operation)


@workaround("ttnn.scaled_dot_product_attention")
def attention_in_steps(op: Op, b: Builder) -> Value | None:
    """Attention that the fused op does not support becomes a product, a softmax and a product:

    "Data type of input tensor must be BFLOAT16, BFLOAT8_B, or BFLOAT4_B and is DataType::FLOAT32"
    "Padding is not supported on the head_dim dimension"
    """
    if _sizes_fit(op):
        return None
    query, key, value, mask = ods.operands_of(op).values()
    (batch, count, length, size), own = shape(query), shape(key)[1]
    scale = ods.attr(op, "scale")
    factor = full(b, size**-0.5 if scale is None else scale, layout_of(query).dtype)
    query = make(b, "multiply", reshape(b, query, [batch, own, count // own * length, size]), factor)
    scores = make(b, "matmul", query, key, transpose_a=False, transpose_b=True)
    masks = [] if mask is None else [mask]
    if ods.attr(op, "is_causal"):
        masks.append(_causal_mask(b, length, shape(scores)[-1], layout_of(query).dtype))
    for each in masks:
        scores = make(b, "add", scores, _for_groups(b, each, own, count // own, length))
    weights = make(b, "softmax", scores, dimension=3, numeric_stable=True)
    return make(b, "matmul", weights, value, transpose_a=False, transpose_b=False)


def _for_groups(b: Builder, mask: Value, own: int, group: int, length: int) -> Value:
    """A mask for scores (B, own, group * length, S2), in which the heads that share keys are below one another."""
    batches, count, rows, columns = sizes = [1] * (4 - len(shape(mask))) + shape(mask)
    if group == 1 or count == rows == 1:
        return mask
    mask = reshape(b, mask, sizes)
    if rows != length:
        mask = make(b, "repeat", mask, repeat_dims=[1, 1, length, 1])
    if count == 1:
        return make(b, "repeat", mask, repeat_dims=[1, 1, group, 1])
    return reshape(b, mask, [batches, own, group * length, columns])


def _causal_mask(b: Builder, rows: int, columns: int, dtype: str) -> Value:
    """0 where a row may attend to a column, otherwise -inf."""
    down = reshape(b, _count(b, rows), [rows, 1])
    across = reshape(b, _count(b, columns), [1, columns])
    sees = make(b, "ge", down, across, dtype="BFloat16")
    zero, never = full(b, 0.0, dtype), full(b, -math.inf, dtype)
    return make(b, "where", sees, zero, never, dtype=dtype)


def _count(b: Builder, length: int) -> Value:
    kind = with_layout([length], Layout("Float32", tiled=False))
    return b("ttnn.arange", type=kind, start=0.0, end=float(length), step=1.0)


@workaround("ttnn.split_query_key_value_and_split_heads")
def heads_that_are_not_whole_tiles(op: Op, b: Builder) -> list[Value] | None:
    """If heads are not whole tiles, they are sliced, and their dimension is moved before that of the sequence:

    "Invalid head size: 8. The head size must be a multiple of the tile width (32)"
    """
    operands, a = ods.operands_of(op), ods.attrs_of(op)
    x, size = operands["in"], shape(op.results[0])[-1]
    if size % TILE == 0 or operands["kv_input"] is not None or a["transpose_key"]:
        return None
    batch, length, _ = shape(x)
    begin, parts = 0, []
    for result in op.results:
        heads = shape(result)[1]
        part = slices(b, x, 2, begin, begin + heads * size)
        apart = reshape(b, part, [batch, length, heads, size])
        parts.append(make(b, "permute", apart, permutation=[0, 2, 1, 3]))
        begin += heads * size
    return parts


@workaround("ttnn.concatenate_heads")
def concatenation_of_heads(op: Op, b: Builder) -> Value | None:
    """If heads are not whole tiles, their dimension is moved after that of the sequence, and the result is reshaped:

    "Head size must be a multiple of 32 but was found to be 8"
    """
    (x,) = op.operands
    if shape(x)[-1] % TILE == 0:
        return None
    return reshape(b, make(b, "permute", x, permutation=[0, 2, 1, 3]), shape(op.results[0]))

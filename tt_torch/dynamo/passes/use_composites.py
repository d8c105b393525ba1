"""Replaces ATen ops that TTNN has by composites, which no later stage decomposes."""

from __future__ import annotations

import math

import torch
from torch.fx import Node

from tt_torch.dynamo import composites
from tt_torch.dynamo.passes.rewriting import Rules, call, composite, fill, only_first, value
from tt_torch.dynamo.types import Arguments
from tt_torch.torch_private.ops import schema
from tt_torch.torch_private.tensors import unset_fake_temporarily

aten, prims = torch.ops.aten, torch.ops.prims
RULES = Rules()


@RULES(aten.gelu.default)
def gelu(node: Node, a: Arguments) -> Node:
    return composite(node, composites.gelu_tanh if a["approximate"] == "tanh" else composites.gelu, a["self"])


@RULES(aten.erfc.default, aten.special_erfc.default)
def erfc(node: Node, a: Arguments) -> Node | None:
    return composite(node, composites.erfc, a["self"]) if value(a["self"]).is_floating_point() else None


@RULES(*composites.REPLACED)
def as_declared(node: Node, a: Arguments) -> Node:
    """Operands get the dtype of the result; a negative dimension is counted from the front."""
    op, result, given = composites.REPLACED[node.target], value(node), list(a.values())
    parameters = schema(op).arguments
    operands = [_operand(node, v, result.dtype) for v, p in zip(given, parameters, strict=False) if not p.kwarg_only]
    attributes = {p.name: a[p.name] for p in parameters if p.kwarg_only}
    if "dim" in attributes:
        attributes["dim"] %= result.dim()
    return composite(node, op, *operands, **attributes)


@RULES(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(node: Node, a: Arguments) -> Node:
    """The remainder has the sign of the divisor in PyTorch and TTNN, but of the dividend in StableHLO."""
    dtype = value(node).dtype
    return composite(node, composites.remainder, *(_operand(node, v, dtype) for v in (a["self"], a["other"])))


def _operand(node: Node, given: Node | float, dtype: torch.dtype) -> Node:
    """An operand as a tensor of the result's dtype, as after type promotion."""
    if not isinstance(given, Node):
        return fill(node, [1] * value(node).dim(), given, dtype)
    return given if value(given).dtype is dtype else call(node, prims.convert_element_type.default, given, dtype)


@RULES(aten.convolution.default)
def transposed_convolution(node: Node, a: Arguments) -> Node | None:
    """A transposed convolution. One-dimensional inputs become images of height 1."""
    x, weight, spatial = a["input"], a["weight"], len(a["stride"])
    if not a["transposed"] or spatial > 2:
        return None
    window = {key: list(a[key]) for key in ("stride", "padding", "output_padding", "dilation")}
    if spatial == 1:
        x, weight = (call(node, aten.unsqueeze.default, v, 2) for v in (x, weight))
        window = {key: [int(key in ("stride", "dilation")), *values] for key, values in window.items()}
    result = call(node, composites.conv_transpose2d, x, weight, a["bias"], **window, groups=a["groups"])
    return result if spatial == 2 else call(node, aten.squeeze.dim, result, 2)


@RULES(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(node: Node, a: Arguments) -> Node | None:
    """Max pooling if the positions are read, for example by gradients or unpooling."""
    if only_first(node):
        return None
    window = {key: list(a[key]) for key in ("kernel_size", "stride", "padding", "dilation")}
    return composite(node, composites.max_pool2d_with_indices, a["self"], **window)


@RULES(aten.sort.default, aten.sort.stable)
def sort(node: Node, a: Arguments) -> Node:
    order = {"descending": a["descending"], "stable": bool(a.get("stable"))}
    return composite(node, composites.sort, a["self"], dim=a["dim"] % value(node).dim(), **order)


@RULES(aten.scatter.src)
def scatter(node: Node, a: Arguments) -> Node | None:
    return _scatter(node, a, "")


@RULES(aten.scatter_add.default)
def scatter_add(node: Node, a: Arguments) -> Node | None:
    return _scatter(node, a, "sum")


@RULES(aten.scatter_reduce.two)
def scatter_reduce(node: Node, a: Arguments) -> Node | None:
    return _scatter(node, a, a["reduce"]) if a["include_self"] and a["reduce"] != "mean" else None


def _scatter(node: Node, a: Arguments, reduce: str) -> Node | None:
    """A scatter. TTNN's op requires a source with the shape of the indices, so the source is sliced."""
    x, index, source = a["self"], a["index"], a["src"]
    if not value(x).dim() or value(x).dtype is torch.bool:
        return None
    for dim, size in enumerate(value(index).shape):
        if value(source).shape[dim] != size:
            source = call(node, aten.slice.Tensor, source, dim, 0, size)
    return composite(node, composites.scatter, x, index, source, dim=a["dim"] % value(x).dim(), reduce=reduce)


@RULES(aten.native_layer_norm.default)
def layer_norm(node: Node, a: Arguments) -> Node | None:
    # Training also reads the mean and the reciprocal deviation; TTNN's op does not give them.
    if len(a["normalized_shape"]) != 1 or not only_first(node):
        return None
    if a["weight"] is None and a["bias"] is not None:
        return None  # only the position of an operand says which one it is
    attributes = {"normalized_shape": list(a["normalized_shape"]), "epsilon": a["eps"]}
    return composite(node, composites.layer_norm, a["input"], a["weight"], a["bias"], **attributes)


@RULES(aten._scaled_dot_product_flash_attention_for_cpu.default)
def attention(node: Node, a: Arguments) -> Node | None:
    query, key, content = (value(a[name]) for name in ("query", "key", "value"))
    alike = key.shape[:2] == content.shape[:2] and query.shape[-1] == content.shape[-1]
    if a["dropout_p"] or not alike or query.shape[0] != key.shape[0] or not only_first(node):
        return None
    key, content = (_heads(node, a[name], query.shape[1]) for name in ("key", "value"))
    scale = a["scale"] if a["scale"] is not None else 1 / math.sqrt(query.shape[-1])
    causal, known = a["is_causal"], _known_mask(a["attn_mask"])
    if known is not None and not causal and (plain := _plain(known, query.shape[2], value(a["key"]).shape[2])):
        causal, a = plain == "causal", a | {"attn_mask": None}
    mask = _additive(node, a["attn_mask"], query.dtype)
    operands = [a["query"], key, content]
    # Eager PyTorch adds a mask of float32 to narrower queries' scores in float32.
    wide = query.dtype if mask is None else torch.promote_types(query.dtype, value(mask).dtype)
    if wide is not query.dtype:
        operands = [call(node, aten._to_copy.default, x, dtype=wide) for x in operands]
    attributes = {"is_causal": causal, "scale": scale}
    result = composite(node, composites.scaled_dot_product_attention, *operands, mask, **attributes)
    if wide is not query.dtype:
        with value(node).fake_mode:
            result.meta["val"] = value(node).to(wide)
        result = call(node, aten._to_copy.default, result, dtype=query.dtype)
    if mask is None or (known is not None and _each_query_sees_a_key(known)):
        return result
    return _zero_where_nothing_is_seen(node, result, mask)


def _known_mask(mask: Node | None) -> torch.Tensor | None:
    """The mask, if its elements are known at compile time."""
    if mask is None:
        return None
    if mask.target is aten.full.default and not isinstance(mask.args[1], Node):
        with unset_fake_temporarily():
            return torch.full((1, 1), mask.args[1])
    return mask.meta.get("constant")


def _plain(mask: torch.Tensor, rows: int, columns: int) -> str:
    """The kind of a mask: "all" if it changes nothing, "causal" if query i sees the keys 0 to i, or "".

    The lowest number hides a key as -inf does, if the query sees at least one key. In both kinds, each query does.
    """
    with unset_fake_temporarily():
        sees = mask if mask.dtype is torch.bool else mask == 0
        if sees.all():
            return "all"
        if mask.dtype is not torch.bool and not (sees | (mask <= _lowest(mask.dtype))).all():
            return ""
        whole = sees.shape[-2:] == (rows, columns)
        return "causal" if whole and (sees == torch.ones(rows, columns, dtype=torch.bool).tril()).all() else ""


def _lowest(dtype: torch.dtype) -> float:
    """The lowest number of a type, or the lowest of bfloat16 if this is higher. Models write the lowest number first,
    and then change the type."""
    return max(torch.finfo(dtype).min, torch.finfo(torch.bfloat16).min)


def _each_query_sees_a_key(mask: torch.Tensor) -> bool:
    with unset_fake_temporarily():
        return bool((mask if mask.dtype is torch.bool else mask != -math.inf).any(-1).all())


def _zero_where_nothing_is_seen(node: Node, result: Node, mask: Node) -> Node:
    """0 for a query that may attend to no key, as PyTorch defines it. The softmax of such a row is NaN.

    For example, a batch of prompts that are padded on the left has such rows, and the NaN of their keys and values
    would reach all later positions: 0 * NaN is NaN.
    """
    best = call(node, aten.amax.default, mask, [-1], True)
    sees = call(node, aten.ne.Scalar, best, -math.inf)
    zero = call(node, aten.scalar_tensor.default, 0.0, dtype=value(result).dtype, device=value(node).device)
    return call(node, aten.where.self, sees, result, zero)


def _heads(node: Node, x: Node, heads: int) -> Node:
    """Repeats the heads, until there are as many as the query has. Each head is for a group of the query's heads."""
    batch, own, length, size = value(x).shape
    if own == heads:
        return x
    grouped = call(node, aten.unsqueeze.default, x, 2)
    grouped = call(node, aten.expand.default, grouped, [batch, own, heads // own, length, size])
    return call(node, aten.reshape.default, grouped, [batch, heads, length, size])


def _additive(node: Node, mask: Node | None, dtype: torch.dtype) -> Node | None:
    """A boolean mask (True takes part) as a mask that is added to the scores."""
    if mask is None or value(mask).dtype is not torch.bool:
        return mask
    place = {"dtype": dtype, "device": value(node).device}
    zero, lowest = (call(node, aten.scalar_tensor.default, v, **place) for v in (0.0, -math.inf))
    return call(node, aten.where.self, mask, zero, lowest)


@RULES(aten._native_batch_norm_legit_no_training.default)
def batch_norm(node: Node, a: Arguments) -> Node | None:
    """Batch norm in the form with one output, which is one op in StableHLO."""
    if not only_first(node):
        return None
    sizes, dtype = value(a["running_mean"]).shape, value(a["running_mean"]).dtype
    weight, bias = (a[name] or fill(node, sizes, neutral, dtype) for name, neutral in (("weight", 1.0), ("bias", 0.0)))
    statistics = (a["running_mean"], a["running_var"])
    return call(
        node, aten.batch_norm.default, a["input"], weight, bias, *statistics, False, a["momentum"], a["eps"], False
    )


def use_composites(graph: torch.fx.Graph) -> None:
    RULES.apply(graph)

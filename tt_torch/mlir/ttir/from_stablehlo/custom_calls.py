"""Custom calls, by the target's name: marks of XLA and tt-xla, functions that StableHLO lacks, tt-xla's own ops.

Attributes of tt-xla's ops are strings, as its frontend hands them on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttir.from_stablehlo.arranging import part
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.dynamic import written
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES, unsupported

Expand = Callable[[Builder, list[Any], dict[str, Any]], Any]

# Who shards what how, the roles and types of arguments: nothing that one device computes.
MARKS = (
    "Sharding SPMDFullToShardShape SPMDShardToFullShape xla.sdy.FuncResultSharding xla.sdy.GlobalToLocalShape "
    "xla.sdy.LocalToGlobalShape xla.sdy.ShardingGroup tt.mark_argument tt.sharding_constraint tt.weight_dtype_override"
).split()


def topk(b: Builder, operands: list[Any], a: dict[str, Any]) -> Any:
    (x,) = operands
    return b("ttir.topk", x, k=a["k"], dim=len(shape(x)) - 1, largest=a["largest"], sorted=True)


def fill_cache(b: Builder, operands: list[Any], a: dict[str, Any]) -> Any:
    """`x` over the first positions of a part of the batch. The cache is (B, heads, S, D), `x` is (b, heads, s, D)."""
    cache, x = operands
    row = int(a["batch_offset"])
    rows = part(b, cache, 0, row, row + shape(x)[0])
    return _joined(b, cache, 0, row, _joined(b, rows, 2, 0, x))


def update_cache(b: Builder, operands: list[Any], a: dict[str, Any]) -> Any:
    """One position of each user. The cache is (B, heads, S, D), `x` is (1, heads, users, D), the position (1)."""
    cache, x, position = operands
    row, users = int(a["batch_offset"]), shape(x)[2]
    rows = b("ttir.permute", x, permutation=[2, 1, 0, 3])
    rows = written(b, part(b, cache, 0, row, row + users), rows, [None, None, position, None], [2])
    return _joined(b, cache, 0, row, rows)


def attention(b: Builder, operands: list[Any], a: dict[str, Any]) -> Any:
    """Query, key and value of (B, heads, S, D); a mask is added to the scores, and is what is causal then."""
    query, mask = operands[0], operands[3:]
    if _is_true(a, "has_attention_sink") or "sliding_window_size" in a:
        return None
    causal = _is_true(a, "is_causal", "true") and not mask
    return b("ttir.scaled_dot_product_attention", *operands, is_causal=causal, scale=_scale(query, a))


def attention_decode(b: Builder, operands: list[Any], a: dict[str, Any]) -> Any:
    """One query per user, (1, users, heads, D), that sees the keys up to its position; key and value are as above."""
    query, key, value, position, *mask = operands
    if _is_true(a, "has_attention_sink") or "sliding_window_size" in a:
        return None
    users, heads = shape(query)[1:3]
    mask = [b("ttir.permute", m, permutation=[0, 2, 1, 3]) for m in mask]
    if _is_true(a, "is_causal", "true"):
        mask = [_visible(b, query, position, shape(key)[2])]
    flat = b("ttir.reshape", query, shape=[users, heads, 1, shape(query)[3]])
    out = b("ttir.scaled_dot_product_attention", flat, key, value, *mask, is_causal=False, scale=_scale(query, a))
    return b("ttir.reshape", out, shape=[1, users, heads, shape(value)[3]])


def _visible(b: Builder, query: Any, position: Any, keys: int) -> Any:
    """A mask of (users, 1, 1, keys): nothing after each user's position."""
    users = shape(position)[0]
    places = b(
        "ttir.arange", type=tensor([1, 1, 1, keys], dtype(position)), start=0, end=keys, step=1, arange_dimension=3
    )
    seen = b("ttir.le", places, b("ttir.reshape", position, shape=[users, 1, 1, 1]))
    none, hidden = (full(b, [users, 1, 1, keys], dtype(query), v) for v in (0.0, -math.inf))
    return b("ttir.where", seen, none, hidden)


def _is_true(a: dict[str, Any], name: str, default: str = "false") -> bool:
    return bool(a.get(name, default).lower() == "true")


def _scale(query: Any, a: dict[str, Any]) -> float:
    return float(a["scale"]) if "scale" in a else shape(query)[-1] ** -0.5


def _joined(b: Builder, x: Any, dim: int, start: int, new: Any) -> Any:
    """`x` with `new` in the place of what it has along `dim` from `start` on."""
    end, size = start + shape(new)[dim], shape(x)[dim]
    before = [part(b, x, dim, 0, start)] if start else []
    after = [part(b, x, dim, end, size)] if end < size else []
    return b("ttir.concat", [*before, new, *after], dim=dim) if before or after else new


CALLS: dict[str, Expand] = {
    "mhlo.asinh": lambda b, operands, _: b("ttir.asinh", *operands),
    "mhlo.erf": lambda b, operands, _: b("ttir.erf", *operands),
    "mhlo.topk": topk,
    "tt.fill_cache": fill_cache,
    "tt.update_cache": update_cache,
    "tt.scaled_dot_product_attention": attention,
    "tt.scaled_dot_product_attention_decode": attention_decode,
}


@RULES.rewrites("stablehlo.custom_call")
def custom_call(op: Any, b: Builder) -> Any:
    name = ods.attr(op, "call_target_name")
    if name in MARKS:
        if [x.type for x in op.operands[: len(op.results)]] != [r.type for r in op.results]:
            raise unsupported(op, accepted="a mark that leaves the shape as it is, as on one device")
        return list(op.operands)[: len(op.results)]
    expand = CALLS.get(name)
    return expand and expand(b, list(op.operands), _attributes(op))


def _attributes(op: Any) -> dict[str, Any]:
    return (ods.attr(op, "mhlo.attributes") or {}) | (ods.attr(op, "mhlo.frontend_attributes") or {})

"""Ops of attention with one query for each user: to whole caches, and to caches in pages."""

from __future__ import annotations

from typing import Any

import torch

from tt_torch.tt_ops.registry import op, require, sizes
from tt_torch.tt_ops.shared import attended, attributes, check_mask, check_pair, check_values, gathered, visible

Tensor = torch.Tensor


def _decoded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position: Tensor | None,
    mask: Tensor | None,
    sink: Tensor | None,
    scale: float | None,
) -> Tensor:
    mask = mask.transpose(1, 2) if mask is not None else None
    if position is not None:
        mask = visible(position.reshape(-1, 1), key.shape[2])
    return attended(query.permute(1, 2, 0, 3), key, value, mask, scale, sink).permute(2, 0, 1, 3).contiguous()


def _check_decode(
    name: str,
    keys: int,
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    cur_pos_tensor: Tensor | None,
    attn_mask: Tensor | None,
    attention_sink: Tensor | None,
    is_causal: bool,
    **_: Any,
) -> None:
    """Requires one query for each user, and a position for each user if `is_causal`. A user sees `keys` keys."""
    position, sink = cur_pos_tensor, attention_sink
    got = sizes(query=query, key=key, value=value, cur_pos_tensor=position, attention_sink=sink)
    require(query.dim() == 4 and query.shape[0] == 1, name, got, "query of shape [1, users, heads, depth]")
    users, heads = query.shape[1:3]
    check_pair(name, query.permute(1, 2, 0, 3), key, value)
    require(not is_causal or position is not None, name, "is_causal=True without cur_pos_tensor", "positions")
    if position is not None:
        fits = tuple(position.shape) == (users,) and not position.is_floating_point()
        require(fits, name, got, "one position per user in cur_pos_tensor")
    check_mask(name, attn_mask, is_causal, query, (users, 1, heads, keys))
    if sink is not None:
        require(sink.dim() in (1, 2) and sink.shape[0] == heads, name, got, "attention_sink with a row per head")
        require(sink.dtype == query.dtype, name, f"attention_sink of {sink.dtype}", f"{query.dtype}")


def _check_whole(query: Tensor, key: Tensor, value: Tensor, **others: Any) -> list[int]:
    name, got = "scaled_dot_product_attention_decode", sizes(query=query, key=key, value=value)
    _check_decode(name, key.shape[2] if key.dim() == 4 else 0, query, key, value, **others)
    require(key.shape == value.shape and key.shape[0] == query.shape[1], name, got, "keys and values of each user")
    return list(query.shape)


@op(_check_whole, lambda a: attributes(a, "attn_mask", "attention_sink"))
def scaled_dot_product_attention_decode(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cur_pos_tensor: Tensor,
    attn_mask: Tensor | None = None,
    attention_sink: Tensor | None = None,
    is_causal: bool = True,
    scale: float | None = None,
) -> Tensor:
    """Attention to whole caches. If not `is_causal`, the positions have no effect."""
    position = cur_pos_tensor if is_causal else None
    return _decoded(query, key, value, position, attn_mask, attention_sink, scale)


def _check_pages(
    name: str, query: Tensor, key: Tensor, value: Tensor | None, page_table: Tensor, **others: Any
) -> None:
    fits = page_table.dim() == 2 and page_table.shape[0] == query.shape[1] and not page_table.is_floating_point()
    require(fits, name, sizes(query=query, page_table=page_table), "one row of the page table per user")
    _check_decode(name, page_table.shape[1] * key.shape[-2], query, key, value, **others)


def _check_paged(query: Tensor, key: Tensor, value: Tensor, **others: Any) -> list[int]:
    name = "paged_scaled_dot_product_attention_decode"
    _check_pages(name, query, key, value, **others)
    require(key.shape == value.shape, name, sizes(key=key, value=value), "keys and values of one shape")
    return list(query.shape)


@op(_check_paged, lambda a: attributes(a, "attn_mask", "cur_pos_tensor", "attention_sink"))
def paged_scaled_dot_product_attention_decode(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    page_table: Tensor,
    is_causal: bool = False,
    attn_mask: Tensor | None = None,
    cur_pos_tensor: Tensor | None = None,
    attention_sink: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Attention to caches in pages. If not `is_causal`, the positions have no effect."""
    keys, values = gathered(key, page_table), gathered(value, page_table)
    position = cur_pos_tensor if is_causal else None
    return _decoded(query, keys, values, position, attn_mask, attention_sink, scale)


def _check_paged_latent(query: Tensor, key: Tensor, head_dim_v: int, value: Tensor | None, **others: Any) -> list[int]:
    name, got = "paged_flash_mla_decode", sizes(query=query, key=key, value=value) + f" and head_dim_v {head_dim_v}"
    _check_pages(name, query, key, value, **others)
    check_values(name, got, key, value, head_dim_v)
    return [*query.shape[:3], head_dim_v]


@op(
    _check_paged_latent,
    lambda a: attributes(a, "value", "attn_mask", "cur_pos_tensor", "attention_sink", head_dim_v=a["head_dim_v"]),
    "query key value page_table attn_mask cur_pos_tensor attention_sink",
)
def paged_flash_mla_decode(
    query: Tensor,
    key: Tensor,
    head_dim_v: int,
    page_table: Tensor,
    value: Tensor | None = None,
    is_causal: bool = True,
    attn_mask: Tensor | None = None,
    cur_pos_tensor: Tensor | None = None,
    attention_sink: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Latent attention to caches in pages. Without values, the first features of the keys are the values."""
    keys = gathered(key, page_table)
    values = keys[..., :head_dim_v] if value is None else gathered(value, page_table)
    position = cur_pos_tensor if is_causal else None
    return _decoded(query, keys, values, position, attn_mask, attention_sink, scale)

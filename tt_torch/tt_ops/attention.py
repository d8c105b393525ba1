"""Ops of attention: to whole caches, to caches in pages, and latent attention (MLA).

Queries, keys and values have the shape (users, heads, positions, depth). To decode, the queries have the shape
(1, users, heads, depth): one query for each user, which sees the keys up to the user's position. Several heads of
queries may share a head of keys. Masks are added to the scores. A sink is one more score per head, without a value.
"""

from __future__ import annotations

from typing import Any

import torch

from tt_torch.tt_ops.registry import op, require, sizes
from tt_torch.tt_ops.shared import attended, attributes, check_mask, check_pair, check_values, gathered, visible

Tensor = torch.Tensor


def _check_prefill(
    query: Tensor, key: Tensor, value: Tensor, sliding_window_size: int | None, **others: Any
) -> list[int]:
    name, got = "scaled_dot_product_attention", sizes(query=query, key=key, value=value)
    check_pair(name, query, key, value)
    require(key.shape == value.shape and key.shape[0] == query.shape[0], name, got, "keys and values of one shape")
    _check_whole(name, got, query, key, **others)
    window = sliding_window_size
    fits = window is None or (others["is_causal"] and window > 0)
    require(fits, name, f"sliding_window_size={window}", "it with is_causal only")
    return list(query.shape)


def _check_whole(
    name: str, got: str, query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool, **_: Any
) -> None:
    """Requires a mask that fits, or with `is_causal` as many keys as queries."""
    require(not is_causal or key.shape[2] == query.shape[2], name, got, "as many keys as queries if is_causal")
    check_mask(name, attn_mask, is_causal, query, (*query.shape[:3], key.shape[2]))


@op(_check_prefill, lambda a: attributes(a, "attn_mask", sliding_window_size=a["sliding_window_size"]))
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = True,
    scale: float | None = None,
    sliding_window_size: int | None = None,
) -> Tensor:
    """Attention of a whole prompt. With a window of size n, a query sees only its own key and the n - 1 before it."""
    if is_causal:
        rows = torch.arange(query.shape[2], device=query.device)
        attn_mask = visible(rows.unsqueeze(0), key.shape[2], sliding_window_size)
    return attended(query, key, value, attn_mask, scale)


def _check_latent(query: Tensor, key: Tensor, head_dim_v: int, value: Tensor | None, **others: Any) -> list[int]:
    name, got = "flash_mla_prefill", sizes(query=query, key=key, value=value) + f" and head_dim_v {head_dim_v}"
    check_pair(name, query, key, value)
    require(key.shape[0] == query.shape[0], name, got, "keys of as many users as the queries")
    check_values(name, got, key, value, head_dim_v)
    _check_whole(name, got, query, key, **others)
    return [*query.shape[:3], head_dim_v]


@op(_check_latent, lambda a: attributes(a, "value", "attn_mask", head_dim_v=a["head_dim_v"]))
def flash_mla_prefill(
    query: Tensor,
    key: Tensor,
    head_dim_v: int,
    value: Tensor | None = None,
    attn_mask: Tensor | None = None,
    is_causal: bool = True,
    scale: float | None = None,
) -> Tensor:
    """Latent attention of a whole prompt. Without values, the first features of the keys are the values."""
    if is_causal:
        attn_mask = visible(torch.arange(query.shape[2], device=query.device).unsqueeze(0), key.shape[2])
    return attended(query, key, key[..., :head_dim_v] if value is None else value, attn_mask, scale)


def _check_chunked(
    query: Tensor, key: Tensor, value: Tensor, page_table: Tensor, chunk_start_idx: Tensor, **_: Any
) -> list[int]:
    name, got = "chunked_scaled_dot_product_attention", sizes(query=query, key=key, value=value, page_table=page_table)
    check_pair(name, query, key, value)
    require(key.shape == value.shape, name, got, "keys and values of one shape")
    table = page_table.dim() == 2 and page_table.shape[0] == query.shape[0]
    require(table, name, got, "one row of the page table per user")
    require(chunk_start_idx.numel() == 1, name, sizes(chunk_start_idx=chunk_start_idx), "one chunk_start_idx")
    return list(query.shape)


@op(_check_chunked, attributes)
def chunked_scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, page_table: Tensor, chunk_start_idx: Tensor, scale: float | None = None
) -> Tensor:
    """Attention of a chunk of a prompt to the pages of its user, up to each query's own position."""
    rows = torch.arange(query.shape[2], device=query.device) + chunk_start_idx.reshape(1)
    keys, values = gathered(key, page_table), gathered(value, page_table)
    return attended(query, keys, values, visible(rows.unsqueeze(0), keys.shape[2]), scale)

"""Attention of tokens of several requests to a cache in pages, as a function for Transformers' `AttentionInterface`.

A batch has one row per token. Each token knows the pages of its request and its position in them. So tokens of prompts
and of answers, from any number of requests, are rows of the same kind.
"""

from __future__ import annotations

from typing import Any

import torch

from tt_torch import tt_ops  # noqa: F401 - registers torch.ops.tt
from tt_torch.errors import ServingModelError

NAME = "tt_pages"
USERS = 32  # rows that one paged_update_cache writes in place
UNSUPPORTED = ("sliding_window", "softcap", "s_aux", "position_bias")

Tensor = torch.Tensor


def attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    *,
    pages: list[tuple[Tensor, Tensor]] | None = None,
    page_table: Tensor | None = None,
    positions: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Writes the keys and values of all tokens into the pages of this layer, then attends to them.

    Queries, keys and values have the shape (1, heads, tokens, depth). `page_table`, (tokens, n), has the pages of each
    token's request, and `positions`, (tokens,), the token's position in them. The result is (1, tokens, heads, depth).
    """
    if pages is None or page_table is None or positions is None:
        raise ServingModelError(type(module).__name__, "its layers do not pass the pages to it")
    if given := [name for name in UNSUPPORTED if others.get(name) is not None]:
        raise ServingModelError(type(module).__name__, f"its attention has {', '.join(given)}")
    keys, values = pages[module.layer_idx]  # type: ignore[index]
    if key.shape[1] != keys.shape[1]:  # the op would take the first heads only
        reason = f"its attention has {key.shape[1]} heads of keys, and its configuration says {keys.shape[1]}"
        raise ServingModelError(type(module).__name__, reason)
    if {key.shape[-1], value.shape[-1]} != {keys.shape[-1]}:  # latent attention has values of another size
        sizes = f"{key.shape[-1]} features per key and {value.shape[-1]} per value"
        raise ServingModelError(
            type(module).__name__, f"its attention has {sizes}, and the pages have {keys.shape[-1]}"
        )
    for cache, new in ((keys, key), (values, value)):
        cache.copy_(_written(cache, new.transpose(1, 2), positions, page_table))
    found = torch.ops.tt.paged_scaled_dot_product_attention_decode(
        query.transpose(1, 2), keys, values, page_table, is_causal=True, cur_pos_tensor=positions, scale=scaling
    )
    return found, None


def _written(cache: Tensor, rows: Tensor, positions: Tensor, page_table: Tensor) -> Tensor:
    """The cache with the rows, (1, tokens, heads, depth), at the tokens' positions."""
    for first in range(0, rows.shape[1], USERS):
        some = slice(first, first + USERS)
        cache = torch.ops.tt.paged_update_cache(cache, rows[:, some], positions[some], page_table[some])
    return cache

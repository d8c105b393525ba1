"""Formulas of attention in plain PyTorch, and checks of its operands, for the ops of `torch.ops.tt`."""

from __future__ import annotations

import math

import torch

from tt_torch.tt_ops.registry import Arguments, Attributes, require, sizes

Tensor = torch.Tensor


def attributes(a: Arguments, *optional: str, **others: object) -> Attributes:
    """Attributes as tt-xla writes them: which of the optional operands are given, and values that are not None."""
    flags = {f"has_{name.replace('attn', 'attention')}": a[name] is not None for name in optional}
    given = {"is_causal": a.get("is_causal"), "scale": a["scale"], **others}
    return {name: str(value) for name, value in (flags | given).items() if value is not None}


def attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None, sink: Tensor | None = None
) -> Tensor:
    """Attention in float32. A query that sees no key gets NaN."""
    groups = query.shape[1] // key.shape[1]
    key, value = (x.float().repeat_interleave(groups, 1) for x in (key, value))
    scores = query.float() @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if mask is None else scores + mask
    if sink is not None:
        extra = sink.float().reshape(query.shape[1], -1)[:, 0].reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, extra], 3)
    return (torch.softmax(scores, 3)[..., : key.shape[2]] @ value).to(query.dtype)


def visible(rows: Tensor, keys: int, window: int | None = None) -> Tensor:
    """A mask, (users or 1, 1, queries, keys), for queries at the positions `rows`, (users or 1, queries).

    It hides the keys after a query, and those that are `window` or more before it.
    """
    distance = rows[:, None, :, None] - torch.arange(keys, device=rows.device)
    hidden = (distance < 0) | (distance >= (window or keys))
    return torch.zeros(hidden.shape, device=rows.device).masked_fill(hidden, -math.inf)


def gathered(cache: Tensor, page_table: Tensor) -> Tensor:
    """The pages of each user, one after the other. A negative number stands for a page that the user does not have."""
    users, count = page_table.shape
    found = cache.index_select(0, page_table.clamp(min=0).reshape(-1))
    pages: Tensor = found.unflatten(0, (users, count))
    return pages.transpose(1, 2).flatten(2, 3)


def check_pair(name: str, query: Tensor, key: Tensor, value: Tensor | None) -> None:
    """Requires queries (users, heads, ...), and keys and values of as many users and fitting heads."""
    got = sizes(query=query, key=key, value=value)
    require(query.dim() == key.dim() == 4, name, got, "four dimensions")
    require(key.shape[1] > 0 and query.shape[1] % key.shape[1] == 0, name, got, "heads that share those of the keys")
    require(key.shape[3] == query.shape[3], name, got, "queries and keys of one depth")
    dtypes = {x.dtype for x in (query, key, value) if x is not None}
    require(len(dtypes) == 1 and query.is_floating_point(), name, f"dtypes {dtypes}", "one floating-point dtype")


def check_mask(name: str, mask: Tensor | None, is_causal: bool, query: Tensor, scores: tuple[int, ...]) -> None:
    require(mask is None or not is_causal, name, "attn_mask and is_causal=True", "one of both")
    if mask is not None:
        got = f"attn_mask of dtype {mask.dtype} and shape {list(mask.shape)}"
        fits = mask.dim() == 4 and all(m in (1, s) for m, s in zip(mask.shape, scores, strict=True))
        require(
            fits and mask.dtype == query.dtype, name, got, f"{query.dtype} of shape {list(scores)}, or 1 for a size"
        )


def check_values(name: str, got: str, key: Tensor, value: Tensor | None, size: int) -> None:
    """Requires values of the size `head_dim_v`, or keys with at least as many features."""
    if value is None:
        require(0 < size <= key.shape[3], name, got, "head_dim_v up to the depth of the keys")
    else:
        require(tuple(value.shape) == (*key.shape[:3], size), name, got, "values of the keys' shape, head_dim_v deep")

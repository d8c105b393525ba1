"""Ops that return a cache with new entries.

A cache has the shape (users, heads, positions, depth). A cache in pages has the shape (pages, heads, size, depth), and
the page table, (users, n), lists the pages of each user.
"""

from __future__ import annotations

import torch

from tt_torch.tt_ops.registry import Arguments, Attributes, op, require, sizes

Tensor = torch.Tensor
INTEGERS = (torch.int32, torch.int64)


def _offset(a: Arguments) -> Attributes:
    return {"batch_offset": str(a["batch_offset"] or 0)}


def _checked(name: str, cache: Tensor, new: Tensor, batch_offset: int | None) -> list[int]:
    got = sizes(cache=cache, fill_value=new) + f" and batch_offset {batch_offset}"
    require(cache.dim() == new.dim() == 4, name, got, "four dimensions")
    accepted = f"fill_value of dtype {cache.dtype}, the dtype of the cache"
    require(cache.dtype == new.dtype, name, f"fill_value of dtype {new.dtype}", accepted)
    users, heads, length, depth = cache.shape
    fits = new.shape[1] == heads and new.shape[2] <= length and new.shape[3] == depth
    require(fits, name, got, "fill_value with the heads and depth of the cache, and no more positions")
    first = batch_offset or 0
    require(0 <= first <= users - new.shape[0], name, got, "users from batch_offset on that the cache has")
    named = batch_offset is not None or users == new.shape[0]
    require(named, name, got, "batch_offset, unless fill_value has all users of the cache")
    return list(cache.shape)


def _check_update(cache: Tensor, fill_value: Tensor, cache_position: Tensor, batch_offset: int | None) -> list[int]:
    name = "update_cache"
    one = fill_value.dim() == 4 and fill_value.shape[2] == 1
    require(one, name, sizes(fill_value=fill_value), "fill_value of shape [users, heads, 1, depth]")
    _require_integers(name, cache_position=cache_position)
    require(tuple(cache_position.shape) == (1,), name, sizes(cache_position=cache_position), "one position")
    return _checked(name, cache, fill_value, batch_offset)


@op(_check_update, _offset)
def update_cache(cache: Tensor, fill_value: Tensor, cache_position: Tensor, batch_offset: int | None = None) -> Tensor:
    """The cache with one new position, which is the same for the users from `batch_offset` on."""
    new = cache.clone()
    new.narrow(0, batch_offset or 0, fill_value.shape[0]).index_copy_(2, cache_position.long(), fill_value)
    return new


def _check_fill(cache: Tensor, fill_value: Tensor, batch_offset: int | None) -> list[int]:
    return _checked("fill_cache", cache, fill_value, batch_offset)


@op(_check_fill, _offset)
def fill_cache(cache: Tensor, fill_value: Tensor, batch_offset: int | None = None) -> Tensor:
    """The cache with new first positions for the users from `batch_offset` on."""
    new = cache.clone()
    new.narrow(0, batch_offset or 0, fill_value.shape[0]).narrow(2, 0, fill_value.shape[2]).copy_(fill_value)
    return new


# --- pages


def _check_paged_update(
    cache: Tensor, fill_value: Tensor, update_indices: Tensor, page_table: Tensor, share_cache: bool
) -> list[int]:
    name = "paged_update_cache"
    got = sizes(cache=cache, fill_value=fill_value, update_indices=update_indices, page_table=page_table)
    require(not share_cache, name, "share_cache=True", "share_cache=False")
    require(cache.dim() == fill_value.dim() == 4, name, got, "four dimensions")
    accepted = f"fill_value of dtype {cache.dtype}, the dtype of the cache"
    require(cache.dtype == fill_value.dtype, name, f"fill_value of dtype {fill_value.dtype}", accepted)
    _require_integers(name, update_indices=update_indices, page_table=page_table)
    one, users, heads, depth = fill_value.shape
    fits = one == 1 and heads >= cache.shape[1] and depth == cache.shape[3]
    accepted = "fill_value of shape [1, users, at least the heads of the cache, depth]"
    require(fits, name, got, accepted)
    per_user = tuple(update_indices.shape) == (users,) and page_table.dim() == 2 and page_table.shape[0] == users
    require(per_user, name, got, "one position and one row of the page table per user")
    return list(cache.shape)


@op(_check_paged_update, lambda a: {"share_cache": "False"})
def paged_update_cache(
    cache: Tensor, fill_value: Tensor, update_indices: Tensor, page_table: Tensor, share_cache: bool = False
) -> Tensor:
    """The cache with one new position per user. A user with a negative position is skipped."""
    new, size = cache.clone(), cache.shape[2]
    valid = update_indices >= 0
    position = update_indices.long()[valid]
    pages = page_table.long()[valid].gather(1, (position // size).unsqueeze(1)).squeeze(1)
    _require_pages("paged_update_cache", pages, cache)
    new[pages, :, position % size] = fill_value[0, valid, : cache.shape[1]]
    return new


def _check_paged_fill(cache: Tensor, fill_value: Tensor, page_table: Tensor, batch_idx: Tensor | None) -> list[int]:
    name = "paged_fill_cache"
    got = sizes(cache=cache, fill_value=fill_value, page_table=page_table, batch_idx=batch_idx)
    require(cache.dim() == fill_value.dim() == 4 and page_table.dim() == 2, name, got, "a page table for each user")
    accepted = f"fill_value of dtype {cache.dtype}, the dtype of the cache"
    require(cache.dtype == fill_value.dtype, name, f"fill_value of dtype {fill_value.dtype}", accepted)
    _require_integers(name, page_table=page_table)
    one, heads, length, depth = fill_value.shape
    fits = (one, heads, depth) == (1, cache.shape[1], cache.shape[3])
    require(fits, name, got, "fill_value of shape [1, heads, positions, depth]")
    require(
        length <= page_table.shape[1] * cache.shape[2], name, got, "no more positions than the pages of a user have"
    )
    if batch_idx is not None:
        _require_integers(name, batch_idx=batch_idx)
        require(batch_idx.numel() == 1, name, got, "batch_idx of one element")
    return list(cache.shape)


@op(_check_paged_fill)
def paged_fill_cache(cache: Tensor, fill_value: Tensor, page_table: Tensor, batch_idx: Tensor | None = None) -> Tensor:
    """The cache with new first positions of the user `batch_idx`, which is the first user by default."""
    new, size, length = cache.clone(), cache.shape[2], fill_value.shape[2]
    own = page_table[0] if batch_idx is None else page_table.index_select(0, batch_idx.reshape(1)).squeeze(0)
    position = torch.arange(length, device=cache.device)
    pages = own.long()[position // size]
    _require_pages("paged_fill_cache", pages, cache)
    new[pages, :, position % size] = fill_value[0].transpose(0, 1)
    return new


def _require_pages(name: str, pages: Tensor, cache: Tensor) -> None:
    """Raises OpArgumentError for numbers of pages that the cache does not have. PyTorch would count -1 from the end."""
    wrong = pages[(pages < 0) | (pages >= cache.shape[0])].tolist()
    require(not wrong, name, f"the pages {wrong[:5]}", f"pages from 0 to {cache.shape[0] - 1}")


def _require_integers(name: str, **tensors: Tensor) -> None:
    for parameter, x in tensors.items():
        require(x.dtype in INTEGERS, name, f"{parameter} of dtype {x.dtype}", "int32 or int64")

"""Shardings in the words of GSPMD, XLA's older way to split values: the attribute `mhlo.sharding`.

    {devices=[2,1,4]<=[8] last_tile_dim_replicate}

gives eight chips the tiles 2x1 of a matrix; four chips share each tile. `<=[8]` counts the chips in their order, and
`<=[2,4]T(1,0)` counts those of a grid column by column. An axis of the mesh has no name here, so a mesh is searched on
which each dimension is split along whole axes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np

ATTRIBUTE = "mhlo.sharding"
TO_PARTS, TO_WHOLE = "SPMDFullToShardShape", "SPMDShardToFullShape"  # custom calls
SLICE = "tt.all_slice"  # a custom call that stands for Shardy's op, until torch-mlir has read it
ACCEPTED = "equal parts along the axes of one mesh of one or two axes, in the order of its chips"
_WHOLE = re.compile(r"\{(?:replicated|manual|maximal device=\d+)\}")
_TILED = re.compile(r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))( last_tile_dim_replicate)?\}")
_IN_TEXT = re.compile(rf'{re.escape(ATTRIBUTE)} = "([^"]*)"')
_WAYS = ((), (0,), (1,), (0, 1))  # the axes that may split a dimension

Mesh = tuple[int, int]  # rows and columns
Tiles = list[np.ndarray]  # for each dimension, the number of the tile that each chip has


def splits_values(text: str) -> bool:
    """Whether annotations in the text of a module split values over several chips."""
    return any(splits(each) for each in _IN_TEXT.findall(text))


def splits(sharding: str) -> bool:
    """Whether a sharding splits a value. One that cannot be read counts as if it did."""
    if found := _TILED.fullmatch(sharding):
        sizes = _numbers(found[1])
        return math.prod(sizes[:-1] if found[5] else sizes) > 1
    return not _WHOLE.fullmatch(sharding)


def tiles(sharding: str, rank: int) -> Tiles | None:
    """The tiles of the chips; None if each chip has the whole value. Raises ValueError for another form."""
    if _WHOLE.fullmatch(sharding):
        return None
    found = _TILED.fullmatch(sharding)
    sizes = _numbers(found[1]) if found else []
    if not found or len(sizes) != rank + bool(found[5]):
        raise ValueError(f"the sharding {sharding} has another form")
    chips = _numbers(found[4]) if found[4] else _counted(_numbers(found[2]), _numbers(found[3]))
    if sorted(chips) != list(range(math.prod(sizes))):
        raise ValueError(f"the sharding {sharding} does not name each chip once")
    return list(np.unravel_index(np.argsort(chips), sizes))[:rank]


def _counted(grid: list[int], order: list[int]) -> list[int]:
    if order and sorted(order) != list(range(len(grid))):
        return []
    counted = np.arange(math.prod(grid)).reshape(grid)
    return [int(chip) for chip in counted.transpose(order or None).ravel()]


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in (text or "").split(",") if number]


def axes(given: Tiles, mesh: Mesh) -> list[tuple[int, ...]] | None:
    """For each dimension, the axes of the mesh that split it. None if a dimension is split in another way."""
    chips = np.arange(math.prod(mesh))
    rows, columns = np.divmod(chips, mesh[1])
    places = dict(zip(_WAYS, (np.zeros_like(chips), rows, columns, chips), strict=True))
    found = [next((way for way, place in places.items() if np.array_equal(place, dim)), None) for dim in given]
    return None if None in found else [way for way in found if way is not None]


def mesh_of(given: Sequence[Tiles], chips: int, fits: Callable[[Mesh], bool] = lambda mesh: True) -> Mesh:
    """The mesh on which all these values are split along whole axes. Raises ValueError if there is none.

    A row of chips is preferred. Of several meshes, the first one that `fits` is taken, or else the first one.
    """
    if any(len(dim) != chips for each in given for dim in each):
        raise ValueError(f"a sharding is not for {chips} chips")
    meshes = [(rows, chips // rows) for rows in range(1, chips) if chips % rows == 0]
    found = [mesh for mesh in meshes if all(axes(each, mesh) is not None for each in given)]
    if not found:
        raise ValueError("there is no mesh of two axes for its shardings")
    return next(filter(fits, found), found[0])

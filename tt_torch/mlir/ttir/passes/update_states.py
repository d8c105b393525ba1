"""Finds the writes to caches that are done in the cache's own memory. All others make a new value of the cache."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main, returned, updated_by
from tt_torch.mlir.rules import Builder, producer, shape, single_use
from tt_torch.mlir.ttir.passes.expand_caches import EXPANSIONS, expand
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import TILE

MOST_USERS = 32  # the largest batch of one update: a row of tiles, or a row of cores for each eight users


def update_states(module: ir.Module) -> None:
    """Rewrites the op that makes the new value of a state, if it writes to positions of the old value and nothing else
    reads the old value.

    Another reader of the old value might run after the update, and would read the new value.
    """
    function = main(module)
    with module.context, ir.Location.unknown():
        in_place: set[ir.Operation] = set()
        for argument in block(function).arguments:
            result = updated_by(function, argument.arg_number)
            if result is not None:
                in_place.update(_updates(argument, returned(module)[result]))
        for op in [op.operation for op in block(function).operations]:
            if op.name in EXPANSIONS and op not in in_place:
                op.results[0].replace_all_uses_with(expand(op, Builder(ir.InsertionPoint(op), op.location)))
                op.erase()


def _updates(state: Value, new: Value) -> list[ir.Operation]:
    """The ops that make the new value of a state, the last one first; none unless all can write to its memory."""
    found: list[ir.Operation] = []
    while new != state:
        op = _as_update(new) or producer(new, *EXPANSIONS)
        if op is None or not single_use(op.operands[0]) or not _fits(op):
            return []
        found.append(op.operation)
        new = op.operands[0]
    return found


def _fits(op: Op) -> bool:
    """Whether the library has the op in this form, and writes only the new entries.

    Fills write whole tiles: the rows after the last position in a tile would be lost.
    """
    cache, new = shape(op.operands[0]), shape(op.operands[1])
    name = op.operation.name
    if 0 in cache or 0 in new:
        return False
    if name == "ttir.update_cache":
        return new[2] <= MOST_USERS
    if name == "ttir.fill_cache":
        return new[2] % TILE == 0 or new[2] == cache[2]
    if name == "ttir.paged_fill_cache":
        return new[2] % TILE == 0 and cache[2] % TILE == 0
    return new[1] <= MOST_USERS and cache[2] % TILE == 0


def _as_update(new: Value) -> Op | None:
    """The op of caches that makes `new`, if other ops make it and are replaced by it."""
    write, filled = producer(new, "ttir.scatter"), producer(new, "ttir.concat")
    return _update_cache(write) if write is not None else _fill_cache(filled) if filled is not None else None


def _fill_cache(write: Op) -> Op | None:
    """cache[:, :, :n] = x: the op joins x and the other positions of the cache."""
    x, *rest = write.operands
    kept = producer(rest[0], "ttir.slice_static") if len(rest) == 1 and single_use(rest[0]) else None
    if kept is None or ods.attr(write, "dim") != 2 or len(shape(x)) != 4:
        return None
    cache, (users, heads, length, depth) = kept.operands[0], shape(x)
    size = shape(cache)
    wanted = {"begins": [0, 0, length, 0], "ends": size, "step": [1] * 4}
    if size != shape(write.results[0]) or size[:2] != [users, heads] or size[3] != depth or not single_use(cache):
        return None
    if ods.attrs_of(kept) != wanted or length % TILE:
        return None
    new = Builder(ir.InsertionPoint(write), write.location)("ttir.fill_cache", cache, x)
    write.results[0].replace_all_uses_with(new)
    write.erase()
    kept.erase()
    return producer(new)


def _update_cache(write: Op) -> Op | None:
    """cache.index_copy(2, position, source): the cache is (B, H, S, D), the source (B, H, 1, D)."""
    cache, index, source = write.operands
    position = _one_position(index)
    batch, *_ = size = shape(cache)
    overwrites = ods.attr(write, "scatter_reduce_type") == "Invalid" and ods.attr(write, "dim") == 2
    if len(size) != 4 or not overwrites or position is None or batch > MOST_USERS or not single_use(cache):
        return None
    if shape(source) != [batch, size[1], 1, size[3]] or 0 in size:
        return None
    b = Builder(ir.InsertionPoint(write), write.location)
    rows = b("ttir.permute", source, permutation=[2, 1, 0, 3]) if batch > 1 else source
    position = position if shape(position) == [1] else b("ttir.reshape", position, shape=[1])
    new = b("ttir.update_cache", cache, rows, position)
    write.results[0].replace_all_uses_with(new)
    write.erase()
    return producer(new)


def _one_position(index: Value) -> Value | None:
    """The one element that an index repeats everywhere; None if the index may have different elements."""
    while (move := producer(index, "ttir.broadcast", "ttir.reshape")) is not None:
        index = move.operands[0]
    return index if shape(index) in ([], [1]) else None

"""Turns writes to one position of a cache into updates of the cache in its own memory."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main, returned, updated_by
from tt_torch.mlir.rules import Builder, producer, shape, single_use
from tt_torch.mlir.types import Op, Value

MOST_USERS = 32  # the batch that one update takes: a row of tiles


def update_states(module: ir.Module) -> None:
    """Rewrites the op that makes the new value of a state, if it is a write to a position and the only reader.

    Another reader of the old value might run after the update, and would read the new value.
    """
    function = main(module)
    with module.context, ir.Location.unknown():
        for argument in block(function).arguments:
            result = updated_by(function, argument.arg_number)
            write = None if result is None else producer(returned(module)[result], "ttir.scatter")
            if write is not None and write.operands[0] == argument and single_use(argument):
                _update_cache(write)


def _update_cache(write: Op) -> None:
    """cache.index_copy(2, position, source): the cache is (B, H, S, D), the source (B, H, 1, D)."""
    cache, index, source = write.operands
    position = _one_position(index)
    batch, *_ = size = shape(cache)
    overwrites = ods.attr(write, "scatter_reduce_type") == "Invalid" and ods.attr(write, "dim") == 2
    if len(size) != 4 or not overwrites or position is None or batch > MOST_USERS:
        return
    if shape(source) != [batch, size[1], 1, size[3]] or 0 in size:
        return
    b = Builder(ir.InsertionPoint(write), write.location)
    rows = b("ttir.permute", source, permutation=[2, 1, 0, 3]) if batch > 1 else source
    position = position if shape(position) == [1] else b("ttir.reshape", position, shape=[1])
    new = b("ttir.update_cache", cache, rows, position)
    write.results[0].replace_all_uses_with(new)
    write.erase()


def _one_position(index: Value) -> Value | None:
    """The only element of an index that is the same everywhere, if it is known to be one element."""
    while (move := producer(index, "ttir.broadcast", "ttir.reshape")) is not None:
        index = move.operands[0]
    return index if shape(index) in ([], [1]) else None

"""Rotary embeddings: x * cosine + rotated(x) * sine.

`rotated` has one of two forms. Either the second half is negated and comes before the first half. Or neighbouring
columns are exchanged, and the one that comes first is negated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, dtype, producer, shape, tensor, users
from tt_torch.mlir.ttir.dialect import WIDEST_TURNED
from tt_torch.mlir.ttir.from_stablehlo.creation import elements, full
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import TILE

RULES = RuleSet("fuse-rotary")
CUT = "ttir.slice_static"
BY_MATRIX = RuleSet("turn-tiles")  # needs the types that the device has
Rotation = tuple[Value, Value, Value]  # x and the tables: cosine, sine
Pairs = list[tuple[int, int]]  # columns that turn together: the first becomes minus the second, the second the first


@RULES.rewrites("ttir.add")
def rotary_embedding(op: Op, b: Builder) -> Value | None:
    """On (B, H, S, D). All batches and heads share one table, because the op of TTNN takes no other tables.

    The width must be an even number of whole tiles. Otherwise padding would turn, too.
    """
    found = _rotation(op, _of_halves)
    if found is None or shape(found[0])[3] % (2 * TILE):
        return None
    x, *tables = found
    return b("ttir.rotary_embedding", x, *(_of_rank_4(b, table, x) for table in tables))


def _rotation(op: Op, unrotated: Callable[[Value], Value | None]) -> Rotation | None:
    """x and the tables of x * cosine + rotated(x) * sine, in any order of terms and factors."""
    plain, turned = (producer(value, "ttir.multiply") for value in op.operands)
    if plain is None or turned is None or not isinstance(dtype(op.results[0]), ir.FloatType):
        return None
    for first, second in ((plain, turned), (turned, plain)):
        for rotated, sine in (second.operands, list(second.operands)[::-1]):
            x = unrotated(rotated)
            cosine = _other(first, x) if x is not None else None
            if x is not None and cosine is not None and _is_table(cosine, x) and _is_table(sine, x):
                return x, cosine, sine
    return None


def _of_rank_4(b: Builder, table: Value, x: Value) -> Value:
    sizes = [1, 1, *shape(x)[2:]]
    return table if shape(table) == sizes else b("ttir.reshape", table, shape=sizes)


def _of_halves(value: Value) -> Value | None:
    """x of concat(-x[..., half:], x[..., :half])."""
    joined = producer(value, "ttir.concat")
    if joined is None or len(shape(value)) != 4 or shape(value)[3] % 2 or ods.attr(joined, "dim") % 4 != 3:
        return None
    if len(joined.operands) != 2:
        return None
    cuts = _cuts_of_one(producer(joined.operands[0], "ttir.neg"), producer(joined.operands[1], CUT))
    if cuts is None:
        return None
    high, low = cuts
    (x,) = low.operands
    sizes, half = shape(x), shape(x)[3] // 2
    whole = shape(value) == sizes and _is_cut(low, [0, 0, 0, 0], [*sizes[:3], half])
    return x if whole and _is_cut(high, [0, 0, 0, half], sizes) else None


def _of_neighbours(value: Value) -> Value | None:
    """x of (-x[..., 1], x[..., 0], -x[..., 3], x[..., 2], ...), which is a concatenation in a dimension of its own."""
    flat = producer(value, "ttir.reshape")
    joined = producer(flat.operands[0], "ttir.concat") if flat is not None else None
    if joined is None or len(shape(value)) != 4 or ods.attr(joined, "dim") % 5 != 4:
        return None
    *outer, width = shape(value)
    if [shape(part) for part in joined.operands] != [[*outer, width // 2, 1]] * 2:
        return None
    cuts = _cuts_of_one(_before_reshape(joined.operands[0], "ttir.neg"), _before_reshape(joined.operands[1], CUT))
    if cuts is None:
        return None
    odd, even = cuts
    (x,) = odd.operands
    whole = shape(value) == shape(x) and _is_cut(even, [0, 0, 0, 0], shape(x), 2)
    return x if whole and _is_cut(odd, [0, 0, 0, 1], shape(x), 2) else None


def _cuts_of_one(minus: Op | None, cut: Op | None) -> tuple[Op, Op] | None:
    """The slice that `minus` negates, and `cut`, if both are of one value."""
    negated = producer(minus.operands[0], CUT) if minus is not None else None
    if negated is None or cut is None or negated.operands[0] != cut.operands[0]:
        return None
    return negated, cut


def _before_reshape(value: Value, name: str) -> Op | None:
    move = producer(value, "ttir.reshape")
    return producer(move.operands[0], name) if move is not None else None


def _is_cut(op: Op, begins: list[int], ends: list[int], step: int = 1) -> bool:
    return [ods.attr(op, name) for name in ("begins", "ends", "step")] == [begins, ends, [1, 1, 1, step]]


def _other(product: Op, x: Value) -> Value | None:
    """The factor beside `x`."""
    left, right = product.operands
    return right if left == x else left if right == x else None


def _is_table(table: Value, x: Value) -> bool:
    """Whether a table has one value for each position and column, which all batches and heads share."""
    sizes = shape(table)
    return sizes[-2:] == shape(x)[2:] and math.prod(sizes[:-2]) == 1 and dtype(table) == dtype(x)


@BY_MATRIX.rewrites("ttir.concat")
def part_of_heads(op: Op, b: Builder) -> Value | None:
    """The first columns of each head are turned, as in Phi and GPT-NeoX, and the others stay: cosine 1 and sine 0."""
    found = _turned_part(op)
    if found is None:
        return None
    x, (part, *given), pairs = found
    *outer, width = shape(x)
    tables = []
    for table, neutral in zip(given, (1.0, 0.0), strict=True):
        others = full(b, [1, 1, outer[-1], width - shape(part)[3]], dtype(table), neutral)
        tables.append(b("ttir.concat", [_of_rank_4(b, table, part), others], dim=3))
    b = b.also_from(op.operands[0].owner)
    return b("ttir.rotary_embedding_llama", x, *tables, _matrix(b, pairs))


def _turned_part(op: Op) -> tuple[Value, Rotation, Pairs] | None:
    """The heads and how their first columns turn, if `op` joins the turned columns and the other ones."""
    if len(op.operands) != 2 or ods.attr(op, "dim") % 4 != 3:
        return None
    total, second = producer(op.operands[0], "ttir.add"), producer(op.operands[1], CUT)
    found = _in_tiles(total) if total is not None else None
    first = producer(found[0][0], CUT) if found is not None else None
    if found is None or first is None or second is None or first.operands[0] != second.operands[0]:
        return None
    (x,), sizes, count = first.operands, shape(first.operands[0]), shape(found[0][0])[3]
    if not _is_cut(first, [0] * 4, [*sizes[:3], count]) or not _is_cut(second, [0, 0, 0, count], sizes):
        return None
    return (x, *found) if _is_turned_by_matrix(x) else None


@BY_MATRIX.rewrites("ttir.add")
def whole_heads(op: Op, b: Builder) -> Value | None:
    """All columns of heads are turned."""
    found = _in_tiles(op)
    if found is None or not _is_turned_by_matrix(found[0][0]):
        return None
    if any(reader.name == "ttir.concat" and _turned_part(reader) for reader in users(op.results[0])):
        return None
    (x, *tables), pairs = found
    return b("ttir.rotary_embedding_llama", x, *(_of_rank_4(b, table, x) for table in tables), _matrix(b, pairs))


def _in_tiles(op: Op) -> tuple[Rotation, Pairs] | None:
    """A rotation and the columns of each tile that turn, if both columns of a pair are in one tile.

    TTNN's op multiplies each tile by one matrix. Neighbours are always in one tile. Halves are in one tile only if
    there are at most 32 columns.
    """
    if (found := _rotation(op, _of_halves)) is not None:
        half = shape(found[0])[3] // 2
        return (found, [(i, i + half) for i in range(half)]) if 2 * half <= TILE else None
    found = _rotation(op, _of_neighbours)
    return None if found is None else (found, [(i, i + 1) for i in range(0, TILE, 2)])


def _is_turned_by_matrix(x: Value) -> bool:
    """Whether the library's op takes the type and the width of x."""
    return isinstance(dtype(x), ir.BF16Type) and shape(x)[3] % TILE == 0 and shape(x)[3] <= WIDEST_TURNED


def _matrix(b: Builder, pairs: Pairs) -> Value:
    """A row of 32 columns times this matrix is the turned row."""
    values = np.zeros((1, 1, TILE, TILE), np.float32)
    for first, second in pairs:
        values[0, 0, second, first], values[0, 0, first, second] = -1, 1
    kind = tensor(list(values.shape), ir.BF16Type.get())
    return b("ttir.constant", type=kind, value=elements(values, kind))

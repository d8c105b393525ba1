"""Rows of the op table: writes and reductions by index, counts and distances."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from op_rows import ALL, INTS, NUMBERS, Row, b1, f32, i64, index, of, tensor


def _scatter_reduce(reduce: str, include_self: bool) -> Callable[..., torch.Tensor]:
    return lambda x, i, v: x.scatter_reduce(1, i, v, reduce, include_self=include_self)


def _index_reduce(reduce: str, include_self: bool) -> Callable[..., torch.Tensor]:
    return lambda x, i, v: x.index_reduce(0, i, v, reduce, include_self=include_self)


def _accumulated(x: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return x.index_put((mask,), values, True)


BOTH = {True: "", False: " without self"}
PICKED = tensor([[True, False, True, True, False]] * 2, b1)
aten = torch.ops.aten
EDGES = tensor([-1.0, 0.0, 0.5, 2.0])
LENGTHS = tensor([0, 3, 1, 0, 3], i64)


def _bags(mode: str) -> Callable[..., torch.Tensor]:
    """Three bags, of which one is empty."""
    offsets = torch.tensor([0, 3, 3])
    return lambda i, w: F.embedding_bag(i, w, offsets.to(w.device), mode=mode)


# Each entry: the mode of embedding_bag, whether its last offset is an end, and the index of padding.
BAGS = (0, True, None), (0, False, 2), (1, True, None), (1, True, 2), (2, False, None), (2, True, 2)


def _whole_bags(mode: int, last: bool, padding: int | None = None) -> Callable[..., tuple[torch.Tensor, ...]]:
    """All results for three bags, of which one is empty. With `last`, the end of the last bag is given, too."""
    offsets = torch.tensor([0, 3, 3, 7] if last else [0, 3, 3])
    return lambda i, w: torch.embedding_bag(w, i, offsets.to(w.device), False, mode, False, None, last, padding)


SCATTERING = [
    *(
        Row(
            f"scatter_reduce {r}{own}",
            _scatter_reduce(r, s),
            [(3, 5), index(0, 5, 2, 4), (3, 4)],
            (f32,) if r == "prod" else (f32, *INTS),
        )
        for r in ("sum", "prod", "mean", "amax", "amin")  # a product of integers may need more than 32 bits
        for s, own in BOTH.items()
    ),
    *(
        Row(f"index_reduce {r}{own}", _index_reduce(r, s), [(5, 3), index(0, 5, 4), (4, 3)], (f32,))
        for r in ("prod", "mean", "amax", "amin")
        for s, own in BOTH.items()
    ),
    Row("scatter add", lambda x, i, v: x.scatter(1, i, v, reduce="add"), [(3, 5), index(0, 5, 3, 4), (3, 4)], NUMBERS),
    Row("scatter multiply", lambda x, i: x.scatter(1, i, 2, reduce="multiply"), [(3, 5), index(0, 5, 3, 2)]),
    Row("scatter of a scalar", lambda x, i, v: x.scatter(0, i, v), [(), tensor(0, i64), ()], NUMBERS),
    Row("scatter of booleans", lambda x, i, v: x.scatter(1, i, v), [(3, 5), tensor([[1, 3]], i64), (1, 2)], (b1,)),
    Row("scatter_add of a scalar", lambda x, i, v: x.scatter_add(0, i, v), [(), tensor(0, i64), ()], NUMBERS),
    Row("scatter_reduce of booleans", _scatter_reduce("amin", False), [(3, 5), index(0, 5, 2, 4), (3, 4)], (b1,)),
    Row("masked_fill of booleans", lambda x: x.masked_fill(~x, 6) ^ torch.full((4,), 2, dtype=b1), [(3, 4)], (b1,)),
    Row("index_put mask accumulate of booleans", _accumulated, [(2, 5), PICKED, (6,)], (b1,)),
    Row("masked_scatter", lambda x, m, v: x.masked_scatter(m, v), [(3, 4), of(b1, 3, 4), (12,)], ALL),
    Row("masked_scatter broadcast", lambda x, m, v: x.masked_scatter(m, v), [(3, 4), of(b1, 4), (3, 4)], NUMBERS),
    Row("index_put mask", lambda x, m, v: x.index_put((m,), v), [(5, 3), of(b1, 5), (3,)], NUMBERS),
    Row("index_put mask one each", lambda x, m, v: x.index_put((m,), v), [(2, 5, 3), PICKED, (6, 3)], NUMBERS),
    Row("index_put mask accumulate", lambda x, m, v: x.index_put((m,), v, True), [(2, 5), PICKED, (6,)], NUMBERS),
    Row(
        "index_put mask behind",
        lambda x, m, v: torch.ops.aten.index_put(x, [None, m], v),
        [(2, 5), of(b1, 5), (2, 1)],
        NUMBERS,
    ),
    Row("put", lambda x, i, v: x.put(i, v), [(3, 4), tensor([1, -1, 5], i64), (3,)], NUMBERS),
    Row("put accumulate", lambda x, i, v: x.put(i, v, True), [(3, 4), tensor([1, 5, 1], i64), (3,)], NUMBERS),
    Row("diagonal_scatter", lambda x, v: x.diagonal_scatter(v, 1), [(4, 5), (4,)], NUMBERS),
    Row("diagonal_scatter below", lambda x, v: x.diagonal_scatter(v, -2, 0, 2), [(4, 2, 5), (2, 2)], NUMBERS),
    Row(
        "as_strided_scatter", lambda x, v: torch.as_strided_scatter(x, v, (2, 2), (3, 1), 1), [(3, 3), (2, 2)], NUMBERS
    ),
    Row("index_copy of a scalar", lambda x, i, v: x.index_copy(0, i, v), [(), tensor([0], i64), (1,)], NUMBERS),
    Row("index_fill tensor", lambda x, i, v: x.index_fill(1, i, v), [(2, 6), tensor([4, -6], i64), ()], NUMBERS),
    Row("roll all", lambda x: x.roll(7), [(3, 5)], NUMBERS),
    Row("roll far", lambda x: x.roll((7, -8), (1, 0)), [(3, 5)], NUMBERS),
    Row("flip of nothing", lambda x: x.flip(0), [(3, 0)], NUMBERS),
    Row("flip of a scalar", lambda x: x.flip(-1), [()], (f32,)),
    Row("narrow to nothing", lambda x: (x[:, :0] * 1, x.narrow(-2, 0, 0) + 1), [(3, 5)], NUMBERS),
    Row("clamp tensor broadcast", lambda x, y: x.clamp(min=y), [(5,), (3, 1)], NUMBERS),
    Row("isin", lambda x, y: torch.isin(x, y), [(3, 4), (5,)], INTS),
    Row("isin of many", lambda x, y: torch.isin(x, y), [(3, 4), (60,)], INTS),
    Row("isin with nan", lambda x, y: torch.isin(x, torch.cat([y, x[0], x[0] / 0 * 0])), [(3, 4), (60,)]),
    Row("histc", lambda x: x.histc(4, -1, 1), [(50,)], (f32,)),
    Row("histc of the range", lambda x: x.histc(5), [(50,)], (f32,)),
    Row("histc of equals", lambda x: x.histc(3), [tensor([2.0, 2.0])], (f32,)),
    Row("searchsorted", lambda x, v: torch.searchsorted(x, v), [EDGES, tensor([[0.5, 3.0], [-2.0, 0.0]])], (f32,)),
    Row("searchsorted right", lambda x, v: torch.searchsorted(x, v, right=True), [EDGES, tensor([0.5, 2.0])], (f32,)),
    Row(
        "searchsorted rows",
        lambda x, v: torch.searchsorted(x, v, sorter=x.argsort(-1), out_int32=True),
        [(2, 7), (2, 3)],
        (f32,),
    ),
    *(Row(f"cdist {p}", lambda x, y, p=p: torch.cdist(x, y, p), [(2, 4, 3), (2, 5, 3)], (f32,)) for p in (0.5, 1, 2)),
    Row("cdist that overflows", lambda x, y: torch.cdist(x * 1e30, y), [(4, 1), (5, 1)], (f32,)),
    Row("pdist that overflows", lambda x: torch.pdist(x * 1e20, 3), [(4, 1)], (f32,)),
    Row("cdist of many", torch.cdist, [(30, 8), (27, 8)], (f32,)),
    Row("dist", torch.dist, [(3, 4), (3, 4)]),
    Row("dist 3", lambda x, y: torch.dist(x, y, 3), [(3, 4), (3, 4)], (f32,)),
    Row("renorm", lambda x: x.renorm(2, 1, 0.5), [(3, 4, 5)], (f32,)),
    Row("pdist", F.pdist, [(5, 3)], (f32,)),
    Row("histogram", lambda x: x.histogram(5), [(20,)], (f32,)),
    Row(
        "histogramdd",
        lambda x, a, b, w: torch.histogramdd(x, [a, b], weight=w, density=True),
        [(9, 2), EDGES, EDGES, (9,)],
        (f32,),
    ),
    *(
        Row(f"segment_reduce {r}", lambda x, n, r=r: torch.segment_reduce(x, r, lengths=n), [(7, 2), LENGTHS], (f32,))
        for r in ("max", "mean", "prod")
    ),
    Row(
        "segment_reduce offsets",
        lambda x, o: torch.segment_reduce(x, "sum", offsets=o, initial=1),
        [(7,), tensor([1, 3, 3, 6], i64)],
    ),
    *(Row(f"embedding_bag {m}", _bags(m), [index(0, 6, 7), (6, 4)], (f32,)) for m in ("mean", "max")),
    *(
        Row(
            f"embedding_bag {mode} all results {last} {padding}",
            _whole_bags(mode, last, padding),
            [index(0, 6, 7), (6, 4)],
            (f32,),
        )
        for mode, last, padding in BAGS
    ),
    Row("embedding_bag sum all results", _whole_bags(0, True), [index(0, 6, 7), (6, 4)], (torch.bfloat16,)),
    Row(
        "embedding_bag weighted",
        lambda i, w, s: F.embedding_bag(i, w, mode="sum", per_sample_weights=s, padding_idx=2),
        [index(0, 6, 3, 4), (6, 4), (3, 4)],
    ),
]

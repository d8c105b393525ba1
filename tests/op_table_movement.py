"""Rows of the op table: data movement, indexing, creation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from op_rows import (
    ALL,
    EVERY,
    NUMBERS,
    Row,
    X,
    b1,
    f32,
    i32,
    i64,
    index,
    of,
    tensor,
)


def _write(x: torch.Tensor) -> torch.Tensor:
    """Writes in place, then takes a view that only the order in memory allows."""
    x[1:3] = 7
    x[:, ::2] += 1
    return x.t().view(-1)


def _masked(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[x > 1] = 1
    x[:, x[0, :, 0] > 0] = -3
    return x.index_put((x == 1,), torch.ones_like(x[:1, 0, 0]), accumulate=True)


# --- data movement ------------------------------------------------------------------------------

MOVEMENT = [
    Row("view", lambda x: x.view(4, 15) + 1, [(3, 4, 5)], ALL),
    Row("reshape of transposed", lambda x: x.transpose(0, 1).reshape(-1) * 1, [(3, 4, 5)], NUMBERS),
    Row("flatten", lambda x: x.flatten(1) * 1, [(3, 4, 5)], NUMBERS),
    Row("permute", lambda x: x.permute(2, 0, 1) * 1, [(3, 4, 5)], ALL),
    Row("transpose negative", lambda x: x.transpose(-1, -3) * 1, [(3, 4, 5)], NUMBERS),
    Row("expand", lambda x: x.expand(2, 3, 4) * 1, [(3, 1)], ALL),
    Row("repeat", lambda x: x.repeat(2, 1, 3), [(3, 4)], ALL),
    Row("repeat_interleave", lambda x: x.repeat_interleave(3, 1), [(2, 3, 4)], NUMBERS),
    Row("tile", lambda x: x.tile(2, 3), [(3, 4)], NUMBERS),
    Row("cat", lambda x, y: torch.cat([x, y], 1), [(2, 3, 4), (2, 5, 4)], ALL),
    Row("cat last", lambda x, y: torch.cat([x, y, x], -1), [(2, 3), (2, 5)], NUMBERS),
    Row("cat of 40", lambda x: torch.cat([x + i for i in range(40)]), [(2, 3)]),
    Row("cat with empty", lambda x, y: torch.cat([x, y]), [(2, 3), (0, 3)], NUMBERS),
    Row("cat mixed types", lambda x, y: torch.cat([x, y]), [(2, 3), of(i64, 2, 3)]),
    Row("stack", lambda x, y: torch.stack([x, y], -1), [(2, 3), (2, 3)], ALL),
    Row("split", lambda x: torch.split(x, 2, 1), [(2, 5, 3)], NUMBERS),
    Row("split sizes", lambda x: torch.split(x, [1, 4], 1), [(2, 5, 3)], NUMBERS),
    Row("chunk", lambda x: [c * 1 for c in x.chunk(3, -1)], [(2, 7)], NUMBERS),
    Row("unbind", lambda x: [c * 1 for c in x.unbind(1)], [(2, 3, 4)], NUMBERS),
    Row("slice", lambda x: x[:, 1:3] * 1, [(3, 4, 5)], ALL),
    Row("slice negative", lambda x: x[-2:, :-1] * 1, [(3, 4, 5)], NUMBERS),
    Row("slice steps", lambda x: x[::2, 1::3] * 1, [(3, 7, 5)], NUMBERS),
    Row("slice past the end", lambda x: x[1:100] * 1, [(3, 4)], NUMBERS),
    Row("slice to nothing", lambda x: x[2:2] * 1, [(3, 4)], NUMBERS),
    Row("select", lambda x: x[1] * 1, [(3, 4)], ALL),
    Row("select negative", lambda x: x.select(-1, -2) * 1, [(3, 4)], NUMBERS),
    Row("narrow", lambda x: x.narrow(1, 1, 2) * 1, [(3, 4)], NUMBERS),
    Row("none and ellipsis", lambda x: x[..., None, 1] * 1, [(3, 4)], NUMBERS),
    Row("pad", lambda x: F.pad(x, (1, 2)), [(3, 4)], NUMBERS),
    Row("pad of booleans", lambda x: F.pad(x, (1, 2), value=6), [(3, 4)], (b1,)),
    Row("pad value", lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), [(2, 3, 4)]),
    Row("pad negative", lambda x: F.pad(x, (-1, 2)), [(3, 4)]),
    Row("pad reflect", lambda x: F.pad(x, (2, 1), mode="reflect"), [(2, 3, 5)]),
    Row("pad replicate", lambda x: F.pad(x, (2, 1, 1, 0), mode="replicate"), [(2, 3, 4, 5)]),
    Row("pad circular", lambda x: F.pad(x, (2, 1), mode="circular"), [(2, 3, 5)]),
    Row(
        "copies of views",
        lambda x: (torch.diagonal_copy(x, 1), torch.unfold_copy(x, 1, 2, 2), torch.t_copy(x)),
        [(3, 4)],
    ),
    Row(
        "copies of parts",
        lambda x: (torch.slice_copy(x, 1, 1, 9, 2), torch.select_copy(x, 0, -1), torch.split_copy(x, 3, 1)),
        [(3, 4)],
    ),
    Row("diagonal_scatter", lambda x, y: torch.diagonal_scatter(x, y, 1), [(3, 4), (3,)], NUMBERS),
    Row(
        "as_strided_scatter", lambda x, y: torch.as_strided_scatter(x, y, (2, 2), (4, 1), 1), [(3, 4), (2, 2)], NUMBERS
    ),
    Row("as_strided of transposed", lambda x: (x.t() + 1).as_strided((2, 3), (1, 4)) * 1, [(3, 4)], NUMBERS),
    Row("scatter into transposed", lambda x: _write(x.t() + 1), [(4, 6)], NUMBERS),
    Row("one value by a mask", lambda x: _masked(x), [(3, 4, 2)], NUMBERS),
    Row("unfold of a scalar", lambda x: x.unfold(0, 1, 1) * 1, [()]),
    Row("nothing", lambda x: (x.flip(0), x.transpose(0, 2) + 1, torch.cat([x, x])), [(5, 0, 10)], ALL),
    Row("transposed scalar", lambda x: x.transpose(0, -1) + 1, [()], NUMBERS),
    Row("block_diag", lambda x, y: torch.block_diag(x, y), [(2, 3), (1, 2)]),
    Row("flip", lambda x: x.flip(0, 2), [(3, 4, 5)], NUMBERS),
    Row("roll", lambda x: x.roll(2, 1), [(3, 5)], NUMBERS),
    Row("roll two", lambda x: x.roll((1, -2), (0, 1)), [(3, 5)], NUMBERS),
    Row("unsqueeze", lambda x: x.unsqueeze(1) + 1, [(3, 4)], NUMBERS),
    Row("squeeze", lambda x: x.squeeze(1) + 1, [(3, 1, 4)], NUMBERS),
    Row("squeeze all", lambda x: x.squeeze() + 1, [(1, 3, 1)], NUMBERS),
    Row("tril", torch.tril, [(4, 5)], NUMBERS),
    Row("diagonal of products, filled", lambda x: ((y := x @ x.mT), y.diagonal().fill_(0))[0], [(2, 1, 2, 3, 5)]),
    Row(
        "part of products, filled",
        lambda x: ((y := x @ x.mT), y[1:].zero_(), y[..., :2, 1:].zero_())[0],
        [(2, 1, 2, 3, 5)],
    ),
    Row("tril diagonal", lambda x: x.tril(-1), [(2, 4, 5)], NUMBERS),
    Row("triu", lambda x: x.triu(1), [(4, 5)], NUMBERS),
    Row("diagonal", lambda x: x.diagonal() * 1, [(4, 5)], NUMBERS),
    Row("diag", torch.diag, [(4,)]),
    Row("diag_embed", torch.diag_embed, [(2, 4)]),
    Row("movedim", lambda x: x.movedim(0, 2) * 1, [(3, 4, 5)], NUMBERS),
    Row("unfold", lambda x: x.unfold(1, 3, 2) * 1, [(2, 7)]),
    Row("as_strided", lambda x: x.as_strided((2, 3), (4, 1)) * 1, [(3, 4)]),
    Row("meshgrid", lambda x, y: [m * 1 for m in torch.meshgrid(x, y, indexing="ij")], [(3,), (4,)]),
    Row("rot90", lambda x: torch.rot90(x), [(3, 4)]),
    Row("expand_as boolean", lambda m, x: m.expand_as(x) & (x > 0), [of(b1, 1, 4), (3, 4)], NUMBERS),
    Row("empty input", lambda x: x * 2 + 1, [(0, 3)], NUMBERS),
]

# --- indexing -----------------------------------------------------------------------------------

INDEXING = [
    Row("embedding", F.embedding, [index(0, 7, 2, 3), (7, 4)]),
    Row("embedding int32", F.embedding, [index(0, 7, 2, 3, dtype=i32), (7, 4)]),
    Row("embedding padding_idx", lambda i, w: F.embedding(i, w, padding_idx=0), [index(0, 7, 2, 3), (7, 4)]),
    Row("one_hot", lambda i: F.one_hot(i, 5), [index(0, 5, 2, 3)], (i64,)),
    Row("gather", lambda x, i: x.gather(1, i), [(2, 5, 3), index(0, 5, 2, 4, 3)], ALL),
    Row("gather smaller index", lambda x, i: x.gather(0, i), [(4, 5), index(0, 4, 2, 3)], NUMBERS),
    Row("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1), [(2, 5), index(0, 5, 2, 3)]),
    Row("take", torch.take, [(2, 5), index(-10, 10, 4)]),
    Row("index_select", lambda x, i: x.index_select(1, i), [(2, 5, 3), index(0, 5, 4)], ALL),
    Row("index", lambda x, i: x[i], [(5, 3), index(0, 5, 4)], EVERY),
    Row("index negative", lambda x, i: x[i], [(5, 3), index(-5, 5, 6)], NUMBERS),
    Row("index last dim", lambda x, i: x[:, i], [(3, 5), index(-5, 5, 4)], NUMBERS),
    Row("index list", lambda x: x[:, :, [-2]], [(3, 4, 5)], NUMBERS),
    Row("index two", lambda x, i, j: x[i, j], [(4, 5, 3), index(-4, 4, 6), index(-5, 5, 6)], NUMBERS),
    Row("index apart", lambda x, i, j: x[i, :, j], [(4, 5, 3), index(-4, 4, 6), index(-3, 3, 6)], NUMBERS),
    Row("index broadcast", lambda x, i, j: x[i, j], [(4, 5), index(0, 4, 3, 1), index(0, 5, 2)], NUMBERS),
    Row("index matrix", lambda x, i: x[i], [(5, 3), index(-5, 5, 2, 2)], NUMBERS),
    Row("index int32", lambda x, i: x[i], [(5, 3), index(-5, 5, 6, dtype=i32)]),
    Row("index_put", lambda x, i, v: x.index_put((i,), v), [(6, 3), tensor([1, -1, 3], i64), (3, 3)], NUMBERS),
    Row(
        "index_put accumulate",
        lambda x, i, v: x.index_put((i,), v, True),
        [(6, 3), tensor([1, -1, 1], i64), (3, 3)],
        NUMBERS,
    ),
    Row(
        "index_put two",
        lambda x, i, j, v: x.index_put((i, j), v),
        [(4, 5), tensor([0, -1, 2], i64), tensor([1, 0, -2], i64), (3,)],
        NUMBERS,
    ),
    Row(
        "index_put apart",
        lambda x, i, j, v: torch.ops.aten.index_put(x, [None, i, None, j], v, True),
        [(2, 4, 5, 3), tensor([[0], [-1]], i64), tensor([1, 0, 1], i64), (2, 3, 2, 5)],
        NUMBERS,
    ),
    Row(
        "index_put scalar",
        lambda x, i: x.index_put((i,), torch.tensor(7, dtype=x.dtype)),
        [(6, 3), tensor([1, -1], i64)],
        NUMBERS,
    ),
    Row("index_copy", lambda x, i, v: x.index_copy(1, i, v), [(2, 6), tensor([4, 0], i64), (2, 2)], NUMBERS),
    Row("index_add", lambda x, i, v: x.index_add(0, i, v), [(6, 3), tensor([1, 5, 1], i64), (3, 3)], NUMBERS),
    Row("index_fill", lambda x, i: x.index_fill(1, i, 3), [(2, 6), tensor([4, 0], i64)], NUMBERS),
    Row(
        "scatter", lambda x, i, v: x.scatter(1, i, v), [(3, 5), tensor([[0, 4], [1, 2], [3, 0]], i64), (3, 2)], NUMBERS
    ),
    Row("scatter value", lambda x, i: x.scatter(1, i, 2), [(3, 5), tensor([[0, 4], [1, 2]], i64)], NUMBERS),
    Row("scatter dim 0", lambda x, i, v: x.scatter(0, i, v), [(5, 3), tensor([[0, 4, 1]], i64), (2, 3)], NUMBERS),
    Row("scatter_add", lambda x, i, v: x.scatter_add(1, i, v), [(3, 5), index(0, 5, 3, 4), (3, 4)], NUMBERS),
    Row("slice_scatter", lambda x, v: x.slice_scatter(v, 1, 1, 3), [(2, 5), (2, 2)], NUMBERS),
    Row("slice_scatter to the end", lambda x, v: torch.slice_scatter(x, v, 1, 2), [(2, 5), (2, 3)], NUMBERS),
    Row("slice_scatter step", lambda x, v: x.slice_scatter(v, 1, 0, 5, 2), [(2, 5), (2, 3)], NUMBERS),
    Row("slice_scatter of nothing", lambda x, v: x.slice_scatter(v, 0, 0, 0), [(0, 5), (0, 5)], NUMBERS),
    *(
        Row(f"{name} of floats to integers", fn, [tensor([[1, 2, 3]], torch.int32), (1, 2)], (torch.float32,))
        for name, fn in {
            "slice_scatter": lambda x, v: x.slice_scatter(v, 1, 1, 3),
            "slice_scatter step": lambda x, v: x.slice_scatter(v, 1, 0, 3, 2),
            "select_scatter": lambda x, v: x.select_scatter(v[0, :1], 1, 1),
        }.items()
    ),
    Row("select_scatter", lambda x, v: x.select_scatter(v, 0, -1), [(3, 4), (4,)], NUMBERS),
    Row("masked_scatter by where", lambda x, m, v: torch.where(m, v, x), [(3, 4), of(b1, 3, 4), (3, 4)], ALL),
    Row("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), [X], (f32,)),
]

# --- creation -----------------------------------------------------------------------------------

CREATION = [
    Row("arange", lambda x: x + torch.arange(5), [(3, 5)], NUMBERS),
    Row("arange step", lambda x: x + torch.arange(2, 12, 2), [(3, 5)], NUMBERS),
    Row("arange down", lambda x: x + torch.arange(5, 0, -1), [(3, 5)], NUMBERS),
    Row("arange of floats", lambda x: x + torch.arange(0, 1, 0.2), [(3, 5)], (f32,)),
    Row("linspace", lambda x: x + torch.linspace(0, 1, 5), [(3, 5)], (f32,)),
    Row("full", lambda x: x + torch.full((3, 5), 2.5), [(3, 5)], (f32,)),
    Row("full of integers", lambda x: x + torch.full((5,), 3), [(3, 5)], NUMBERS),
    Row("zeros", lambda x: torch.cat([x, torch.zeros(1, 5, dtype=x.dtype)]), [(3, 5)], ALL),
    Row("ones", lambda x: torch.cat([x, torch.ones(1, 5, dtype=x.dtype)]), [(3, 5)], ALL),
    Row("eye", lambda x: x + torch.eye(3, 5), [(3, 5)], (f32,)),
    Row("zeros_like", lambda x: torch.zeros_like(x) + x, [(3, 5)], NUMBERS),
    Row("full_like", lambda x: torch.full_like(x, 3) * x, [(3, 5)], NUMBERS),
    Row("new_ones", lambda x: x.new_ones(5) + x, [(3, 5)], NUMBERS),
    Row("tensor", lambda x: x + torch.tensor([1, 2, 3, 4, 5]), [(3, 5)], NUMBERS),
    Row("scalar_tensor", lambda x: x + torch.tensor(2.5), [(3, 5)]),
    Row("constant result", lambda x: (x + 1, torch.arange(4)), [(3, 5)]),
    Row("causal mask", lambda x: x.masked_fill(torch.ones(5, 5).triu(1).bool(), 0.0), [(5, 5)]),
]

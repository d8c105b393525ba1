"""Rows of the op table: orderings, scans and ops that are computed by sorting."""

from __future__ import annotations

from typing import Any

import torch
from op_rows import ALL, FLOATS, INTS, NUMBERS, Row, b1, distinct, f32, nonzero, tensor

NAN, INF = float("nan"), float("inf")
D = distinct(4, 9)
TIES = (4, 9)  # drawn integers and booleans repeat
SPECIAL = tensor([[1, NAN, 3, NAN, 0, -INF], [INF, 2, 1, 3, 4, 5], [-INF, -INF, 0, 1, INF, -INF]])


def _scalars(name: str, *args: Any) -> Row:
    return Row(f"{name} of a scalar", lambda x: getattr(torch, name)(x, *args), [()], (f32,))


ORDERINGS = [
    Row("sort", torch.sort, [D], NUMBERS),
    Row("sort descending", lambda x: torch.sort(x, 0, descending=True), [D], NUMBERS),
    Row("sort of equals", torch.sort, [TIES], (*INTS, b1)),
    Row("sort stable", lambda x: torch.sort(x, stable=True, dim=0), [(40, 3)], (*INTS, b1)),
    Row("sort stable descending", lambda x: x.sort(stable=True, dim=0, descending=True), [(40, 3)], (*INTS, b1)),
    Row("sort with NaN", torch.sort, [SPECIAL], (f32,)),
    Row("msort", torch.msort, [(7, 3)]),
    Row("argsort", lambda x: x.argsort(1, descending=True), [D], NUMBERS),
    Row("topk", lambda x: x.topk(3), [D], NUMBERS),
    Row("topk smallest", lambda x: x.topk(2, 0, largest=False), [D], NUMBERS),
    # PyTorch does not promise an order for these, so the values are sorted before they are compared.
    Row("topk unsorted", lambda x: x.topk(4, sorted=False).values.sort().values, [D], NUMBERS),
    Row("topk of nothing", lambda x: x.topk(0), [D]),
    Row("kthvalue", lambda x: x.kthvalue(3), [D], NUMBERS),
    Row("kthvalue keepdim", lambda x: x.kthvalue(2, 0, keepdim=True), [D], NUMBERS),
    Row("median", torch.median, [(4, 9)], NUMBERS),
    Row("median dim", lambda x: x.median(1), [D], NUMBERS),
    Row("median with NaN", lambda x: (x.median(), x.median(1, keepdim=True)), [SPECIAL], (f32,)),
    Row("nanmedian", lambda x: (x.nanmedian(), x.nanmedian(1)), [SPECIAL], (f32,)),
    Row("mode", torch.mode, [TIES], (*INTS, b1)),
    Row("mode keepdim", lambda x: x.mode(0, keepdim=True), [(9, 4)], INTS),
    Row("quantile", lambda x: x.quantile(torch.tensor([0.2, 0.7]), 1), [(4, 9)], (f32,)),
    Row("nanquantile", lambda x: x.nanquantile(0.4, 1), [tensor([[1, NAN, 3, 0.5], [2, 5, 4, 1]])], (f32,)),
    Row("cummax", lambda x: x.cummax(0), [TIES], ALL),
    Row("cummin", lambda x: x.cummin(-1), [TIES], ALL),
    Row("cummax with NaN", lambda x: (x.cummax(1), x.cummin(1)), [SPECIAL], (f32,)),
    Row("cumprod", lambda x: x.cumprod(1), [nonzero(2, 5, 3)], NUMBERS),
    Row("cumprod to float", lambda x: x.cumprod(0, dtype=f32), [TIES], (*INTS, b1)),
    _scalars("cumprod", 0),
    Row("logcumsumexp", lambda x: x.logcumsumexp(1), [TIES]),
    Row("logcumsumexp of large", lambda x: x.logcumsumexp(0), [tensor([900.0, 2.0, 1000.0, -5.0])], FLOATS),
    Row("logcumsumexp with NaN", lambda x: x.logcumsumexp(1), [SPECIAL], (f32,)),
    Row("scans of nothing", lambda x: (x.cumsum(0), x.cumprod(0), x.cummax(0), x.logcumsumexp(0)), [(0, 3)], (f32,)),
    *(_scalars(name) for name in ("sort", "median", "nanmedian", "mode", "argmin", "argsort")),
    *(_scalars(name, 0) for name in ("max", "min", "cummax", "cummin", "cumsum", "logcumsumexp", "argmax")),
    *(_scalars(name, 1) for name in ("topk", "kthvalue")),
]

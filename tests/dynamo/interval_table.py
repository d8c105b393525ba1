"""The expected intervals of exact integers: one row per op, and per case of its rule.

    (function, interval of x, interval of y, expected interval)

x and y are int64 of shape (3, 4). `i`, also int64, has indices from 0 to 2 and the shape (2, 4). A wider interval
would be right, too, but would send more calls to the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

i64, i8, u8 = torch.int64, torch.int8, torch.uint8
Range = tuple[float, float]
ANY = (-math.inf, math.inf)
Row = tuple[Callable[..., Any], Range, Range, Range]

ROWS: dict[str, list[Row]] = {
    "sums": [
        (lambda x, y, i: torch.add(x, y, alpha=3), (-3, 5), (2, 4), (3, 17)),
        (lambda x, y, i: torch.sub(x, y, alpha=2), (-3, 5), (2, 4), (-11, 1)),
        (lambda x, y, i: torch.rsub(x, 7, alpha=2), (-3, 5), (0, 0), (-3, 13)),
        (lambda x, y, i: -x, (-3, 5), (0, 0), (-5, 3)),
    ],
    "products": [
        (lambda x, y, i: x * y, (-3, 5), (-2, 4), (-12, 20)),
        (lambda x, y, i: x**2, (-3, 5), (0, 0), (0, 25)),
        (lambda x, y, i: x**2, (-6, -2), (0, 0), (4, 36)),
        (lambda x, y, i: x**3, (-3, 2), (0, 0), (-27, 8)),
        (lambda x, y, i: x**0, (-3, 2), (0, 0), (0, 1)),  # `ones_like` has this interval, too
        (lambda x, y, i: x**y, (0, 3), (2, 4), (0, 81)),
        (lambda x, y, i: x**y, (2, 3), (0, 4), (1, 81)),
        (lambda x, y, i: x**y, (-3, 3), (2, 4), ANY),  # the sign depends on the exponent
        (lambda x, y, i: x**y, (2, 3), (-1, 4), ANY),
        (lambda x, y, i: x**y, (0, 1), (0, 128), (0, 1)),
        (lambda x, y, i: x**y, (0, 1), (0, 129), ANY),
        (lambda x, y, i: x**128, (1, 1), (0, 0), (1, 1)),
        (lambda x, y, i: x**129, (1, 1), (0, 0), ANY),
    ],
    "signs": [
        (lambda x, y, i: x.abs(), (-3, 5), (0, 0), (0, 5)),
        (lambda x, y, i: x.abs(), (-6, -2), (0, 0), (2, 6)),
        (lambda x, y, i: x.abs(), (2, 6), (0, 0), (2, 6)),
        (lambda x, y, i: x.abs(), (0, 6), (0, 0), (0, 6)),
        (lambda x, y, i: x.sign(), (-30, 50), (0, 0), (-1, 1)),
        (lambda x, y, i: x.relu(), (-3, 5), (0, 0), (0, 5)),
        (lambda x, y, i: x.relu(), (2, 5), (0, 0), (2, 5)),
        (lambda x, y, i: x.relu(), (-5, -2), (0, 0), (0, 0)),
        (lambda x, y, i: F.hardtanh(x, -1, 4), (-3, 5), (0, 0), (-1, 4)),
        (lambda x, y, i: F.hardtanh(x, 7, 9), (-3, 5), (0, 0), (7, 7)),
        (lambda x, y, i: F.hardtanh(x, -9, -7), (-3, 5), (0, 0), (-7, -7)),
        (lambda x, y, i: F.hardtanh(x.float(), -2.0, 100.0).to(i64), (-64, 5), (0, 0), (-3, 6)),
    ],
    "limits": [
        (lambda x, y, i: x.clamp(-1, 3), (-3, 5), (0, 0), (-1, 3)),
        (lambda x, y, i: x.clamp(-9, 9), (-3, 5), (0, 0), (-3, 5)),
        (lambda x, y, i: x.clamp(min=1), (-3, 5), (0, 0), (1, 5)),
        (lambda x, y, i: x.clamp(min=7), (-3, 5), (0, 0), (7, 7)),
        (lambda x, y, i: x.clamp(max=-4), (-3, 5), (0, 0), (-4, -4)),
        (lambda x, y, i: x.clamp(max=y), (-3, 5), (2, 4), (-3, 5)),
        (lambda x, y, i: torch.clamp_min(x, 3), (-3, 5), (0, 0), (3, 5)),
        (lambda x, y, i: torch.clamp_max(x, 3), (-3, 5), (0, 0), (-3, 3)),
        (lambda x, y, i: torch.maximum(x, y), (-3, 5), (2, 8), (2, 8)),
        (lambda x, y, i: torch.maximum(x, y), (-3, 5), (2, 4), (2, 5)),
        (lambda x, y, i: torch.minimum(x, y), (-3, 5), (2, 4), (-3, 4)),
        (lambda x, y, i: torch.minimum(x, y), (-3, 1), (-5, 4), (-5, 1)),
    ],
    "quotients": [  # rounded down and up, because a rule does not ask for the mode
        (lambda x, y, i: torch.div(x, y, rounding_mode="trunc"), (-11, 20), (3, 7), (-4, 7)),
        (lambda x, y, i: torch.div(x, y, rounding_mode="trunc"), (-12, 20), (-4, 2), (-20, 20)),
        (lambda x, y, i: torch.div(x, y, rounding_mode="trunc"), (6, 20), (0, 2), (3, 20)),
        (lambda x, y, i: torch.div(x, -5, rounding_mode="trunc"), (-12, 20), (0, 0), (-4, 3)),
        (lambda x, y, i: x // 5, (-12, 20), (0, 0), (-4, 4)),
        (lambda x, y, i: (x / 4).to(i64), (-12, 20), (0, 0), (-4, 6)),
        (lambda x, y, i: (x / y).to(i64), (-12, 20), (0, 4), ANY),  # a division by zero is among them
        (lambda x, y, i: (x.float() / y).to(i64), (-12, 20), (2, 4), (-7, 11)),
        (lambda x, y, i: x % 7, (-3, 5), (0, 0), (0, 7)),
        (lambda x, y, i: x % -7, (-3, 5), (0, 0), (-7, 0)),
        (lambda x, y, i: x % y, (-3, 5), (-2, 4), (-2, 4)),
        (lambda x, y, i: (x.float() % 7).to(i64), (2, 9), (0, 0), (0, 8)),
        (lambda x, y, i: (x.float() % y).to(i64), (2, 9), (-1, 3), ANY),
    ],
    "bits": [
        (lambda x, y, i: x & y, (0, 100), (0, 12), (0, 12)),
        (lambda x, y, i: x & 12, (-9, 100), (0, 0), (0, 12)),
        (lambda x, y, i: x & y, (-9, 100), (-5, 12), (-128, 127)),
        (lambda x, y, i: x | y, (0, 100), (0, 12), (0, 127)),
        (lambda x, y, i: x | y, (-130, 100), (0, 12), (-256, 255)),
        (lambda x, y, i: x ^ y, (0, 16), (0, 3), (0, 31)),
        (lambda x, y, i: x ^ y, (0, 3), (-1, 3), (-4, 3)),
        (lambda x, y, i: ~x, (-3, 5), (0, 0), (-6, 2)),
        (lambda x, y, i: (~(x > y)).to(i64), (-3, 5), (0, 0), (0, 1)),
        (lambda x, y, i: x << 3, (-3, 5), (0, 0), (-24, 40)),
        (lambda x, y, i: x << y, (-3, 5), (1, 4), (-48, 80)),
        (lambda x, y, i: x << y, (1, 5), (-4, -1), (0, 5)),
        (lambda x, y, i: x << y, (1, 5), (0, 64), ANY),
        (lambda x, y, i: x >> y, (-30, 50), (1, 4), (-30, 50)),
        (lambda x, y, i: x >> 2, (3, 50), (0, 0), (0, 50)),
    ],
    "reductions": [
        (lambda x, y, i: x.sum(), (-3, 5), (0, 0), (-36, 60)),
        (lambda x, y, i: x.sum(1), (-3, 5), (0, 0), (-12, 20)),
        (lambda x, y, i: x.sum(0), (2, 5), (0, 0), (0, 15)),
        (lambda x, y, i: x.cumsum(0), (-5, -3), (0, 0), (-15, 0)),
        (lambda x, y, i: x[0, 0].prod(0), (2, 5), (0, 0), (-5, 5)),
        (lambda x, y, i: (x > y).sum(1), (-3, 5), (0, 0), (0, 4)),
        (lambda x, y, i: x.prod(1), (-3, 2), (0, 0), (-81, 81)),
        (lambda x, y, i: x.prod(), (-1, 1), (0, 0), (-1, 1)),
        (lambda x, y, i: x.repeat(20, 1).prod(), (-1, 1), (0, 0), (-1, 1)),
        (lambda x, y, i: x.repeat(20, 1).prod(), (-1, 2), (0, 0), ANY),
        (lambda x, y, i: x[0, :1].expand(128).prod(), (0, 2), (0, 0), (-(2**128), 2**128)),
        (lambda x, y, i: x[0, :1].expand(129).prod(), (0, 2), (0, 0), ANY),
        (lambda x, y, i: x.cumprod(0), (-2, 2), (0, 0), (-8, 8)),
        (lambda x, y, i: x.amax(1), (-3, 5), (0, 0), (-3, 5)),
    ],
    "matrix products": [
        (lambda x, y, i: x @ y.t(), (-3, 5), (2, 4), (-48, 80)),
        (lambda x, y, i: x[None].bmm(y.t()[None]), (-3, 5), (2, 4), (-48, 80)),
        (lambda x, y, i: x[0].dot(y[0]), (-3, 5), (2, 4), (-48, 80)),
        (lambda x, y, i: x.mv(y[0]), (-3, 5), (2, 4), (-48, 80)),
        (
            lambda x, y, i: torch.addmm(x[:, :3].float(), x.float(), y.t().float(), beta=2, alpha=3).to(i64),
            (0, 2),
            (1, 2),
            (0, 54),
        ),
    ],
    "positions": [
        (lambda x, y, i: x.argmax(), (-3, 5), (0, 0), (-1, 12)),
        (lambda x, y, i: x.sort().indices, (-3, 5), (0, 0), (0, 11)),
        (lambda x, y, i: x.sort().values, (-3, 5), (0, 0), (-3, 5)),
        (lambda x, y, i: x.max(1).indices, (-3, 5), (0, 0), (0, 11)),
        (lambda x, y, i: x.max(1).values, (-3, 5), (0, 0), (-3, 5)),
        (lambda x, y, i: torch.bucketize(y, x[0]), (0, 3), (0, 0), (0, 4)),
    ],
    "moved": [
        (lambda x, y, i: x.t(), (2, 5), (0, 0), (2, 5)),
        (lambda x, y, i: x.gather(0, i), (2, 5), (0, 0), (2, 5)),
        (lambda x, y, i: F.pad(x, (1, 2)), (2, 5), (0, 0), (0, 5)),
        (lambda x, y, i: F.pad(x, (1, 2), value=7), (2, 5), (0, 0), (2, 7)),
        (lambda x, y, i: x.tril(), (2, 5), (0, 0), (0, 5)),
        (lambda x, y, i: torch.cat([x, y]), (-3, 1), (2, 4), (-3, 4)),
        (lambda x, y, i: torch.where(x > y, x, 9), (-3, 5), (2, 4), (-3, 9)),
        (lambda x, y, i: x.masked_fill(y > 0, -8), (-3, 5), (0, 0), (-8, 5)),
    ],
    "written": [
        (lambda x, y, i: x.scatter(0, i, y[:2]), (2, 5), (7, 8), (2, 8)),
        (lambda x, y, i: x.scatter_add(0, i, y[:2]), (2, 5), (1, 2), (2, 21)),
        (lambda x, y, i: x.index_put((i[0],), y[0], True), (2, 5), (1, 2), (2, 13)),
        (lambda x, y, i: x.scatter_reduce(0, i, y[:2], "amax"), (2, 5), (7, 8), (2, 8)),
        (lambda x, y, i: x.scatter_reduce(0, i, y[:2], "amin"), (2, 5), (0, 1), (0, 5)),
        (lambda x, y, i: x.scatter_reduce(0, i, y[:2], "sum"), (2, 5), (1, 2), (2, 21)),
        (lambda x, y, i: x.scatter_reduce(0, i, y[:2], "prod"), (2, 5), (1, 2), ANY),
        (lambda x, y, i: x.scatter_reduce(0, i, y[:2], "amin", include_self=False), (2, 5), (7, 8), (2, 8)),
    ],
    "created": [
        (lambda x, y, i: x + torch.arange(3, 12, 3)[:, None], (0, 0), (0, 0), (3, 12)),
        (lambda x, y, i: x[0] + torch.arange(8, 4, -1), (0, 0), (0, 0), (4, 8)),
        (lambda x, y, i: x[0] + torch.arange(4), (0, 0), (0, 0), (0, 4)),
        (lambda x, y, i: torch.full_like(x, 11), (0, 0), (0, 0), (11, 11)),
        (lambda x, y, i: torch.ones_like(x), (0, 0), (0, 0), (0, 1)),
        (lambda x, y, i: torch.randint_like(x, 4, 9), (0, 0), (0, 0), (4, 9)),
    ],
    "converted": [
        (lambda x, y, i: x.to(i8), (-3, 500), (0, 0), (-3, 500)),
        (lambda x, y, i: x.to(u8).to(i64), (-3, 5), (0, 0), (0, 255)),
        (lambda x, y, i: x.to(i8).to(i64), (-3, 5), (0, 0), (-3, 5)),
        (lambda x, y, i: x.float().to(i64), (-256, 512), (0, 0), (-258, 516)),  # bfloat16 rounds by 1 in 128
        (lambda x, y, i: x.float().floor().to(i64), (-3, 5), (0, 0), (-5, 7)),
        (lambda x, y, i: x.float().sigmoid().to(i64), (-3, 5), (0, 0), (-2, 2)),
        (lambda x, y, i: x.float().softmax(0).to(i64), (-3, 5), (0, 0), (-2, 2)),
        (lambda x, y, i: x.float().log().sin().to(i64), (-3, 5), (0, 0), ANY),  # a NaN may be among them
        (lambda x, y, i: torch.maximum(x.float().log(), y.float()).to(i64), (-3, 5), (0, 0), ANY),
        (lambda x, y, i: x.float().log().clamp(-3, 5).to(i64), (-3, 5), (0, 0), ANY),
    ],
}

"""Rows on booleans, whose arithmetic is logic, and on shifts by a number of bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from exact_table import Exact, f32, i8, i16, i32, i64, of, u8
from numbers_table import COMPARISONS, FEW, at, b8

# --- booleans: arithmetic is logic, and beside an integer they are integers

SAME = {
    "itself": lambda b: b,
    "view": lambda b: b.view(b.shape),
    "slice": lambda b: b[:],
    "expand": lambda b: b.expand(b.shape),
    "cat": lambda b: torch.cat([b]),
    "reshapes": lambda b: b.view(1, -1).reshape(-1),
    "int32": lambda b: b.int(),
}


def constants(name: str) -> Callable[[torch.Tensor], Any]:
    """Compares a tensor with itself, which can be folded. No op that follows may read true as -1.

    Each op follows each comparison of the tensor `itself`. In the other programs, two ops follow each comparison, and
    each op follows three comparisons.
    """
    same, count = SAME[name], len(CONSUMERS)

    def fn(b: torch.Tensor) -> Any:
        pairs = [(b, same(b)), (b.int() + 1, same(b.int() + 1)), (b.float() / 0, same(b.float() / 0))]
        known = [f(x, y) for x, y in pairs for f in COMPARISONS]
        ops = [range(count) if name == "itself" else (i % count, (i + 6) % count) for i in range(len(known))]
        return [CONSUMERS[i](c) for c, chosen in zip(known, ops, strict=True) for i in chosen]

    return fn


CONSUMERS = (
    lambda c: c == True,  # noqa: E712
    lambda c: c < True,
    lambda c: c >= False,
    lambda c: c + c,
    lambda c: c + True,
    lambda c: c * c,
    lambda c: torch.copysign(c, c),
    lambda c: c // -1,
    lambda c: c.angle(),
    lambda c: torch.signbit(c),
    lambda c: c.sum(),
    lambda c: c.float() * 2,
)
YES, OTHER = of(b8, True, False, True), of(b8, True, True, False)
BOOLEANS = [
    Exact("sum of two", lambda b, c: ((b + b).float(), (b + c).int() + 1, (b + b) == c, (b * c).sum()), [YES, OTHER]),
    Exact("sum and True", lambda b: ((b + b) == True, True != (b + b)), [YES]),  # noqa: E712, SIM300
    Exact("sums", lambda b, c: ((b + b).sum(), (b + c).sum(), (b + c).mean(dtype=f32)), [YES, OTHER]),
    Exact("running sum", lambda b: (b + b).cumsum(0), [YES]),
    Exact("chain", lambda b: ((b + b + b).float(), ((b + b) * (b + b)).float(), (b + b).to(u8)), [YES]),
    Exact("alpha", lambda b, c: [b.add(c, alpha=n).float() for n in (3, True, 0, 2)], [YES, OTHER]),
    Exact("in place", lambda b, c: (b.clone().add_(c).float(), b.clone().mul_(c).float()), [YES, OTHER]),
    Exact("and True", lambda b: ((b + True).int(), (b * True).int(), (False + b).int()), [YES]),
    Exact("of no dimensions", lambda b, c: ((b + c).float(), b == 2, (b + c).sum(), b + 2), [at(True), at(True)]),
    Exact("index_put", lambda b, i: b.index_put((i,), b, accumulate=True).float(), [YES, at([0, 0, 2])]),
    Exact("scatter_add", lambda b, i: (b.scatter_add(0, i, b).int(), b.index_add(0, i, b).int()), [YES, at([0, 0, 1])]),
    Exact("as places", lambda b, x: (x[(b + b).long()], x[b.long()]), [YES, torch.arange(3.0)]),
    Exact("logic", lambda b, c: ((b + b) & c, (b + b) ^ c, ~(b + b), (b + b).logical_not()), [YES, OTHER]),
    Exact("signbit", lambda x: (torch.signbit(x == x), torch.signbit(x != x)), [FEW]),
    *(Exact(f"constants from {name}", constants(name), [YES]) for name in SAME),
    Exact("compared", lambda b: (b == 2, b < 3, b > -1, b != 2, b <= 1, b >= 2, b == 1, b < 0.5, b == 1.0), [YES]),
    Exact("compared with each other", lambda b, c: (b < c, b <= c, b > c, b >= c, b == c, b != c), [YES, OTHER]),
    Exact("compared with False", lambda b: (b == False, b < False, b <= False, b > False, b != False), [YES]),  # noqa: E712
    Exact("compared from the left", lambda b: (2 == b, 3 > b, -1 < b, True > b, False <= b), [YES]),  # noqa: SIM300
    Exact("compared with tensors", lambda b, i: (b == i, b < i, i > b, i.float() >= b), [YES, of(i64, 2, 0, 1)]),
    Exact("chosen", lambda b: (torch.where(b < 7, 7, b), torch.where(b, 7, b), torch.where(b, b, 2.5)), [YES]),
    Exact("beside numbers", lambda b: (b + 3, b * 3, 3 - b.int(), b / 3, b // 2, b % 2, b * 2.5, b * 2**30), [YES]),
    Exact("bits", lambda b: (b ^ 7, 7 ^ b, b & 7, b | 7, b ^ True), [YES]),
    Exact("power", lambda b: (b**True, b**False, b**2, b**2.5), [YES]),
    Exact("filled", lambda b, i: (b.index_fill(0, i, -1), b.index_fill(0, i, 2).float()), [YES, at([1])]),
    Exact("filled from the end", lambda b, i: b.index_fill(0, i, True), [OTHER, at([-1, -3])]),
    Exact("filled by a mask", lambda b: (b.masked_fill(~b, 2).float(), torch.full_like(b, 300) | b), [YES]),
    Exact("full of an even number", lambda b: torch.full_like(b, 300) + b, [YES]),
    Exact("clamped", lambda b: (b.clamp(0, 1), b.clamp(max=2), b.clamp(min=0.5)), [YES]),
    Exact("shifted", lambda b: torch.bitwise_left_shift(b, 3), [YES]),
    Exact(
        "shifted by operators",
        lambda b, n: (b << 3, b >> 1, b << n, b >> n, n << b, b << at(2)),
        [YES, of(u8, 1, 7, 0)],
    ),
    Exact("shifted beyond", lambda b: torch.bitwise_left_shift(b, 63), [YES], "op on the host"),
]

# --- shifts by a number: by the width and more, and by negative numbers


def shifts(width: int) -> Callable[[torch.Tensor], Any]:
    return lambda x: [f(x, n) for n in (1, width - 1, width, width + 1, -1) for f in (shift_left, shift_right)]


def shift_left(x: torch.Tensor, n: int) -> torch.Tensor:
    return x << n


def shift_right(x: torch.Tensor, n: int) -> torch.Tensor:
    return x >> n


def by_tensor(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x << n, x >> n


WIDTHS = {i8: 8, u8: 8, i16: 16, i32: 32}
SHIFTS = [
    *(Exact(f"{d} by a large number", lambda x: (x << 256, x << 2**16, x << 2**31 + 1), [of(d, 3, 1)]) for d in WIDTHS),
    *(Exact(f"{dtype} by a number", shifts(w), [of(dtype, 3, 1, 100, 0)]) for dtype, w in WIDTHS.items()),
    *(Exact(f"{d} below zero", shifts(w), [of(d, -3, -1, -100)]) for d, w in WIDTHS.items() if d is not u8),
    *(Exact(f"a scalar of int64 and {d}", by_tensor, [at(3), of(d, 1, 0, 2)]) for d in WIDTHS),
    *(Exact(f"{d} and a scalar of int64", by_tensor, [of(d, 3, 100), at(2)]) for d in WIDTHS),
    *(Exact(f"{d} by a tensor", by_tensor, [of(d, 3, 1, 100), of(d, w - 1, w, w + 1)]) for d, w in WIDTHS.items()),
]

FAMILIES = {"booleans": BOOLEANS, "shifts": SHIFTS}

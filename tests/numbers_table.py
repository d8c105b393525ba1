"""Rows on numbers that change their type on the way: large Python integers, limits, empty sums."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from exact_table import LAST, ODD, Exact, div, f32, i8, i16, i32, i64, inf, nan, of, u8

bf16, f16, f64, b8 = torch.bfloat16, torch.float16, torch.float64, torch.bool
BIG, FIRST, MOST = 10**10, -(2**31), torch.finfo(torch.float32).max
HOST = "call on the host"
FEW = of(f32, 1, -3.5, 0.0, -0.0, 7.2e12, inf, nan)
at = torch.tensor

COMPARISONS = (torch.lt, torch.le, torch.gt, torch.ge, torch.eq, torch.ne)

# --- Python integers of more than 32 bits beside floats

LARGE: dict[str, Callable[[torch.Tensor], Any]] = {
    "arithmetic": lambda x: (x / BIG, x * 2**40, x + 10**12, x - 10**12, 10**12 - x, 10**12 / x),
    "in place": lambda x: (x.clone().add_(10**12), x.clone().mul_(2**40), x.clone().clamp_(max=BIG)),
    "alpha": lambda x: (x.add(x, alpha=BIG), x.sub(x + 1, alpha=BIG), torch.rsub(x, x, alpha=BIG)),
    "clamp": lambda x: (x.clamp(max=BIG), x.clamp(min=-BIG), x.clamp(-(2**40), 2**40), x.clamp(min=2**40)),
    "comparisons": lambda x: (x < 2**40, x == 2**40, x >= 2**40, x < 2**40, x != 2**31),
    "choices": lambda x: (torch.where(x > 0, x, 2**40), torch.where(x > 0, 2**40, x), x.masked_fill(x > 0, 2**40)),
    "fills": lambda x: (torch.full_like(x, 2**40) + x, x.new_full((2,), 2**40), torch.fill(x, 2**40)),
    "moves": lambda x: (F.pad(x, (1, 1), value=2**40), x.index_fill(0, at([0]), 2**40), x.scatter(0, at([0]), 2**40)),
    "remainders": lambda x: (x // BIG, x % BIG, torch.fmod(x, BIG), div("trunc")(x, BIG)),
    "fused": lambda x: (torch.addcmul(x, x, x, value=2**33), torch.addcdiv(x, x, x, value=2**33), x.lerp(x * 2, 2**33)),
    "threshold": lambda x: (F.threshold(x, 2**32, 2**40), F.hardtanh(x, -(2**40), 2**40)),
}
NANOSECONDS = of(i64, 852_000_000, 5)
SCALARS = [
    *(Exact(f"large {name}", fn, [FEW]) for name, fn in LARGE.items()),
    *(Exact(f"large {name} of bf16", LARGE[name], [of(bf16, 1, -3.5, 0.0, -0.0, inf, nan)]) for name in LARGE),
    *(Exact(f"large {name} of no dimensions", LARGE[name], [at(7.2e12)]) for name in ("arithmetic", "clamp")),
    Exact("large sums of products", lambda x: torch.addmm(x, x, x, alpha=BIG, beta=2**33), [torch.ones(2, 2)]),
    Exact("nanoseconds to hours", lambda x: (x.float() / (3600 * 10**9), x / (3600 * 10**9)), [NANOSECONDS]),
    Exact("integers with large numbers", lambda x: (x / BIG, x * 1e10), [of(i32, 85200, 5)]),
    Exact("large odd powers", lambda x: (x**ODD, x**-ODD, x ** (2**24), x ** float(2**24 + 2)), [FEW.clamp(-1, 1)]),
    Exact("large powers of two", lambda x: (x**ODD, x ** (2**53 + 1), x ** (2**53 - 1)), [of(f32, 2, 0.5, -2, -0.0)]),
    Exact("powers of bf16", lambda x: (x**257, x**3, x**255, x**65537), [of(bf16, -1, 2, 1.0078125, -0.0)]),
    Exact(
        "the largest of float32",
        lambda x: [c(x, n) for c in COMPARISONS for n in (-MOST, MOST)],
        [of(f64, -MOST, MOST, inf, -inf, 0)],
    ),
    Exact("beyond float32", lambda x: (x + 1e300, x * -1e39, x < 1e300, x / 3.5e38), [FEW]),
    Exact(
        "float64 and numbers beyond float32",
        lambda x: [c(x, n) for c in COMPARISONS for n in (-1e300, 1e300, 3.5e38, nan)],
        [of(f64, -inf, -3e38, 0.0, 3.4e38, inf, nan)],
    ),
    *(
        Exact(
            f"comparisons of {x.dtype} with {y.dtype}",
            lambda x, y: [*(c(x, y) for c in COMPARISONS), *(c(y, x) for c in COMPARISONS), x.fmax(y), y.fmin(x)],
            [x, y],
        )
        for x, y in (
            (of(f16, inf, -0.0, 1.0, 65504, nan), of(bf16, 1e10, 9e-41, 1.0, -7e4, 1)),
            (of(f16, inf, -0.0, 1.0), at(1e10)),
            (of(bf16, 0.1, 1.0, inf), at(0.1, dtype=f16)),
            (of(f16, 0.1, 1.0, inf), of(f32, 0.1, 1.0, 7e4)),
        )
    ),
    Exact(
        "arithmetic of float64 and numbers beyond float32",
        lambda x: (x * -1e300, x / 1e300, x % 1e300, torch.addcmul(x, x, x, value=1e300)),
        [of(f64, 0.0, -0.0, -inf, inf, nan)],
        "op on the host",
    ),
    Exact(
        "float16 and numbers that it does not have",
        lambda x: (x * 70000.0, x * 10**6, x / 1e5, x * 1e-9, x / 1e-9, 1e6 / x),
        [of(f16, 0.0, -0.0, 0.015625, 1.5, -60000, inf, nan)],
    ),
    *(
        Exact(
            f"{dtype} and {number} as a tensor of {wide}",
            lambda x, y: (x * y, y * x, x / y, y / x, x + y, x - y, y - x),
            [of(dtype, 0.0, 0.015625, 1.5, -60000, inf, nan), at(number, dtype=wide)],
        )
        for dtype in (f16, bf16)
        for wide, number in ((f32, 7e4), (f32, 0.1), (f64, 7e4), (dtype, 3.0))
    ),
    Exact(
        "pad by nothing or less with a number that the dtype lacks",
        lambda x, y: (F.pad(x, (-1, 0), value=10**10), F.pad(x, (0, 0), value=1e300), F.pad(y, (-1, 0), value=-1e300)),
        [of(i32, 1, 2, 3), of(f16, 1.0, 2.0, 3.0)],
    ),
    Exact("x - -0.0", lambda x: (x - -0.0, x - 0.0, x + 0.0, x + -0.0), [of(f32, -0.0, 0.0, 1.0)]),
    *(
        Exact(f"ldexp of integers by {name}", lambda x, n: torch.ldexp(x, n), [of(torch.int32, -3, 0, 4), n])
        for name, n in (("-inf", at(-inf, dtype=bf16)), ("bf16", of(bf16, 2, 0.5, -1)), ("2.5", at(2.5, dtype=f32)))
    ),
    *(
        Exact(
            f"block_diag of {' and '.join(map(str, dtypes))}",
            lambda x, y: torch.block_diag(y, x),
            [of(dtypes[0], 1, 2, 3), at(5, dtype=dtypes[1])],
        )
        for dtypes in ((torch.uint8, torch.int64), (torch.int64, f32), (f32, torch.int64), (f32, torch.float64))
    ),
    Exact(
        "a stable sort of a constant",
        lambda x: (torch.zeros_like(x).sort(dim=0, stable=True, descending=True)[1], x * 2),
        [torch.arange(64.0)],
    ),
    Exact(
        "sums of float16 and numbers that it does not have",
        lambda x: (x + 7e4, x - 7e4, 7e4 - x),
        [of(f16, 0.0, 1.5, -60000, inf, nan)],
    ),
    Exact(
        "bf16 and numbers that are zero in it",
        lambda x: (x * 1e-45, x / 1e-45, 1e-45 - x, x.add(x, alpha=1e-45), x * 1.5, x < 1e-45),
        [of(bf16, inf, 0.0, 3.0, -0.0)],
    ),
    Exact(
        "the least integer as alpha",
        lambda x, y: (x.sub(x + 1, alpha=128), x.sub(1, alpha=128), y.abs()),
        [of(i8, 3, -128), of(i64, 2**40)],
        HOST,
    ),
    Exact("beyond float32 of booleans", lambda b: (b + 1e300, b * -1e300), [of(b8, True, False)]),
    Exact(
        "quotients beyond float32", lambda b: (b / 1e300, b // 1e300, b % 1e300, b.fmod(1e300)), [of(b8, True, False)]
    ),
    Exact("neighbours of mixed dtypes", lambda x, y: (torch.nextafter(x, y), torch.nextafter(y, x)), [FEW, of(f16, 1)]),
    Exact("threshold of NaN", lambda x: (F.threshold(x, 1.0, 5.0), F.threshold(x, -2, 3)), [FEW]),
    Exact("elu of zeros", lambda x: (F.elu(x * 0, -0.5), F.celu(x * 0, -2), F.selu(x * 0)), [of(f32, 1, -1)]),
    Exact("threshold of integers", lambda x: (F.threshold(x, 1, 5), F.threshold(x, 2, -1)), [of(i32, 3, 1, -7)]),
    Exact(
        "thresholds between integers", lambda x: (F.threshold(x, -0.5, 31), F.threshold(x, 1.5, 2.5)), [of(i64, 3, 0)]
    ),
]

# --- the ends of the integers

EDGES = {dtype: of(dtype, torch.iinfo(dtype).min, torch.iinfo(dtype).max, 7, 0) for dtype in (i8, u8, i16, i32)}
QUOTIENTS = (lambda x: (x // FIRST, div("trunc")(x, FIRST), x % FIRST, x / FIRST), lambda x: (x // 2**31, x % 2**31))


def among_each_other(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x // y, div("trunc")(x, y), x % y, torch.fmod(x, y)


def outside(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The numbers do not fit into the dtype, so PyTorch keeps their lowest bits."""
    return x + 2**31, 2**31 - x, x * 70001, x - 2**40, x ^ ODD, x | ODD, x & ODD


def beside_300(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    compared = (x < 300, x <= 300, x > 300, x >= 300, x == 300, x != 300)
    return *compared, x + 300, x // 300, x % 300, torch.fmod(x, 300)


def bounded(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.clamp(max=-128), x.clamp(min=-5), x.clamp(-5, 100), x.clamp(max=2.5)


EACH = of(i32, LAST, FIRST, 5, -7, LAST - 1, FIRST + 1, 2**30)
LIMITS = [
    *(Exact(f"{dtype} with numbers outside", outside, [x]) for dtype, x in EDGES.items()),
    *(Exact(f"{dtype} beside 300", beside_300, [x]) for dtype, x in EDGES.items()),
    *(Exact(f"int32 by {n}", f, [EDGES[i32]]) for n, f in zip(("-2^31", "2^31"), QUOTIENTS, strict=True)),
    Exact("int32 by each other", among_each_other, [EACH.repeat_interleave(7), EACH.repeat(7)]),
    Exact("smallest int64 by -1", lambda x, y: (x // -1, x // y), [of(i64, -(2**63), 5), of(i64, -1, -1)], HOST),
    Exact("fmod by 2^31", lambda x: torch.fmod(x, 2**31), [of(i32, 5, -7)]),
    Exact("bounds of uint8", bounded, [EDGES[u8]]),
    Exact("int8 beside uint8", lambda x, y: (x < y, x + y, x.maximum(y)), [of(i8, -3, 7), of(u8, 250, 7)]),
    Exact("infinity to integer", lambda x: (1 / x).to(i64), [of(i32, 0, 2)], HOST),
    Exact("quotient to integer", lambda x, y: (x / y).to(i64), [of(i64, 1, 5), of(i64, 0, 2)], HOST),
]

# --- NaN among sorted numbers, 0-d results, reductions over nothing


def gelu_of_one(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return F.gelu(x.squeeze(), approximate="tanh"), F.gelu(x.squeeze())


EDGE, VALUES = of(f32, 1, 2, 3), of(f32, nan, 2, -1, inf, -inf, -0.0)
NOT_SORTED = of(f32, 1, 1, 1, nan, nan, nan, nan, nan, 2, 0)


def places(edges: torch.Tensor, values: torch.Tensor) -> list[torch.Tensor]:
    found = [torch.searchsorted(edges, values, right=upper) for upper in (False, True)]
    return found + [torch.bucketize(values, edges, right=upper) for upper in (False, True)]


def sums(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(), x.mean(), x.sum(-1), x.mean(-1), x.prod(), x.amax()


def each_dimension(x: torch.Tensor) -> list[torch.Tensor]:
    """Reductions over all elements, and over each dimension."""
    over = [f(dim=d, keepdim=keep) for d in range(x.dim()) for keep in (False, True) for f in (x.all, x.any, x.sum)]
    return [x.all(), x.any(), x.sum(), x.prod(), *over]


def scatters(x: torch.Tensor, source: torch.Tensor, index: torch.Tensor) -> list[torch.Tensor]:
    """Scatters in which one, two or all of the three tensors have no dimensions."""
    given = itertools.product(*((v, v[0]) for v in (x, index, source)))
    found = [(v.scatter(0, i, s), v.scatter_reduce(-1, i, s, "amax", include_self=False)) for v, i, s in given]
    return [result for pair in found for result in pair]


def beside_numbers(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x == 0.1, x >= 0.1, x < 0.1, x <= 65536, x == 65536, x > -1e6, x != 65519


def max_pools(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    image = x.reshape(1, 1, 2, -1)
    sliding = F.max_pool2d(image, 2, 1, 1, return_indices=True)
    wide = F.max_pool2d(image, 2, 1, 1, dilation=2, ceil_mode=True, return_indices=True)
    return *sliding, *wide


def without_self(*kinds: str) -> Callable[..., list[torch.Tensor]]:
    return lambda x, index, source: [x.scatter_reduce(0, index, source, kind, include_self=False) for kind in kinds]


def without_beta(x: torch.Tensor, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The sums do not read `x`, which has no numbers."""
    one, batch = (x[0], a[0]), (x[None], a[None], a[None])
    product = torch.addmm(x, a, a, beta=0), torch.addmm(x, a, a, beta=0, alpha=3)
    vectors = torch.addmv(one[0], a, one[1], beta=0), torch.addr(x, a[0], a[1], beta=0)
    return *product, *vectors, torch.baddbmm(*batch, beta=0), torch.addbmm(x, *batch[1:], beta=0)


def divided(x: torch.Tensor) -> list[torch.Tensor]:
    return [div(mode)(x, n) for mode in ("trunc", "floor") for n in (0.1, 65520.0, -70000.0, 1e-9, 3, 0.0)]


TEN_BILLION = of(i64, BIG, 3, -BIG)
OTHERS = [
    Exact("clamp between booleans", lambda x: (x.clamp(False, 3.7), x.clamp(max=True), F.hardtanh(x, False, 2)), [FEW]),
    Exact("deviations of float16", lambda x: (x.std(), x.std(0), x.std(-1, False)), [of(f16, 470, -720, 24, 300)]),
    *(
        Exact(f"quotients of {t} and numbers", divided, [of(t, 1, -1, 0.3, 5, inf, -inf, 65504, -65504, 0.0, -0.0)])
        for t in (f16, bf16)
    ),
    Exact("a narrow mean", lambda x: (x.mean(0, dtype=bf16), x.mean((0,), True, dtype=f16)), [of(f32, 3.01, -3, 9e-3)]),
    Exact(
        "logaddexp of two dtypes",
        lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y)),
        [of(i16, -9, 3, 0), of(bf16, -0.3, 2, -inf)],
    ),
    *(
        Exact(f"sums without beta, {t}", without_beta, [of(t, nan, inf).repeat(2, 1), of(t, 1, 2).repeat(2, 1)])
        for t in (f32, f16, bf16)
    ),
    Exact(
        "reductions without self",
        without_self("amin", "amax", "sum", "prod", "mean"),
        [of(f32, 7, 7, 7), of(i64, 0, 0, 2), of(f32, nan, 1, -inf)],
    ),
    Exact(
        "large reductions without self",
        without_self("amin", "amax"),
        [of(i64, 7, 7), of(i64, 0, 0, 1), TEN_BILLION],
        HOST,
    ),
    Exact(
        "booleans at no places",
        lambda x, i: x.index_put((i,), x, accumulate=True),
        [torch.ones(2, 2, dtype=b8), torch.zeros(0, 2, dtype=i64)],
    ),
    *(Exact(f"max pools of {t}", max_pools, [of(t, -5, -7, -3, -9, -4, -8)]) for t in (i32, f32, i8)),
    Exact("max pools of large integers", max_pools, [of(i64, -BIG, -(2**63), -BIG, -(2**40), -(2**63), -BIG)], HOST),
    Exact("searchsorted of NaN", places, [EDGE, VALUES]),
    Exact("searchsorted among NaN", places, [of(f32, 1, 2, nan), VALUES]),
    Exact("searchsorted in numbers that are not sorted", places, [NOT_SORTED, VALUES]),
    Exact("searchsorted in nothing", places, [of(f32), VALUES]),
    Exact("searchsorted of integers", places, [of(i64, 3, 1, 2, 2, 7), of(i64, 2, 0, 9, 3)]),
    Exact("histc of NaN", lambda x: torch.histc(x, bins=3, min=0, max=2), [of(f32, nan, 1, 0.5, 3, inf)]),
    *(Exact(f"sums of one, {x.dim()} dimensions", sums, [x]) for x in (at(-0.0), of(f32, -0.0))),
    Exact("uint8 by 255", lambda x, y: (x // y, x // -1), [of(u8, 1, 5, 255, 254), of(u8, 255, 255, 255, 2)]),
    Exact("float16 beside numbers", beside_numbers, [of(f16, 0.1, inf, 65504, -0.1, -inf, nan)]),
    Exact("one int16 for a mask of booleans", lambda x, v: x.index_put((x,), v), [of(b8, True, False), of(i16, 0)]),
    Exact("clamp with NaN", lambda x: x.clamp(nan, 1e39), [of(i64, 4, -3)]),
    Exact("cummax of nothing", lambda x: (x + 1).cummax(2), [torch.empty(0)]),
    Exact("hardtanh with a bound of -0.0", lambda x: F.hardtanh(x, -0.0, 3), [of(f32, -1, 5, -0.0, 0.0)]),
    Exact("scatter of one and of 0-d tensors", scatters, [of(f32, 1), of(f32, 2), torch.zeros(1, dtype=i64)]),
    *(Exact(f"gelu of one {dtype}", gelu_of_one, [torch.ones(1, dtype=dtype)]) for dtype in (f32, bf16, f16)),
    *(
        Exact(f"layer norm of {t} zeros", lambda x: F.layer_norm(x, (2, 3)), [torch.full((2, 2, 3), -0.0, dtype=t)])
        for t in (f32, bf16)
    ),
    Exact("logcumsumexp of zeros", lambda x, y: (x.logcumsumexp(0), y.logcumsumexp(0)), [of(f32, -0.0, 1), at(-0.0)]),
    Exact("maximum of -0.0", lambda x: torch.maximum(x, torch.full_like(x, -0.0)), [of(f32, -1, 1)]),
    Exact(
        "average pools with windows of one element",
        lambda x: (F.avg_pool2d(x, 1), F.avg_pool2d(x, 1, (2, 1)), F.avg_pool2d(x, 1, divisor_override=2)),
        [of(f32, -0.0, 0.0, 1, -1).view(1, 2, 2)],
    ),
    *(
        Exact(
            f"median of nothing, {dtype}",
            lambda x: (x.median(), (x + 1)[1:].nanmedian()),
            [torch.empty(0, 2).to(dtype)],
        )
        for dtype in (f32, i32, u8)
    ),
    Exact("median of nothing, int64", lambda x: (x + 1)[1:].median(), [torch.empty(0, 2).to(i64)], "op on the host"),
    *(Exact(f"over nothing {size}", each_dimension, [torch.empty(size)]) for size in ((0,), (0, 3), (2, 0, 3))),
    *(
        Exact(f"booleans over nothing {s}", each_dimension, [torch.empty(s, dtype=b8)])
        for s in ((0,), (0, 3), (2, 0, 3))
    ),
    Exact(
        "over nothing, two dimensions", lambda x: (x.all((0, 1)), x.any((1, 2)), x.sum((0, 2))), [torch.ones(2, 0, 3)]
    ),
]
FAMILIES = {"scalars": SCALARS, "limits": LIMITS, "others": OTHERS}

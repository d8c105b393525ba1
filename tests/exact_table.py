"""Rows on numbers that the device does not have as PyTorch has them: 64-bit and narrow integers, exceptional floats.

    Exact("name", function, inputs)

`runs` says how a row gets its exact result:

- "device": on the device;
- "call on the host": the whole call runs on the host, because of the values of its inputs;
- "op on the host": one op always runs on the host, because it would be exact on the device for few values only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from op_table import UNARY_ANY

inf, nan = math.inf, math.nan
f32, i8, i16, i32, i64, u8, u32 = (
    torch.float32, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint32,
)  # fmt: skip
LAST, ODD = 2**31 - 1, 2**24 + 1  # the largest int32; the first integer that float32 cannot hold
HUGE = torch.iinfo(i64).max


@dataclass(frozen=True)
class Exact:
    name: str
    fn: Callable[..., Any]
    inputs: Sequence[torch.Tensor]
    runs: str = "device"


def of(dtype: torch.dtype, *values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def div(mode: str | None) -> Callable[..., torch.Tensor]:
    return lambda x, y: torch.div(x, y, rounding_mode=mode)


ENDS = of(i32, LAST, -(2**31), 7, -7)
WIDE = [
    Exact("input beyond 32 bits", lambda x: x + 1, [of(i64, 2**31, 5)], "call on the host"),
    Exact("unsigned input beyond 31 bits", lambda x: x.to(i64) + 1, [of(u32, 2**31, 5)], "call on the host"),
    Exact("sum beyond 32 bits", lambda x: x.sum(), [of(i64, 2**30, 2**30, 2**30)], "call on the host"),
    Exact("sum of int32 beyond 32 bits", lambda x: x.sum(), [of(i32, 2**30, 2**30, 2**30)], "call on the host"),
    Exact("product beyond 32 bits", lambda x: x * x, [of(i64, 100000, 5)], "call on the host"),
    Exact("bits of a float", lambda x: x.clamp(0, 9).float().view(i32).to(i64) * 5, [of(i64, 3, -1)], "op on the host"),
    Exact(
        "counted places",
        lambda x: torch.repeat_interleave(x.clamp(0, 1), output_size=70000) * 40000,
        [torch.ones(70000, dtype=i64)],
        "op on the host",
    ),
    Exact("product within", lambda x: x * x, [of(i64, 30000, -5)]),
    Exact("power", lambda x: (x**2, x**3), [of(i64, 1001, -999)]),
    Exact("prod", lambda x: x.prod(), [of(i64, 1000, -999, 3)]),
    Exact("running sum", lambda x: x.cumsum(0), [of(i64, 2**24, 1, 1, 1)]),
    Exact("matrix product", torch.mm, [torch.full((2, 3), 9999), torch.full((3, 2), -9998)]),
    Exact(
        "matrix product beyond", torch.mm, [torch.full((2, 3), 2**16), torch.full((3, 2), 2**16)], "call on the host"
    ),
    Exact("index beyond 2^24", lambda x, i: x[i], [torch.arange(ODD + 9, dtype=i8), of(i64, ODD, ODD + 2, -1)]),
    Exact("place beyond 2^24", lambda x: x.argmax(), [(torch.arange(ODD + 9) == ODD + 1).to(i8)]),
    Exact("comparison", lambda x, y: (x == y, x < y), [of(i64, ODD, ODD - 1), of(i64, ODD - 1, ODD)]),
    Exact("clamp", lambda x: (x.clamp(max=ODD), x.clamp(-ODD, ODD + 2)), [of(i64, 2**25, 1, ODD + 1)]),
    Exact("clamp to 64 bits", lambda x: x.clamp(-5, HUGE), [of(i64, 2**25, -9)]),
    Exact("scalar", lambda x: (x + ODD, ODD - x, torch.where(x > 0, x, ODD)), [of(i64, 5, -1)]),
    Exact("scalar of 64 bits", lambda x: x + 2**40, [of(i64, 5, -1)], "op on the host"),
    Exact("comparison with 64 bits", lambda x: x < 2**40, [of(i64, 5, LAST)], "op on the host"),
    Exact("number of 64 bits", lambda x: torch.where(x > 0, x, HUGE), [of(i64, 5, -1)], "op on the host"),
    Exact("fills", lambda x: torch.full_like(x, ODD) - x, [of(i64, 1, 0)]),
    Exact("pad", lambda x: F.pad(x, (1, 2), value=ODD), [of(i64, 5, -1)]),
    Exact("arange", lambda x: x + torch.arange(ODD - 2, ODD + 3), [of(i64, 0, 0, 0, 0, 1)]),
    Exact("to float32", lambda x: x.float(), [of(i64, ODD, ODD + 2)]),
    Exact("remainder", lambda x: (x % 7, x % -7, torch.fmod(x, 7)), [of(i64, LAST, -LAST, ODD, -ODD)]),
    Exact("floor division", lambda x: (x // 7, x // -7, x // ODD), [of(i64, LAST - 1, -LAST // 2, ODD, -ODD)]),
    Exact("shift left", lambda x, n: x << n, [of(i64, 3, -7, 5), of(i64, 13, 2, -1)]),
    Exact("shift left by a number", lambda x: x << 3, [of(i64, ODD, -7)]),
    Exact("shift right", lambda x, n: (x >> 3, x >> n), [of(i64, ODD, -7), of(i64, 2, 1)]),
    Exact("bits", lambda x: (x & 0xFFFFFF, x | ODD, x ^ 5, ~x), [of(i64, ODD + 2, -7)]),
    Exact("least place", lambda x: (x.argmin(), x.min(0)), [of(i32, 5, -(2**31), 7)]),
    Exact("float beyond 32 bits", lambda x: x.to(i64), [of(f32, 3e9, -1e12, 5)], "call on the host"),
    Exact("NaN to integer", lambda x: x.to(i64), [of(f32, nan, inf, -inf, 5)], "call on the host"),
    Exact(
        "quotient by zero to integer", lambda x, y: (x / y).to(i64), [of(i64, 5, -3), of(i64, 0, 2)], "call on the host"
    ),
    Exact("float within 32 bits", lambda x: x.to(i64), [of(f32, 2e9, -7.9, 5)]),
    Exact("count", lambda x: (x.sum(), x.cumsum(0)), [torch.ones(5000, dtype=torch.bool)]),
]
INT32 = [
    Exact("int32 wraps", lambda x: (x + x, x * x, -x, x.abs(), x - 9, x**3), [ENDS]),
    Exact("int32 sum as int32", lambda x: x.sum(dtype=i32), [of(i32, LAST, 1, 5)]),
    Exact(
        "int32 matrix product",
        torch.mm,
        [torch.full((2, 3), 50000, dtype=i32)] + [torch.full((3, 2), 50001, dtype=i32)],
    ),
    Exact("int32 division", lambda x: (x // 7, x // 2**25, x / 7, div("trunc")(x, 7)), [ENDS]),
    Exact("int32 remainder", lambda x: (x % 7, torch.fmod(x, 7), torch.fmod(x, -7)), [ENDS]),
]
NARROW = [
    Exact("int8 wraps", lambda x: (x + x, x * x, -x, x.abs(), x << 1), [of(i8, 100, -100, -128, 3)]),
    Exact("int8 wraps on the way", lambda x: ((x + x) > 0, (x * x).float(), x.sum()), [of(i8, 100, -100, -128, 3)]),
    Exact("int16 wraps on the way", lambda x: ((x * x).float(), (x - 9).to(i32)), [of(i16, 300, -(2**15), 2**15 - 1)]),
    Exact("uint8 wraps on the way", lambda x: ((x + x).float(), (x - 5).float(), (x * x).to(i64)), [of(u8, 200, 3)]),
    Exact("uint8 extremes", lambda x: (x.amax(), x.amin(), x.max(0), x.argmin()), [of(u8, 3, 200, 2)]),
    Exact("uint8", lambda x: (x / 3, x // 3, x % 7, ~x, x << 1, x >> 1, x > 100, -x, x.abs()), [of(u8, 200, 3)]),
    Exact("to int8", lambda x: x.to(i8).float(), [of(i64, 200, -300, LAST)]),
    Exact("to uint8", lambda x: x.to(u8).float(), [of(i64, 200, -300, LAST)]),
    Exact("float to uint8", lambda x: x.to(u8).float(), [of(f32, 200.7, 3.2)]),
]

# Infinities, NaN, both zeros, denormals and numbers that overflow. LEFT and RIGHT hold all pairs of these numbers.
NUMBERS = of(f32, 0.0, -0.0, 1, -1, inf, -inf, nan, 2.5, -2.5, 3.5, 0.5, -0.5, 1e-40, -1e-40, 3e38, -3e38)
LEFT, RIGHT = NUMBERS.repeat_interleave(len(NUMBERS)), NUMBERS.repeat(len(NUMBERS))
UNARY = [
    *UNARY_ANY,
    *"relu frac sqrt rsqrt log reciprocal square isnan isinf isfinite log1p exp2 log2 gelu silu nan_to_num".split(),
    *"logical_not asin acos atanh acosh relu6 hardtanh hardsigmoid softplus leaky_relu elu mish logit".split(),
]
BINARY = (
    "add sub mul div maximum minimum fmax fmin pow atan2 remainder fmod copysign hypot logaddexp xlogy eq ne lt le gt "
    "ge logical_and logical_or logical_xor isclose"
).split()


def batched(names: list[str], size: int) -> list[list[str]]:
    return [names[i : i + size] for i in range(0, len(names), size)]


def together(names: list[str]) -> Callable[..., list[torch.Tensor]]:
    """One program of several functions, because compiling takes longer than running."""
    functions = [getattr(torch, name, None) or getattr(F, name) for name in names]
    return lambda *inputs: [f(*inputs) for f in functions]


def unmoved(x: torch.Tensor) -> list[torch.Tensor]:
    """A vector, and the results of methods that move none of its elements."""
    return [x, x.squeeze(), x.transpose(0, -1), x.split(len(x))[0], x[torch.arange(len(x))]]


ITSELF: dict[str, Callable[[torch.Tensor], Any]] = {
    # torch-mlir removes the moves, and finds the two sides equal then
    "x == x": lambda x: [(v == x, v != x, v >= x, v <= x, v < x, v > x, v.isclose(x)) for v in unmoved(x)],
    "x - x": lambda x: (x - x, x / x, x + -x),
    "times zero": lambda x: (x * 0, 0 * x, 0 / x, x * torch.zeros(16)),
    "neutral": lambda x: (x + 0.0, x - 0.0, 0 - x, x * 1, x * -1, x / 1),
    "powers": lambda x: (x**0, x**1, x**2, x**3, x**0.5, x**-0.5, x**-1, 2.0**x),
    "bounds": lambda x: (x.clamp(-1, 1), x.clamp(min=0), x.clamp(-inf, inf), torch.maximum(x, x)),
    "infinite bounds": lambda x: [torch.maximum(x, torch.full((), v)) for v in (-inf, nan, inf)],
    "masks": lambda x: (torch.where(x > 0, x, -0.0), x.masked_fill(x != x, 0), (x > 0).float() * x),
    "types": lambda x: (x.bfloat16(), x.half(), x.double(), x.bool(), x.bfloat16() + 1),
    "reductions": lambda x: (x.max(), x.min(0), x.amax(), x.argmax(), x.argmin(), x.sum(), x.prod(), x.any(), x.all()),
    "scans": lambda x: (x.cumsum(0), x.softmax(0), x.log_softmax(0), x.logsumexp(0), x.mean()),
    "rounding": lambda x: (x // 2.0, x % 1.0, torch.fmod(x, 1.0), div("trunc")(x, 2)),
    "matrix": lambda x: x.reshape(4, 4) @ torch.zeros(4, 4),
    "moved": lambda x: (x.flip(0), x.roll(3, 0), x.reshape(4, 4).t(), torch.cat([x, x]), x[torch.tensor([5, 6, 1])]),
}
FLOATS = [
    *(Exact(" ".join(names), together(names), [NUMBERS]) for names in batched(UNARY, 8)),
    *(Exact(" ".join(names), together(names), [LEFT, RIGHT]) for names in batched(BINARY, 8)),
    *(Exact(name, fn, [NUMBERS]) for name, fn in ITSELF.items()),
    Exact("softmax of -inf", lambda x: (x.softmax(0), x.logsumexp(0)), [of(f32, -inf, -inf)]),
    *(
        Exact(f"small logaddexp2, {t}", torch.logaddexp2, [of(t, 0, 3, -inf, inf, inf), of(t, -30, -9, -inf, inf, 1)])
        for t in (f32, torch.float16, torch.bfloat16)
    ),
    Exact("reductions with infinity", ITSELF["scans"], [of(f32, 0.0, -0.0, 1, inf, 3)]),
]
FAMILIES = {"wide": WIDE, "int32": INT32, "narrow": NARROW, "floats": FLOATS}

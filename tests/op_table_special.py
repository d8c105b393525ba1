"""Rows of the op table: special functions."""

from __future__ import annotations

import math

import torch
from op_rows import INTS, Maker, Row, bf16, f32, index, tensor, uniform

EDGES = tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, -3.0, 1e-5, -2.5], f32)
special = torch.special

# The functions, with the intervals from which their arguments are drawn. At an end of an
# interval, an implementation changes to another formula.
RANGES: dict[str, list[tuple[float, float]]] = {
    "airy_ai bessel_j0 bessel_j1 digamma gammaln i0e i1e": [(-9, 9), (-60, 60)],
    "i0 i1 modified_bessel_i0 modified_bessel_i1 sinc spherical_bessel_j0": [(-9, 9)],
    "bessel_y0 bessel_y1 scaled_modified_bessel_k0 scaled_modified_bessel_k1": [(0, 3), (3, 60)],
    "modified_bessel_k0 modified_bessel_k1 entr": [(0, 3), (3, 20)],
    "erfcx log_ndtr": [(-6, 9)],
    "erfinv": [(-1, 1)],
    "ndtri logit": [(0, 1)],
}
INFINITE = [math.inf, 1e30, 1e-30, 0.0, 2.0, 3.5, 41.0, math.nan]
CHEBYSHEV = [f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"]
DEGREES = tensor([*range(-2, 12)], torch.int64)  # each has a branch or a step of its own
KNOWN_DEGREE = "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p".split()


def _of_intervals(name: str, intervals: list[tuple[float, float]]) -> Row:
    """Arguments from the intervals, and some for which the function may not be finite."""

    def values(dtype: torch.dtype) -> torch.Tensor:
        return torch.cat([*(uniform(low, high, 40)(dtype) for low, high in intervals), EDGES(dtype)])

    return Row(name, getattr(special, name), [values], (f32,))


def _of_degree(name: str, degree: int) -> Row:
    return Row(f"{name} {degree}", lambda x: getattr(special, name)(x, degree), [uniform(-1, 1, 9)], (f32,))


def _pairs(values: list[float]) -> list[Maker]:
    """Two inputs that together hold all pairs of the values."""
    count = len(values)
    return [lambda _: torch.tensor(values).repeat_interleave(count), lambda _: torch.tensor(values).repeat(count)]


def _neighbours(dtype: torch.dtype) -> torch.Tensor:
    parts = torch.finfo(dtype)
    tiny = parts.smallest_normal
    return torch.tensor([1, 1.5, 2 - parts.eps, 3e-33, tiny, 3 * tiny, tiny / 2, 0, parts.max, math.inf, math.nan]).to(
        dtype
    )


SPECIAL = [
    *(_of_intervals(name, intervals) for names, intervals in RANGES.items() for name in names.split()),
    *(Row(name, getattr(special, name), [uniform(0.1, 9, 9)], (bf16, *INTS)) for name in ("gammaln", "i0e", "i1")),
    Row("ndtri of tails", special.ndtri, [tensor([1e-44, 1e-30, 1e-9, 0.13, 0.14, 0.5, 1 - 1e-6])], (f32,)),
    Row("logit eps", lambda x: special.logit(x, 0.2), [uniform(-1, 2, 9)]),
    *(Row(f"polygamma {n}", lambda x, n=n: torch.polygamma(n, x), [uniform(0.3, 9, 9)]) for n in (0, 1, 2)),
    Row("polygamma of large numbers", lambda x: x * torch.polygamma(1, x), [tensor([1e9, 1e20, 1e25, 3e38])], (f32,)),
    Row("polygamma below zero", lambda x: torch.polygamma(3, x), [uniform(-8.9, -8.1, 9)], (f32,)),
    Row("mvlgamma", lambda x: torch.mvlgamma(x, 3), [uniform(1.2, 9, 7)]),
    Row("zeta", special.zeta, [uniform(1.1, 9, 7, 1), uniform(0.1, 9, 5)], (f32,)),
    Row("zeta of a number", lambda q: special.zeta(2.5, q), [uniform(0.1, 9, 5)], (f32, *INTS)),
    Row("zeta at a number", lambda s: special.zeta(s, 2), [uniform(0.5, 9, 7)], (f32, *INTS)),
    Row("zeta below zero", special.zeta, [tensor([[2.0], [3.0], [2.5], [1.0], [0.5]]), uniform(-30, 0, 5)], (f32,)),
    Row("xlog1py", special.xlog1py, [tensor([0.0, 0.0, 2.0]), tensor([-1.0, math.nan, 0.5])]),
    *(
        Row(f"{name} {size}", getattr(special, name), [uniform(0, size, 40), uniform(0, 2 * size, 40)], (f32,))
        for name in ("gammainc", "gammaincc")
        for size in (3, 60)
    ),
    *(
        Row(f"{name} of infinities", getattr(special, name), _pairs(INFINITE), (f32,))
        for name in ("gammainc", "gammaincc")
    ),
    *(Row(name, getattr(special, name), [uniform(-1.5, 1.5, 9, 1), DEGREES], (f32,)) for name in CHEBYSHEV),
    Row("chebyshev of large degree", special.chebyshev_polynomial_u, [uniform(-1, 1, 9), tensor(40.0)], (f32,)),
    Row("chebyshev beyond 1", special.chebyshev_polynomial_w, [tensor([1, -1, 1.5, -1.5]), tensor(35.0)], (f32,)),
    Row("chebyshev of a scalar", lambda n: special.chebyshev_polynomial_t(0.3, n), [index(0, 9, 7)], (f32,)),
    Row("hermite_polynomial_h", special.hermite_polynomial_h, [uniform(2, 3, 9, 1), DEGREES], (f32,)),
    *(_of_degree(name, degree) for name in KNOWN_DEGREE for degree in (-1, 6)),
    Row("frexp", torch.frexp, [_neighbours]),
    Row("ldexp", torch.ldexp, [uniform(-1, 1, 9), index(-9, 9, 9)]),
    Row("poles of lgamma", lambda x: torch.lgamma(x).isposinf(), [tensor([-4e36, -3e38, -1.0, 0.0, 2.5])], (f32,)),
    Row("zeros of lgamma", lambda x: torch.lgamma(x).signbit(), [tensor([1.0, 2.0, 0.5, 1.5])], (f32,)),
    Row(
        "ldexp beyond the powers of float32",
        torch.ldexp,
        [
            tensor([0.0, -0.0, 1e-30, 1e30, 1e-38, 3.0, -3.0, 1.0, math.inf], f32),
            tensor([200, -200, 200, -200, 250, 127, 400, 128, -400], torch.int64),
        ],
        (f32,),
    ),
    Row("ldexp by floats", torch.ldexp, [uniform(-1, 1, 9), uniform(-9, 9, 9)], (f32,)),
    Row("ldexp of integers", lambda e: torch.ldexp(torch.arange(9), e), [index(-9, 9, 9)]),
    Row(
        "nextafter",
        lambda x, to: (torch.nextafter(x, to), torch.nextafter(-x, to)),
        [_neighbours, tensor([[0.0], [math.inf], [-math.inf], [math.nan]])],
    ),
]

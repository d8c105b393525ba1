"""Rows of the op table: sizes, types and options for which a rule takes another branch than usual."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from op_rows import FLOATS, INTS, NUMBERS, Row, X, b1, f32, i64, index, moved, of, tensor

aten = torch.ops.aten
linalg = torch.linalg
NAN, INF = float("nan"), float("inf")
X3 = of(f32, 3)
SPECIAL = tensor([NAN, INF, -INF, 0.0, -0.0, 2.5, -1.0, 1e20, 0.25])
SQUARE = moved(SPECIAL, lambda x: x.reshape(3, 3))
LIMITS = tensor([INF, NAN, 1e20, 1000.0, 2.0, 1.5])
UNIT = tensor([[[[[0.3, -0.9, 0.1], [1.2, 0.2, -1.4]]]]])  # the coordinates of two points in a volume

EDGES = [
    *(
        Row(
            f"smooth_l1_loss backward, {('none', 'mean', 'sum')[how]}",
            lambda g, x, y, how=how: torch.ops.aten.smooth_l1_loss_backward(g, x, y, how, 0.5),
            [(6,), tensor([0.5, -0.0, math.nan, math.inf, -math.inf, 0.5]), tensor([0.0, 0.25, 1.0, 1.0, 1.0, 3.0])],
            (f32,),
        )
        for how in (0, 1, 2)
    ),
    Row("fmod scalar", lambda x: torch.fmod(x, 3), [X], NUMBERS),
    Row("fmod negative scalar", lambda x: torch.fmod(x, -0.75), [X]),
    Row("angle", torch.angle, [tensor([2.0, -1.0, 0.0, NAN, -INF])], FLOATS),
    Row("angle of integers", torch.angle, [tensor([2, -1, 0])], (i64, b1)),
    Row(
        "lerp to a scalar", lambda x, y: (torch.lerp(x, y, 0.25), torch.lerp(x, y, 0.75), torch.lerp(x, y, 0.5)), [X, X]
    ),
    Row("softmax of a scalar", lambda x: (x.softmax(0), F.softmin(x, -1)), [()]),
    Row("softmax of infinity", lambda x: x.softmax(0), [tensor(INF)]),
    Row("log_softmax of a scalar", lambda x: x.log_softmax(0), [()]),
    Row("log_softmax of infinity", lambda x: x.log_softmax(0), [tensor(INF)]),
    Row("scatter of nothing", lambda x, i: x.scatter(0, i, INF), [(3,), tensor([], i64)], NUMBERS),
    Row("take by a scalar", lambda x, i: x.take(i), [(3,), tensor(-2, i64)], NUMBERS),
    Row("index_put by uint8", lambda x, m, v: x.index_put((m,), v), [(3,), tensor([0, 1, 2], torch.uint8), (2,)]),
    Row("index_put of nothing", lambda x, m, v: x.index_put((m,), v), [(3,), tensor([False] * 3, b1), (0,)], NUMBERS),
    *(
        Row(f"{name} of an empty index with more dimensions", fn, [(3, 3), tensor([[[]]], i64), (3, 3)])
        for name, fn in {
            "scatter": lambda x, i, y: x.scatter(0, i, y),
            "scatter_add": lambda x, i, y: x.scatter_add(0, i, y),
            "scatter_reduce": lambda x, i, y: x.scatter_reduce(0, i, y, "amax", include_self=False),
        }.items()
    ),
    Row("masked_scatter of nothing", lambda x, m, v: x.masked_scatter(m, v), [(3,), tensor([False] * 3, b1), (0,)]),
    *(
        Row(
            f"scatter_reduce {r} of a scalar",
            lambda x, i, v, r=r: x.scatter_reduce(0, i, v, r),
            [(), tensor(0, i64), ()],
        )
        for r in ("sum", "amax", "mean")
    ),
    Row(
        "scatter_add of booleans",
        lambda x, i, v: x.scatter_add(1, i, v),
        [(3, 5), tensor([[1, 3]], i64), (1, 2)],
        (b1,),
    ),
    Row(
        "mean of integers by index",
        lambda x, i, v: x.scatter_reduce(0, i, v, "mean"),
        [(3,), index(0, 3, 7), (7,)],
        INTS,
    ),
    Row(
        "mean by index of more numbers than int8 counts",
        lambda x, i, v: x.scatter_reduce(0, i, v, "mean"),
        [tensor([3, 5], torch.int8), tensor([0] * 200, i64), tensor([3] * 200, torch.int8)],
        (torch.int8,),
    ),
    Row("mean of integers as floats", lambda x: (x.mean(1, dtype=f32), x.mean(dtype=f32)), [(3, 4)], (*INTS, b1)),
    Row("variance of a scalar", lambda x: (x.var(correction=0), x.var(), x.std(correction=0)), [()], (f32,)),
    Row("histc of nothing", lambda x: x.histc(3), [(0,)], (f32,)),
    Row("searchsorted for a number", lambda x: torch.searchsorted(x.sort().values, 0.5), [(7,)], (f32,)),
    Row(
        "cdist by product",
        lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"),
        [(3, 4), (5, 4)],
        (f32,),
    ),
    Row(
        "cdist of many by rows",
        lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
        [(27, 4), (30, 4)],
        (f32,),
    ),
    Row("erfc of a constant", lambda x: (torch.full_like(x, 3.7).erfc(), x), [X], (f32,)),
    Row("cdist of NaN", lambda x: (torch.cdist(x, x, p=0.0), torch.cdist(x, x, p=INF)), [SQUARE], (f32,)),
    Row(
        "chebyshev of a large degree",
        torch.special.chebyshev_polynomial_v,
        [tensor([-1.0, 1.0, -1.0]), tensor([2.0**31, 1e9, 41.0])],
        (f32,),
    ),
    Row(
        "bilinear of infinity",
        F.bilinear,
        [moved(SQUARE, lambda x: x[1:2]), moved(SQUARE, lambda x: x[2:]), (2, 3, 3)],
        (f32,),
    ),
    Row("ormqr without a reflection", torch.ormqr, [SQUARE, tensor([0.0, 0.0, 0.0]), SQUARE], (f32,)),
    Row("pdist of NaN", lambda x: F.pdist(x, 0.0), [SQUARE], (f32,)),
    Row(
        "lu_factor_ex of NaN", lambda x: linalg.lu_factor_ex(x)[:2], [moved(SQUARE, lambda x: torch.eye(3) + x)], (f32,)
    ),
    Row("qr of large and small", lambda x: (*linalg.qr(x * 1e20), *linalg.qr(x * 1e-25)), [(4, 3)], (f32,)),
    Row("zeta of limits", lambda s, q: torch.special.zeta(s[:, None], q), [LIMITS, SPECIAL], (f32,)),
    Row("polygamma of limits", lambda x: torch.special.polygamma(3, x), [SPECIAL], (f32,)),
    Row("chebyshev of limits", torch.special.chebyshev_polynomial_t, [(3, 1), LIMITS], (f32,)),
    Row(
        "softmax with an infinite gradient",
        lambda g, x: aten._softmax_backward_data(g, x.softmax(1), 1, f32),
        [SQUARE, (3, 3)],
        (f32,),
    ),
    *(
        Row(
            f"grid_sample of infinity {len(shape)} {mode} {padding}",
            lambda x, g, mode=mode, padding=padding: F.grid_sample(x, g, mode, padding, align_corners=False),
            [
                moved(of(f32, 1, 2, *shape), torch.reciprocal),
                moved(SPECIAL, lambda x, grid=grid: torch.cat([x, x / 3]).reshape(1, *grid)),
            ],
            (f32,),
        )
        for shape, grid, mode, padding in [
            ((3, 4), (3, 3, 2), "bilinear", "zeros"),
            ((3, 4), (3, 3, 2), "nearest", "border"),
            ((3, 4), (3, 3, 2), "bicubic", "reflection"),
            ((3, 4, 2), (1, 2, 3, 3), "bilinear", "border"),
        ]
    ),
    Row("histogram between bounds", lambda x: x.histogram(4, range=(-1.0, 1.5)), [(20,)], (f32,)),
    Row("histogram between edges", lambda x, e: x.histogram(e), [(20,), tensor([-1.0, 0, 0.25, 2])], (f32,)),
    Row("histogram weighted", lambda x, w: x.histogram(4, weight=w, density=True), [(20,), (20,)], (f32,)),
    Row("histogramdd of bins", lambda x: torch.histogramdd(x, [3, 4]), [(30, 2)], (f32,)),
    Row(
        "histogramdd between bounds",
        lambda x: torch.histogramdd(x, [3, 4], range=[-1, 1, -2.0, 0.5]),
        [(30, 2)],
        (f32,),
    ),
    Row(
        "one element per dimension",
        lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=True),
        [(1, 2, 1, 1, 3), UNIT],
        (f32,),
    ),
    Row(
        "fractional_max_pool2d of one",
        lambda x, s: aten.fractional_max_pool2d(x, [2, 3], [1, 2], s),
        [(2, 3, 5, 7), moved(of(f32, 2, 3, 2), torch.sigmoid)],
        (f32,),
    ),
    Row(
        "fractional_max_pool3d of NaN",
        lambda x, s: aten.fractional_max_pool3d(x, [2, 2, 2], [2, 2, 2], s),
        [moved(of(f32, 1, 1, 4, 4, 4), lambda x: torch.where(x > 0, NAN, x)), moved(of(f32, 1, 1, 3), torch.sigmoid)],
        (f32,),
    ),
    Row(
        "zeros of uneven averages",
        lambda x: F.adaptive_avg_pool2d(-x, 5).signbit(),
        [moved(of(f32, 1, 2, 4, 4), torch.zeros_like)],
        (f32,),
    ),
    Row("layer_norm over all", lambda x: F.layer_norm(x, x.shape), [X]),
    Row(
        "solve_triangular of nothing", lambda a, b: linalg.solve_triangular(a, b, upper=True), [(3, 3), (3, 0)], (f32,)
    ),
    Row("cholesky_ex of nothing", linalg.cholesky_ex, [(0, 0)], (f32,)),
    Row("lu_solve of nothing", lambda a, b: linalg.lu_solve(*linalg.lu_factor_ex(a)[:2], b), [(3, 3), (3, 0)], (f32,)),
    Row("householder_product", lambda x: linalg.householder_product(*torch.geqrf(x)), [(6, 4)], (f32,)),
    Row("householder_product of nothing", linalg.householder_product, [(4, 0), (0,)], (f32,)),
    Row(
        "solve_ex right of a batch",
        lambda a, b: linalg.solve_ex(a + 9 * torch.eye(3), b, left=False),
        [(2, 3, 3), (2, 4, 3)],
        (f32,),
    ),
    Row("as_strided of a transposed one", lambda x: x.t().as_strided((2, 2), (1, 3)), [(3, 4)], NUMBERS),
    Row("as_strided of a part with gaps", lambda x: x[:, ::2].as_strided((2, 2), (2, 1)), [(3, 6)], NUMBERS),
    Row("native_dropout in evaluation", lambda x: aten.native_dropout(x, 0.5, False), [X]),
    Row("rrelu in evaluation", lambda x: F.rrelu(x, 0.1, 0.3), [X]),
    Row(
        "power of a degree of 0 and below",
        lambda x: (torch.special.hermite_polynomial_h(x, 0), torch.special.laguerre_polynomial_l(x, -1)),
        [X],
        (f32,),
    ),
]


def large(x: torch.Tensor) -> torch.Tensor:
    """A well-conditioned matrix with more rows than the device solves step by step."""
    return x + 40 * torch.eye(40)


# Arguments for which a rule leaves an op to the host. Each row has the name of that op.
HOST = [
    Row("aten.special_laguerre_polynomial_l", torch.special.laguerre_polynomial_l, [(3,), tensor([1.0, 2, 3])]),
    Row("aten.special_hermite_polynomial_h", lambda x: torch.special.hermite_polynomial_h(x, 99), [(3,)]),
    Row("aten.polygamma", lambda x: torch.special.polygamma(40, x), [moved(X3, torch.abs)]),
    Row("aten.avg_pool3d", lambda x: F.avg_pool3d(x.long(), 2), [(1, 2, 4, 4, 4)]),
    Row("aten.nextafter", lambda x, y: torch.nextafter(x.double(), y.double()), [(3,), (3,)]),
    Row("aten.as_strided_scatter", lambda x, y: torch.as_strided_scatter(x[:, ::2], y, (2,), (1,)), [(3, 6), (2,)]),
    Row("aten.triangular_solve", lambda b, a: torch.triangular_solve(b, large(a)), [(40, 2), (40, 40)]),
    Row("aten.cholesky_solve", lambda b, a: torch.cholesky_solve(b, large(a)), [(40, 2), (40, 40)]),
    Row("aten.linalg_cholesky_ex", lambda x: linalg.cholesky_ex(large(x @ x.T), check_errors=True), [(40, 40)]),
    Row("aten.linalg_inv_ex", lambda x: linalg.inv_ex(large(x)), [(40, 40)]),
    Row("aten._linalg_det", lambda x: linalg.det(large(x) / 40), [(40, 40)]),
    Row("aten._linalg_solve_ex", lambda a, b: linalg.solve_ex(a, b), [(1, 3, 3), (2, 3, 2)]),
    Row(
        "aten.index_put",
        lambda x, m, i, v: x.index_put((m, i), v),
        [(3, 4), tensor([True, False, True], b1), tensor([1, 2], i64), (2,)],
    ),
]

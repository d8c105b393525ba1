"""One row per op, which test_ops.py compiles and compares with eager PyTorch.

    Row("add", lambda x, y: x + y, [(2, 3, 4), (3, 4)])

Inputs are described in op_rows.py. Data movement, indexing and creation are in op_table_movement.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from op_rows import (
    ALL,
    EVERY,
    FLOATS,
    INTS,
    NUMBERS,
    Row,
    X,
    b1,
    bf16,
    distinct,
    f32,
    i32,
    i64,
    index,
    nonzero,
    of,
    positive,
    tensor,
    uniform,
)
from op_table_complex import COMPLEX, FOURIER
from op_table_convolution import CONVOLUTIONS
from op_table_edges import EDGES, HOST
from op_table_linalg import LINALG
from op_table_movement import CREATION, INDEXING, MOVEMENT
from op_table_normalization import ATTENTION, NORMALIZATION
from op_table_ordering import ORDERINGS
from op_table_pooling import INTERPOLATION, POOLING
from op_table_scatter import SCATTERING
from op_table_special import SPECIAL

# --- element-wise -------------------------------------------------------------------------------

UNARY_ANY = [
    "abs",
    "ceil",
    "cos",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "neg",
    "round",
    "sigmoid",
    "sign",
    "sin",
    "tan",
    "tanh",
    "trunc",
    "atan",
    "asinh",
    "sinh",
    "cosh",
]
ACTIVATIONS = [
    "relu",
    "relu6",
    "silu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "mish",
    "softplus",
    "softsign",
    "tanhshrink",
    "elu",
    "selu",
    "celu",
]
ACTIVATIONS += ["leaky_relu", "logsigmoid", "softshrink", "hardshrink"]

UNARY = [
    *(Row(name, getattr(torch, name), [X]) for name in UNARY_ANY),
    *(Row(name, getattr(torch, name), [positive(*X)]) for name in ["log", "log2", "log10", "log1p", "sqrt", "rsqrt"]),
    *(Row(name, getattr(torch, name), [uniform(-0.9, 0.9, *X)]) for name in ["acos", "asin", "atanh"]),
    Row("acosh", torch.acosh, [uniform(1.1, 5, *X)]),
    Row("exp2", torch.exp2, [X]),
    Row("frac", torch.frac, [X]),
    Row("logit", torch.logit, [uniform(0.1, 0.9, *X)]),
    Row("reciprocal", torch.reciprocal, [nonzero(*X)]),
    Row("square", torch.square, [X], NUMBERS),
    Row("abs of integers", torch.abs, [X], INTS),
    Row("neg of integers", torch.neg, [X], INTS),
    Row("sign of integers", torch.sign, [X], INTS),
    Row("rank 0", torch.neg, [()], NUMBERS),
    Row("rank 6", lambda x: x * 2 + 1, [(2, 1, 3, 1, 2, 3)], NUMBERS),
    Row("isfinite", torch.isfinite, [tensor([1.0, float("inf"), -float("inf"), float("nan")])]),
    Row("isnan", torch.isnan, [tensor([1.0, float("inf"), float("nan")])]),
    Row(
        "isinf of bytes", lambda x: (x.to(torch.uint8).isinf(), x.to(torch.int8).isinf(), (x > 0).isinf()), [X], (i32,)
    ),
    Row("isinf", torch.isinf, [tensor([1.0, float("inf"), -float("inf"), float("nan")])]),
    Row("nan_to_num", torch.nan_to_num, [tensor([1.0, float("nan"), 3.0])]),
    Row("logical_not", torch.logical_not, [X], ALL),
    Row("bitwise_not", torch.bitwise_not, [X], (*INTS, b1)),
    *(Row(name, getattr(F, name), [X]) for name in ACTIVATIONS),
    Row("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), [X]),
    Row("celu inf", lambda x: F.celu(x, math.inf), [tensor([3.0, 0.0, -3.0])]),
    Row("leaky_relu slope", lambda x: F.leaky_relu(x, 0.3), [X]),
    Row("prelu", F.prelu, [(2, 3, 4), (3,)]),
    Row("glu", F.glu, [(2, 3, 6)]),
    Row("real functions of integers", lambda x: (torch.erf(x), torch.erfc(x), x.reciprocal()), [nonzero(*X)], (i64,)),
    Row("heaviside", torch.heaviside, [X, X], NUMBERS),
    Row("threshold of integers", lambda x: F.threshold(x, 2, -1), [X], INTS),
    Row("shift by rows", lambda x: x << torch.tensor([[1], [2], [3]]), [(5,)], INTS),
    Row("shift by another dtype", lambda x: x << torch.arange(5), [(5,)], (i32,)),
    Row("threshold", lambda x: F.threshold(x, 0.2, -1.0), [X]),
    Row("dropout eval", lambda x: F.dropout(x, 0.5, training=False), [X]),
    Row("clamp", lambda x: x.clamp(-0.5, 0.7), [X]),
    Row("clamp min", lambda x: x.clamp(min=-0.5), [X]),
    Row("clamp max", lambda x: x.clamp(max=0.5), [X]),
    Row("clamp tensor", lambda x, low, high: x.clamp(low, high), [X, uniform(-1, 0, 5), uniform(0, 1, 5)]),
    Row("clamp integers", lambda x: x.clamp(-3, 4), [X], INTS),
    Row("clone", lambda x: x.clone() + 1, [X], NUMBERS),
]

Y = (3, 5)  # broadcasts with X
MASK = of(b1, *X)
BINARY = [
    Row(
        "choices between constants",
        lambda x: torch.where(torch.full_like(x, 2) > 1, x, 5) + (torch.ones_like(x) < 0),
        [X],
    ),
    Row("add", lambda x, y: x + y, [X, Y], (*NUMBERS, i32)),
    Row("add alpha", lambda x, y: torch.add(x, y, alpha=3), [X, Y], NUMBERS),
    Row("add scalar", lambda x: x + 2, [X], NUMBERS),
    Row("add both broadcast", lambda x, y: x + y, [(3, 1), (1, 4)], NUMBERS),
    Row("add mixed types", lambda x, y: x + y, [X, of(i64, *Y)], (*FLOATS, i32)),
    Row("add float32 to bf16", lambda x, y: x + y, [X, of(f32, *Y)], (bf16,)),
    Row("sub", lambda x, y: x - y, [X, Y], NUMBERS),
    Row("rsub", lambda x: 1 - x, [X], NUMBERS),
    Row("mul", lambda x, y: x * y, [X, Y], NUMBERS),
    Row("mul of booleans", lambda x, y: x * y, [X, Y], (b1,)),
    Row("div", lambda x, y: x / y, [X, nonzero(*Y)], NUMBERS),
    Row("div scalar", lambda x: x / 3, [X], NUMBERS),
    Row("div floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), [X, nonzero(*Y)], NUMBERS),
    Row("div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), [X, nonzero(*Y)], NUMBERS),
    Row("div trunc of scalars", lambda x, y: torch.div(x, y, rounding_mode="trunc"), [(), nonzero()], (f32, i32)),
    Row(
        "div floor infinite",
        lambda x, y: torch.div(x, y, rounding_mode="floor"),
        [tensor([3e38, -3e38, float("inf")]), tensor([0.14, 0.06, 2.0])],
    ),
    Row("floor_divide", lambda x: x // 4, [X], NUMBERS),
    Row("remainder", lambda x, y: x % y, [X, nonzero(*Y)], (f32, *INTS)),
    Row("remainder scalar", lambda x: x % 3, [X], (f32, *INTS)),
    Row("remainder negative scalar", lambda x: x % -3, [X], (f32, *INTS)),
    Row("scalar remainder", lambda x: 7 % x, [nonzero(*X)], (f32, *INTS)),
    Row("fmod", torch.fmod, [X, nonzero(*Y)], (f32, *INTS)),
    Row("pow", torch.pow, [positive(*X), Y]),
    Row("pow 2", lambda x: x**2, [X], NUMBERS),
    Row("pow 3", lambda x: x**3, [X], NUMBERS),
    Row("pow 0.5", lambda x: x**0.5, [positive(*X)]),
    Row("pow -1", lambda x: x**-1.0, [nonzero(*X)]),
    Row("scalar pow", lambda x: 2.0**x, [X]),
    Row("atan2", torch.atan2, [X, nonzero(*Y)]),
    Row("hypot", torch.hypot, [X, Y]),
    Row("maximum", torch.maximum, [X, Y], NUMBERS),
    Row("minimum", torch.minimum, [X, Y], NUMBERS),
    Row("fmax", torch.fmax, [X, Y]),
    Row("logaddexp", torch.logaddexp, [X, Y]),
    Row("xlogy", torch.xlogy, [positive(*X), positive(*Y)]),
    Row("lerp", torch.lerp, [X, X, uniform(0, 1, 5)]),
    Row("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), [X, Y, Y]),
    Row("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), [X, Y, nonzero(*Y)]),
    Row("where", torch.where, [MASK, X, Y], EVERY),
    Row("where scalar", lambda c, x: torch.where(c, x, 0), [MASK, X], NUMBERS),
    Row("where of comparison", lambda x, y: torch.where(x > y, x, -y), [X, Y], NUMBERS),
    Row("masked_fill", lambda x, c: x.masked_fill(c, -1.0), [X, of(b1, *Y)]),
    Row("masked_fill -inf", lambda x, c: x.masked_fill(c, float("-inf")), [X, of(b1, *Y)]),
    Row("copysign", torch.copysign, [X, nonzero(*Y)]),
    *(Row(name, getattr(torch, name), [X, Y], ALL) for name in ["eq", "ne", "ge", "gt", "le", "lt"]),
    Row("compare scalar", lambda x: x > 0.25, [X], NUMBERS),
    *(Row(name, getattr(torch, name), [X, Y], ALL) for name in ["logical_and", "logical_or", "logical_xor"]),
    *(Row(name, getattr(torch, name), [X, Y], (*INTS, b1)) for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]),
    Row("shift left", lambda x: x << 2, [X], INTS),
    Row("shift right", lambda x: x >> 1, [X], INTS),
    Row("eq itself", lambda x: x == x, [tensor([1.0, float("nan")])]),
    Row("ge itself", lambda x: x >= x, [tensor([1.0, float("nan")])]),
    Row("lt itself", lambda x: x < x, [tensor([1.0, float("nan")])]),
    Row("sub itself", lambda x: x - x, [tensor([1.0, float("nan"), float("inf")])]),
    Row("div itself", lambda x: x / x, [tensor([1.0, float("nan"), 0.0])]),
    Row("mul zero", lambda x: x * 0, [tensor([1.0, float("nan"), float("inf")])]),
    Row("isclose", torch.isclose, [X, X]),
]

# A float becomes an integer by truncation, and a boolean by comparison with zero.
CAST_TYPES = (f32, bf16, torch.float16, torch.float64, i32, i64, torch.int16, torch.int8, torch.uint8, b1)


def _cast(target: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x.to(target)


def _castable(dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([0.0, 1.0, 2.7, 100.3, 0.4, 9.0]).to(dtype)


CASTS = [Row(f"cast to {str(t)[6:]}", _cast(t), [_castable], CAST_TYPES) for t in CAST_TYPES]
CASTS += [
    Row("cast negative to integer", lambda x: x.to(i32), [tensor([-2.7, -0.4, 3.9])]),
    Row("cast boolean and add", lambda x: x.float() + 1, [X], (b1,)),
    Row("cast comparison", lambda x, y: (x > y).to(i64).sum(), [X, Y]),
    Row("type_as", lambda x, y: x.type_as(y), [X, of(f32, 1)], NUMBERS),
]

# --- reductions ---------------------------------------------------------------------------------

R = (2, 3, 4, 5)
DIMS: list[dict[str, Any]] = [
    {},
    {"dim": 1},
    {"dim": -1, "keepdim": True},
    {"dim": (0, 2)},
    {"dim": (-1, -2), "keepdim": True},
]


def _reduce(name: str, options: dict[str, Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: getattr(torch, name)(x, **options)


def _reductions(
    name: str, dtypes: tuple[torch.dtype, ...], options: Sequence[dict[str, Any]], scale: float = 1
) -> list[Row]:
    return [Row(f"{name} {o or 'all'}", _reduce(name, o), [R], dtypes, scale) for o in options]


def _in_chunks(reduction: str) -> Callable[..., torch.Tensor]:
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2, allow_retain_graph=True)

    def loss(x: torch.Tensor, matrix: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.linear_cross_entropy(x, matrix, target, weight=weight, reduction=reduction, options=options)

    return loss


ONE_DIM = [o for o in DIMS if not isinstance(o.get("dim"), tuple)]
REDUCTIONS = [
    *_reductions("sum", EVERY, DIMS, scale=10),
    *_reductions("mean", FLOATS, DIMS),
    *_reductions("amax", NUMBERS, DIMS),
    *_reductions("amin", NUMBERS, DIMS),
    Row("aminmax of booleans", lambda x: (x.aminmax(dim=0), x.amax(1), x.max(0)), [(2, 3)], (b1,)),
    *_reductions("var", (f32,), DIMS),
    *_reductions("std", (f32,), DIMS),
    *_reductions("any", (b1, f32, i32), ONE_DIM),
    *_reductions("all", (b1, f32, i32), ONE_DIM),
    *_reductions("logsumexp", FLOATS, DIMS[1:]),
    *(
        Row(f"{n} {o or 'all'}", _reduce(n, o), [distinct(2, 3, 4, 5)], NUMBERS)
        for n in ("argmax", "argmin")
        for o in ONE_DIM
    ),
    Row("argmax first of equals", lambda x: x.argmax(-1), [tensor([[1, 3, 3], [2, 2, 1]])], NUMBERS),
    Row("prod", lambda x: x.prod(-1), [uniform(0.5, 1.5, 2, 3, 4)]),
    Row("prod keepdim", lambda x: x.prod(1, keepdim=True), [uniform(0.5, 1.5, 2, 3, 4)]),
    Row("prod all", torch.prod, [uniform(0.5, 1.5, 2, 3)]),
    Row("prod of integers", lambda x: x.prod(-1), [(2, 3, 4)], INTS),
    Row("max values and indices", lambda x: torch.max(x, 1), [distinct(2, 3, 4)], NUMBERS),
    Row("min values and indices", lambda x: torch.min(x, -1, keepdim=True), [distinct(2, 3, 4)], NUMBERS),
    Row("max all", torch.max, [X], NUMBERS),
    Row("sum to float", lambda x: x.sum(-1, dtype=f32), [X], ALL),
    Row("mean of integers as float", lambda x: x.float().mean(), [X], INTS),
    Row("var uncorrected", lambda x: x.var(-1, correction=0), [X]),
    Row(
        "var without freedom", lambda x: (x[:1].var(0), x.std(0, correction=5, keepdim=True), x[:0].var()), [X], (f32,)
    ),
    Row("std_mean", lambda x: torch.std_mean(x, 1, keepdim=True), [X], (f32,)),
    Row("trace", torch.trace, [(3, 4)], NUMBERS),
    Row("unsafe_split", lambda x: x.unsafe_split(2, 1), [X], NUMBERS),
    Row("var_mean", lambda x: torch.var_mean(x, 1), [X], (f32,)),
    Row("norm", lambda x: x.norm(dim=-1), [X]),
    Row("vector_norm 1", lambda x: torch.linalg.vector_norm(x, 1, dim=(0, 1)), [X]),
    Row("normalize", lambda x: F.normalize(x, dim=1), [X]),
    Row("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, dim=-1), [X, X]),
    Row("count_nonzero", lambda x: x.count_nonzero(), [X], (i64, b1)),
    Row("cumsum", lambda x: x.cumsum(1), [R], NUMBERS, scale=10),
    Row("cumsum last", lambda x: x.cumsum(-1), [(3, 33)], NUMBERS, scale=10),
    Row("cumsum as bytes", lambda x: (x.cumsum(1, dtype=torch.uint8), x.cumsum(0, dtype=torch.int8)), [R], NUMBERS),
    Row("cumsum of booleans", lambda x: x.cumsum(0), [(5, 3)], (b1,)),
    Row("reduce rank 0 keepdim", lambda x: x.sum(0, keepdim=True) + x.amax(0, keepdim=True), [()]),
    Row("reduce rank 0", lambda x: x.mean(0) + x.amin(0), [()]),
    Row("mse_loss", F.mse_loss, [X, X]),
    Row("l1_loss", F.l1_loss, [X, X]),
    Row("smooth_l1_loss", F.smooth_l1_loss, [X, X]),
    Row("cross_entropy", F.cross_entropy, [(4, 7), index(0, 7, 4)]),
    Row("cross_entropy ignoring", F.cross_entropy, [(4, 7), tensor([1, -100, 3, -100], i64)]),
    Row("nll_loss", F.nll_loss, [(4, 7), index(0, 7, 4)]),
    Row("huber_loss", F.huber_loss, [X, X]),
    *(
        Row(f"huber_loss beside a wider target, {how}", lambda x, y, how=how: F.huber_loss(x, y.double(), how), [X, X])
        for how in ("none", "mean", "sum")
    ),
    Row("soft_margin_loss", F.soft_margin_loss, [X, X]),
    *(
        Row(f"linear_cross_entropy {r}", _in_chunks(r), [(5, 3), (7, 3), tensor([1, 0, -100, 6, 3], i64), (7,)], (f32,))
        for r in ("mean", "none")
    ),
    Row("log_softmax near 0", lambda x: x.log_softmax(0, dtype=torch.float64), [tensor([9.0, -3, 1])], (f32,)),
    Row("bce_with_logits", F.binary_cross_entropy_with_logits, [X, uniform(0, 1, *X)]),
    Row(
        "bce_with_logits of a constant",
        lambda x: F.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.3), reduction="none"),
        [tensor([3.0, -200.0, 200.0, 1e-12, 0.0])],
    ),
    Row("kl_div", lambda x, y: F.kl_div(x, y, reduction="batchmean"), [X, positive(*X)]),
]

# --- matrix products ----------------------------------------------------------------------------

MATMULS = [
    Row(
        "grouped_mm", lambda x, w, e: F.grouped_mm(x, w, offs=e), [(9, 8), (3, 8, 16), tensor([4, 4, 9], i32)], (bf16,)
    ),
    Row("mm", torch.mm, [(3, 4), (4, 5)]),
    Row("mm transposed left", lambda x, y: x.t() @ y, [(4, 3), (4, 5)]),
    Row("mm transposed right", lambda x, y: x @ y.t(), [(3, 4), (5, 4)]),
    Row("mm of integers", torch.mm, [(3, 4), (4, 5)], (i32, i64)),
    Row("mm beyond a tile", torch.mm, [(33, 65), (65, 40)], scale=10),
    Row("bmm", torch.bmm, [(2, 3, 4), (2, 4, 5)]),
    Row("addmm", torch.addmm, [(5,), (3, 4), (4, 5)]),
    Row("addmm scaled", lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2), [(3, 5), (3, 4), (4, 5)]),
    Row("baddbmm", torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
    Row("baddbmm scaled", lambda b, x, y: torch.baddbmm(b, x, y, beta=0.5, alpha=2), [(1, 1, 5), (2, 3, 4), (2, 4, 5)]),
    Row("linear", F.linear, [(2, 3, 4), (5, 4), (5,)]),
    Row("linear without bias", F.linear, [(2, 3, 4), (5, 4)]),
    Row("linear of a vector", F.linear, [(4,), (5, 4), (5,)]),
    Row("linear rank 4", F.linear, [(2, 3, 2, 4), (5, 4), (5,)]),
    Row("linear relu", lambda x, w, b: F.relu(F.linear(x, w, b)), [(3, 4), (5, 4), (5,)]),
    Row("dot", torch.dot, [(7,), (7,)]),
    Row("mv", torch.mv, [(3, 4), (4,)]),
    Row("addmv", torch.addmv, [(3,), (3, 4), (4,)]),
    Row("vector matmul", torch.matmul, [(4,), (4, 5)]),
    Row("vector by batch", torch.matmul, [(4,), (2, 4, 5)]),
    Row("outer", torch.outer, [(3,), (4,)]),
    Row("matmul broadcast batch", torch.matmul, [(2, 1, 3, 4), (5, 4, 2)]),
    Row("matmul batch by matrix", torch.matmul, [(2, 3, 4), (4, 5)]),
    Row("matmul matrix by batch", torch.matmul, [(3, 4), (2, 4, 5)]),
    Row("einsum ij,jk", lambda x, y: torch.einsum("ij,jk->ik", x, y), [(3, 4), (4, 5)]),
    Row("einsum bhqd,bhkd", lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y), [(2, 2, 3, 4), (2, 2, 5, 4)]),
    Row("einsum bqhd,bkhd", lambda x, y: torch.einsum("bqhd,bkhd->bhqk", x, y), [(2, 3, 2, 4), (2, 5, 2, 4)]),
    Row("einsum i,j", lambda x, y: torch.einsum("i,j->ij", x, y), [(3,), (4,)]),
    Row("einsum trace-free sum", lambda x: torch.einsum("bij->bj", x), [(2, 3, 4)]),
    Row("addmm of integers", lambda b, x, y: torch.addmm(b, x, y, beta=2), [(5,), (3, 4), (4, 5)], INTS),
    Row("addbmm", lambda b, x, y: torch.addbmm(b, x, y, beta=0, alpha=2), [(3, 5), (2, 3, 4), (2, 4, 5)]),
    Row("bilinear", F.bilinear, [(2, 3), (2, 4), (5, 3, 4), (5,)]),
]

UNSUPPORTED = [
    Row("aten.avg_pool2d", lambda x: F.avg_pool2d(x.long(), 2), [(1, 2, 4, 4)]),
    Row("aten.complex", lambda x: torch.linalg.eigvals(x.to(torch.complex64)), [(3, 3)]),
    Row("aten.complex", lambda x: torch.acosh(torch.complex(x, x)), [(3,)]),
    *HOST,
]

FAMILIES = {
    "complex": COMPLEX,
    "fourier": FOURIER,
    "unary": UNARY,
    "binary": BINARY,
    "casts": CASTS,
    "reductions": REDUCTIONS,
    "orderings": ORDERINGS,
    "matmuls": MATMULS,
    "convolutions": CONVOLUTIONS,
    "pooling": POOLING,
    "interpolation": INTERPOLATION,
    "movement": MOVEMENT,
    "indexing": INDEXING,
    "scattering": SCATTERING,
    "creation": CREATION,
    "normalization": NORMALIZATION,
    "attention": ATTENTION,
    "linalg": LINALG,
    "special": SPECIAL,
    "edges": EDGES,
}
ROWS = list(itertools.chain.from_iterable(FAMILIES.values()))

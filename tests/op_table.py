"""One row per op: what test_ops.py compiles and compares with PyTorch eager.

    Row("add", lambda x, y: x + y, [(2, 3, 4), (3, 4)])

An input is a shape, whose elements are drawn for each dtype of the row, or a maker: a function from that dtype to
a tensor (`index`, `positive`, `of`, ...), for values that a function is defined on and for operands of another type.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Maker = Callable[[torch.dtype], torch.Tensor]

f32, bf16, i32, i64, b1 = torch.float32, torch.bfloat16, torch.int32, torch.int64, torch.bool
FLOATS = (f32, bf16)
INTS = (i64,)  # int32 is the same on the device; some rows have both
NUMBERS = (*FLOATS, *INTS)
ALL = (*NUMBERS, b1)
EVERY = (*FLOATS, i32, i64, b1)


@dataclass(frozen=True)
class Row:
    """`fn` over `inputs`, once per dtype. `scale` widens the float32 tolerance where errors add up."""

    name: str
    fn: Callable[..., Any]
    inputs: Sequence[tuple[int, ...] | Maker]
    dtypes: tuple[torch.dtype, ...] = FLOATS
    scale: float = 1.0


def draw(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Normal floats, small signed integers, or booleans."""
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 2, shape).bool() if dtype is b1 else torch.randint(-9, 10, shape, dtype=dtype)


# --- makers -------------------------------------------------------------------------------------


def of(dtype: torch.dtype, *shape: int) -> Maker:
    """Elements of a type of their own, whatever the row's dtype is."""
    return lambda _: draw(shape, dtype)


def uniform(low: float, high: float, *shape: int) -> Maker:
    return lambda dtype: (torch.rand(shape) * (high - low) + low).to(dtype)


def positive(*shape: int) -> Maker:
    return uniform(0.1, 4, *shape)


def nonzero(*shape: int) -> Maker:
    """Of both signs, away from zero."""
    return lambda dtype: ((torch.rand(shape) * 4 + 1) * torch.randn(shape).sign()).to(dtype)


def index(low: int, high: int, *shape: int, dtype: torch.dtype = i64) -> Maker:
    return lambda _: torch.randint(low, high, shape, dtype=dtype)


def tensor(values: Any, dtype: torch.dtype | None = None) -> Maker:
    return lambda own: torch.tensor(values, dtype=dtype or own)


def distinct(*shape: int) -> Maker:
    """No two elements equal, so that orderings have one answer. Exact in bf16 up to 256 elements."""
    count = torch.Size(shape).numel()
    return lambda dtype: (torch.randperm(count) - count // 2).reshape(shape).to(dtype)


def moved(maker: Maker, change: Callable[[torch.Tensor], torch.Tensor]) -> Maker:
    """A view of what another maker makes."""
    return lambda dtype: change(maker(dtype))


# --- element-wise -------------------------------------------------------------------------------

X = (2, 3, 5)
UNARY_ANY = (
    ["abs", "ceil", "cos", "erf", "erfc", "exp", "expm1", "floor", "neg", "round", "sigmoid", "sign", "sin", "tan", "tanh", "trunc", "atan", "asinh", "sinh", "cosh"]
)
ACTIVATIONS = (
    ["relu", "relu6", "silu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "mish", "softplus", "softsign", "tanhshrink", "elu", "selu", "celu"]
)
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
    Row("isinf", torch.isinf, [tensor([1.0, float("inf"), -float("inf"), float("nan")])]),
    Row("nan_to_num", torch.nan_to_num, [tensor([1.0, float("nan"), 3.0])]),
    Row("logical_not", torch.logical_not, [X], ALL),
    Row("bitwise_not", torch.bitwise_not, [X], (*INTS, b1)),
    *(Row(name, getattr(F, name), [X]) for name in ACTIVATIONS),
    Row("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), [X]),
    Row("leaky_relu slope", lambda x: F.leaky_relu(x, 0.3), [X]),
    Row("prelu", F.prelu, [(2, 3, 4), (3,)]),
    Row("glu", F.glu, [(2, 3, 6)]),
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

# Floats towards integers truncate; towards booleans any nonzero is true.
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


ONE_DIM = [o for o in DIMS if not isinstance(o.get("dim"), tuple)]
REDUCTIONS = [
    *_reductions("sum", EVERY, DIMS, scale=10),
    *_reductions("mean", FLOATS, DIMS),
    *_reductions("amax", NUMBERS, DIMS),
    *_reductions("amin", NUMBERS, DIMS),
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
    Row("var_mean", lambda x: torch.var_mean(x, 1), [X], (f32,)),
    Row("norm", lambda x: x.norm(dim=-1), [X]),
    Row("vector_norm 1", lambda x: torch.linalg.vector_norm(x, 1, dim=(0, 1)), [X]),
    Row("normalize", lambda x: F.normalize(x, dim=1), [X]),
    Row("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, dim=-1), [X, X]),
    Row("count_nonzero", lambda x: x.count_nonzero(), [X], (i64, b1)),
    Row("cumsum", lambda x: x.cumsum(1), [R], NUMBERS, scale=10),
    Row("cumsum last", lambda x: x.cumsum(-1), [(3, 33)], NUMBERS, scale=10),
    Row("cumsum of booleans", lambda x: x.cumsum(0), [(5, 3)], (b1,)),
    Row("reduce rank 0 keepdim", lambda x: x.sum(0, keepdim=True) + x.amax(0, keepdim=True), [()]),
    Row("reduce rank 0", lambda x: x.mean(0) + x.amin(0), [()]),
    Row("mse_loss", F.mse_loss, [X, X]),
    Row("l1_loss", F.l1_loss, [X, X]),
    Row("smooth_l1_loss", F.smooth_l1_loss, [X, X]),
    Row("cross_entropy", F.cross_entropy, [(4, 7), index(0, 7, 4)]),
    Row("cross_entropy ignoring", F.cross_entropy, [(4, 7), tensor([1, -100, 3, -100], i64)]),
    Row("nll_loss", F.nll_loss, [(4, 7), index(0, 7, 4)]),
    Row("bce_with_logits", F.binary_cross_entropy_with_logits, [X, uniform(0, 1, *X)]),
    Row("kl_div", lambda x, y: F.kl_div(x, y, reduction="batchmean"), [X, positive(*X)]),
]

# --- matrix products ----------------------------------------------------------------------------

MATMULS = [
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
    Row("bilinear", F.bilinear, [(2, 3), (2, 4), (5, 3, 4), (5,)]),
]

# --- convolution and pooling --------------------------------------------------------------------

IMAGE = (3, 4, 9, 8)


def _conv2d(**options: Any) -> Callable[..., torch.Tensor]:
    return lambda x, w, b=None: F.conv2d(x, w, b, **options)


CONVOLUTIONS = [
    Row("conv2d", _conv2d(), [IMAGE, (6, 4, 3, 3), (6,)], scale=10),
    Row("conv2d without bias", _conv2d(), [IMAGE, (6, 4, 3, 3)], scale=10),
    Row("conv2d 1x1", _conv2d(), [IMAGE, (6, 4, 1, 1), (6,)], scale=10),
    Row("conv2d stride", _conv2d(stride=2), [IMAGE, (6, 4, 3, 3), (6,)], scale=10),
    Row("conv2d stride by side", _conv2d(stride=(1, 3)), [IMAGE, (6, 4, 3, 3)], scale=10),
    Row("conv2d padding", _conv2d(padding=(1, 2)), [IMAGE, (6, 4, 3, 3), (6,)], scale=10),
    Row("conv2d same", _conv2d(padding="same"), [IMAGE, (6, 4, 3, 3), (6,)], scale=10),
    Row("conv2d same even kernel", _conv2d(padding="same"), [IMAGE, (6, 4, 2, 4)], scale=10),
    Row("conv2d dilation", _conv2d(dilation=2), [IMAGE, (6, 4, 3, 3)], scale=10),
    Row("conv2d groups", _conv2d(groups=2), [IMAGE, (6, 2, 3, 3), (6,)], scale=10),
    Row("conv2d depthwise", _conv2d(groups=4, padding=1), [IMAGE, (4, 1, 3, 3), (4,)], scale=10),
    Row("conv2d depthwise multiplied", _conv2d(groups=4), [IMAGE, (8, 1, 3, 3)], scale=10),
    Row("conv2d all", _conv2d(stride=2, padding=2, dilation=2, groups=2), [IMAGE, (6, 2, 3, 3), (6,)], scale=10),
    Row("conv2d rank 3", _conv2d(), [(4, 9, 8), (6, 4, 3, 3), (6,)], scale=10),
    Row(
        "conv2d channels last",
        _conv2d(),
        [moved(lambda d: draw(IMAGE, d), lambda x: x.to(memory_format=torch.channels_last)), (6, 4, 3, 3)],
        scale=10,
    ),
    Row("conv2d relu", lambda x, w, b: F.relu(F.conv2d(x, w, b)), [IMAGE, (6, 4, 3, 3), (6,)], scale=10),
    Row("conv1d", F.conv1d, [(3, 4, 9), (6, 4, 3), (6,)], scale=10),
    Row("conv1d without bias", F.conv1d, [(3, 4, 9), (6, 4, 3)], scale=10),
    Row("conv1d options", lambda x, w, b: F.conv1d(x, w, b, 2, 2, 2, 2), [(3, 4, 9), (6, 2, 3), (6,)], scale=10),
    Row("conv1d depthwise", lambda x, w: F.conv1d(x, w, padding=1, groups=4), [(3, 4, 9), (4, 1, 3)], scale=10),
]
POOLING = [
    Row("max_pool2d", lambda x: F.max_pool2d(x, 2), [IMAGE]),
    Row("max_pool2d options", lambda x: F.max_pool2d(x, 3, 2, 1), [IMAGE]),
    Row("max_pool2d dilation", lambda x: F.max_pool2d(x, 2, 1, 0, 2), [IMAGE]),
    Row("max_pool2d ceil", lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), [IMAGE]),
    Row("max_pool2d rank 3", lambda x: F.max_pool2d(x, 2), [(4, 9, 8)]),
    Row("max_pool1d", lambda x: F.max_pool1d(x, 3, 2), [(2, 3, 9)]),
    Row("avg_pool2d", lambda x: F.avg_pool2d(x, 2), [IMAGE]),
    Row("avg_pool2d options", lambda x: F.avg_pool2d(x, 3, 2, 1), [IMAGE]),
    Row("avg_pool2d uncounted", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [IMAGE]),
    Row("avg_pool2d divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), [IMAGE]),
    Row("avg_pool2d ceil", lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True), [IMAGE]),
    Row("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), [(2, 3, 9)]),
    Row("adaptive_avg_pool2d 1", lambda x: F.adaptive_avg_pool2d(x, 1), [IMAGE]),
    Row("adaptive_avg_pool2d even", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), [IMAGE]),
    Row("adaptive_avg_pool2d uneven", lambda x: F.adaptive_avg_pool2d(x, (4, 3)), [IMAGE]),
    Row("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), [(2, 3, 9)]),
    Row("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 4)), [IMAGE]),
    Row("interpolate nearest", lambda x: F.interpolate(x, scale_factor=2), [(2, 3, 4, 5)]),
    Row("interpolate bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [(2, 3, 4, 5)]),
    Row("im2col", lambda x: F.unfold(x, (2, 3), stride=2), [IMAGE]),
    Row("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [(2, 8, 3, 4)]),
]

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
    Row("pad value", lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), [(2, 3, 4)]),
    Row("pad negative", lambda x: F.pad(x, (-1, 2)), [(3, 4)]),
    Row("pad reflect", lambda x: F.pad(x, (2, 1), mode="reflect"), [(2, 3, 5)]),
    Row("pad replicate", lambda x: F.pad(x, (2, 1, 1, 0), mode="replicate"), [(2, 3, 4, 5)]),
    Row("pad circular", lambda x: F.pad(x, (2, 1), mode="circular"), [(2, 3, 5)]),
    Row("flip", lambda x: x.flip(0, 2), [(3, 4, 5)], NUMBERS),
    Row("roll", lambda x: x.roll(2, 1), [(3, 5)], NUMBERS),
    Row("roll two", lambda x: x.roll((1, -2), (0, 1)), [(3, 5)], NUMBERS),
    Row("unsqueeze", lambda x: x.unsqueeze(1) + 1, [(3, 4)], NUMBERS),
    Row("squeeze", lambda x: x.squeeze(1) + 1, [(3, 1, 4)], NUMBERS),
    Row("squeeze all", lambda x: x.squeeze() + 1, [(1, 3, 1)], NUMBERS),
    Row("tril", torch.tril, [(4, 5)], NUMBERS),
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

# --- normalization and attention ----------------------------------------------------------------

QKV = [(2, 3, 6, 8), (2, 3, 7, 8), (2, 3, 7, 8)]
SQUARE = [(2, 3, 6, 8)] * 3
sdpa = F.scaled_dot_product_attention


def _batch_norm(training: bool) -> Callable[..., torch.Tensor]:
    return lambda x, mean, var, w, b: F.batch_norm(x, mean, var, w, b, training, 0.2)


STATISTICS = [(4,), positive(4), (4,), (4,)]
NORMALIZATION = [
    Row("softmax", lambda x: x.softmax(-1), [X]),
    Row("softmax dim 1", lambda x: F.softmax(x, 1), [X]),
    Row("softmax to float32", lambda x: F.softmax(x, -1, dtype=f32), [X]),
    Row(
        "softmax with -inf",
        lambda x, m: x.masked_fill(m, float("-inf")).softmax(-1),
        [(4, 3), tensor([[True, False, False]] * 4, b1)],
    ),
    Row("log_softmax", lambda x: F.log_softmax(x, 1), [X]),
    Row("softmin", lambda x: F.softmin(x, -1), [X]),
    Row("layer_norm", lambda x, w, b: F.layer_norm(x, (5,), w, b), [X, (5,), (5,)]),
    Row("layer_norm plain", lambda x: F.layer_norm(x, (5,)), [X]),
    Row("layer_norm weight only", lambda x, w: F.layer_norm(x, (5,), w), [X, (5,)]),
    Row("layer_norm two dims", lambda x, w, b: F.layer_norm(x, (3, 5), w, b), [X, (3, 5), (3, 5)]),
    Row("layer_norm eps", lambda x, w, b: F.layer_norm(x, (5,), w, b, 0.1), [X, (5,), (5,)]),
    Row("rms_norm", lambda x, w: F.rms_norm(x, (5,), w), [X, (5,)]),
    Row("rms_norm eps", lambda x, w: F.rms_norm(x, (5,), w, 1e-2), [X, (5,)]),
    Row("rms_norm plain", lambda x: F.rms_norm(x, (5,)), [X]),
    Row(
        "rms_norm as llama",
        lambda x, w: w * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype),
        [X, (5,)],
    ),
    Row("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 3, 5), (4,), (4,)]),
    Row("group_norm plain", lambda x: F.group_norm(x, 2), [(2, 4, 3, 5)]),
    Row("instance_norm", lambda x: F.instance_norm(x), [(2, 4, 3, 5)]),
    Row("batch_norm eval", _batch_norm(False), [IMAGE, *STATISTICS]),
    Row("batch_norm eval rank 2", _batch_norm(False), [(6, 4), *STATISTICS]),
    Row("batch_norm eval rank 3", _batch_norm(False), [(6, 4, 5), *STATISTICS]),
    Row("batch_norm eval plain", lambda x, m, v: F.batch_norm(x, m, v), [IMAGE, (4,), positive(4)]),
    Row("batch_norm train", _batch_norm(True), [IMAGE, *STATISTICS], (f32,)),
    Row("batch_norm train rank 2", _batch_norm(True), [(6, 4), *STATISTICS], (f32,)),
    Row("batch_norm train no stats", lambda x: F.batch_norm(x, None, None, training=True), [IMAGE], (f32,)),
]
ATTENTION = [
    Row("sdpa", sdpa, QKV),
    Row("sdpa causal", lambda q, k, v: sdpa(q, k, v, is_causal=True), SQUARE),
    Row("sdpa mask", sdpa, [*QKV, (2, 1, 6, 7)]),
    Row("sdpa mask all heads", sdpa, [*QKV, (2, 3, 6, 7)]),
    Row("sdpa mask rank 2", sdpa, [*QKV, (6, 7)]),
    Row("sdpa boolean mask", sdpa, [*SQUARE, lambda _: torch.ones(6, 6, dtype=b1).tril()]),
    Row("sdpa scale", lambda q, k, v: sdpa(q, k, v, scale=0.3), QKV),
    Row("sdpa rank 3", sdpa, [(3, 6, 8), (3, 7, 8), (3, 7, 8)]),
    Row("sdpa grouped", lambda q, k, v: sdpa(q, k, v, enable_gqa=True), [(2, 4, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8)]),
    Row("sdpa value width", sdpa, [(2, 3, 6, 8), (2, 3, 7, 8), (2, 3, 7, 4)]),
    Row("attention by hand", lambda q, k, v: (q @ k.transpose(-1, -2) / 8**0.5).softmax(-1) @ v, QKV),
    Row("rotary", lambda x, c, s: x * c + torch.cat([-x[..., 4:], x[..., :4]], -1) * s, [(2, 3, 6, 8), (6, 8), (6, 8)]),
]

# Not there yet: each must be refused by the name of its ATen op.
UNSUPPORTED = [
    Row("aten.topk", lambda x: x.topk(3), [(4, 9)]),
    Row("aten.sort", torch.sort, [(4, 9)]),
    Row("aten.scatter_reduce", lambda x, i, v: x.scatter_reduce(1, i, v, "amax"), [(3, 5), index(0, 5, 3, 4), (3, 4)]),
    Row("aten.logcumsumexp", lambda x: x.logcumsumexp(0), [(5,)]),
    Row("aten.avg_pool3d", lambda x: F.avg_pool3d(x, 2), [(1, 2, 4, 4, 4)]),
    Row("aten._adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, 3), [(1, 2, 4, 4, 4)]),
    Row("aten.col2im", lambda x: F.fold(x, (4, 5), (2, 2)), [(2, 12, 12)]),
    Row("aten._fft_r2c", lambda x: torch.fft.rfft(x).abs(), [(8,)]),
    Row("aten.median", torch.median, [(9,)]),
]

FAMILIES = {
    "unary": UNARY,
    "binary": BINARY,
    "casts": CASTS,
    "reductions": REDUCTIONS,
    "matmuls": MATMULS,
    "convolutions": CONVOLUTIONS,
    "pooling": POOLING,
    "movement": MOVEMENT,
    "indexing": INDEXING,
    "creation": CREATION,
    "normalization": NORMALIZATION,
    "attention": ATTENTION,
}
ROWS = list(itertools.chain.from_iterable(FAMILIES.values()))

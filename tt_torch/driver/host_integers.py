"""Ops of StableHLO on integers of 64 bits, which the host computes in NumPy. This imports no compiler.

A function takes the operands of an op and its options, and returns all results. Integers wrap. Where the specification
leaves a value open, it is that of XLA: a quotient by zero has all bits set, and the remainder is the dividend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from tt_torch.errors import InexactError

Array: TypeAlias = np.ndarray[Any, Any]
Ints: TypeAlias = Sequence[int]
KINDS = (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
)  # fmt: skip
DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in KINDS}
COMPARISONS = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
BODIES = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def of_arrays(compute: Callable[..., Array | tuple[Array, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """A function of tensors that computes on their arrays. Its results have memory of their own."""

    @wraps(compute)
    def function(*operands: Tensor, **options: Any) -> tuple[Tensor, ...]:
        with np.errstate(all="ignore"):
            made = compute(*(x.numpy() for x in operands), **options)
        return tuple(torch.from_numpy(np.array(x, order="C")) for x in (made if isinstance(made, tuple) else (made,)))

    return function


def _of_one(compute: np.ufunc) -> Callable[[Array], Array]:
    return lambda x: compute(x)


def _of_two(compute: np.ufunc) -> Callable[[Array, Array], Array]:
    return lambda x, y: compute(x, y)


def _number(x: Array, value: float) -> Any:
    """A number of the type of an array. NumPy 1 makes floats of a uint64 and a number of Python."""
    return x.dtype.type(value)


def _kind(name: str) -> np.dtype[Any]:
    """The dtype of this name in a file. Raises KeyError for others than those of numbers."""
    return np.dtype(str(DTYPES[name]).removeprefix("torch."))


def _remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, _number(y, 1), y)))


def _divide(x: Array, y: Array) -> Array:
    quotient = np.floor_divide(x - _remainder(x, y), np.where(y == 0, _number(y, 1), y))
    return np.where(y == 0, np.invert(np.zeros_like(x)), quotient)


def _power(x: Array, y: Array) -> Array:
    """By squares. Only 1 and -1 have a power with a negative exponent that is not 0."""
    result, square, rest = np.ones_like(x), x, np.maximum(y, _number(y, 0))
    while rest.any():
        result = np.where(rest & _number(y, 1), result * square, result)
        square, rest = square * square, rest >> _number(y, 1)
    units = np.where(np.abs(x) == 1, np.where(y & _number(y, 1), x, np.ones_like(x)), np.zeros_like(x))
    return np.where(y < 0, units, result) if y.dtype.kind == "i" else result


def _signed(x: Array) -> Array:
    return x.view(f"i{x.itemsize}")


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.itemsize}")


def _shift(by: np.ufunc, x: Array, count: Array) -> Array:
    """Shifts zeros in. A count of all bits or more leaves only zeros."""
    bits, count = 8 * x.itemsize, _unsigned(count)
    inside = np.where(count < bits, count, _number(count, 0))
    moved: Array = np.where(count < bits, by(_unsigned(x), inside), _number(_unsigned(x), 0))
    return moved.view(x.dtype)


def _shift_right_arithmetic(x: Array, count: Array) -> Array:
    """The highest bit of an unsigned number is a sign, too."""
    last = _number(_unsigned(count), 8 * x.itemsize - 1)
    return (_signed(x) >> _signed(np.minimum(_unsigned(count), last))).view(x.dtype)


def _bits(x: Array) -> Array:
    """The bits of each element in a last dimension, the highest bit first."""
    return np.unpackbits(x.astype(x.dtype.newbyteorder(">"))[..., None].view(np.uint8), axis=-1)


def _popcnt(x: Array) -> Array:
    return np.asarray(_bits(x).sum(-1)).astype(x.dtype)


def _count_leading_zeros(x: Array) -> Array:
    bits = _bits(x)
    return np.asarray(np.where(bits.any(-1), bits.argmax(-1), bits.shape[-1])).astype(x.dtype)


def _compare(x: Array, y: Array, direction: str) -> Array:
    return COMPARISONS[direction](x, y)


def _bitcast_convert(x: Tensor, dtype: str, shape: Ints) -> tuple[Tensor, ...]:
    """NumPy lacks bfloat16, so PyTorch reads the bits."""
    return (x.reshape(-1).view(DTYPES[dtype]).reshape(shape).clone(),)


def _convert(x: Tensor, dtype: str) -> tuple[Tensor, ...]:
    """Floats beyond the integers of a type become the nearest one, and NaN becomes 0."""
    kind, values = DTYPES[dtype], x.numpy()
    if kind.is_floating_point:
        return (torch.from_numpy(values.astype(np.float64 if kind is torch.float64 else np.float32)).to(kind),)
    if kind is torch.bool:
        return (torch.from_numpy(values != 0),)
    with np.errstate(all="ignore"):
        made = values.astype(dtype)
        if values.dtype.kind == "f":
            limits = np.iinfo(made.dtype)
            made = np.where(values >= 2.0**limits.bits / (1 if limits.min == 0 else 2), _number(made, limits.max), made)
            made = np.where(values <= limits.min, _number(made, limits.min), made)
            made = np.where(np.isnan(values), _number(made, 0), made)
    return (torch.from_numpy(np.array(made)),)


def _constant(data: str, dtype: str, shape: Ints) -> Array:
    """`data` are the bytes of all elements, or of one element for all, as hexadecimal digits."""
    values: Array = np.frombuffer(bytes.fromhex(data), _kind(dtype))
    return np.broadcast_to(values[0], shape) if values.size == 1 else values.reshape(shape)


def _iota(dtype: str, shape: Ints, dim: int) -> Array:
    return np.broadcast_to(
        np.arange(shape[dim]).astype(_kind(dtype)).reshape([-1] + [1] * (len(shape) - dim - 1)), shape
    )


def _broadcast_in_dim(x: Array, shape: Ints, dims: Ints) -> Array:
    sizes = [1] * len(shape)
    for dim, size in zip(dims, x.shape, strict=True):
        sizes[dim] = size
    return np.broadcast_to(x.transpose(np.argsort(np.array(dims, int))).reshape(sizes), shape)


def _slice(x: Array, begins: Ints, ends: Ints, steps: Ints) -> Array:
    return x[tuple(map(slice, begins, ends, steps))]


def pad(x: Array, fill: Array, low: Ints, high: Ints, between: Ints) -> Array:
    sizes = [n + max(0, n - 1) * gap for n, gap in zip(x.shape, between, strict=True)]
    spread = np.full(sizes, fill)
    spread[tuple(slice(None, None, gap + 1) for gap in between)] = x
    larger = np.full([n + max(0, a) + max(0, b) for n, a, b in zip(sizes, low, high, strict=True)], fill)
    larger[tuple(slice(max(0, a), max(0, a) + n) for n, a in zip(sizes, low, strict=True))] = spread
    return larger[tuple(slice(max(0, -a), n - max(0, -b)) for n, a, b in zip(larger.shape, low, high, strict=True))]


def _window(x: Array, starts: Sequence[Array], sizes: Ints) -> tuple[slice, ...]:
    """The part of an array with these sizes. A start outside is moved until the part is inside."""
    begins = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True))


def _dynamic_slice(x: Array, *starts: Array, sizes: Ints) -> Array:
    return x[_window(x, starts, sizes)]


def _dynamic_update_slice(x: Array, update: Array, *starts: Array) -> Array:
    changed: Array = x.copy()
    changed[_window(x, starts, update.shape)] = update
    return changed


def _gather(x: Array, indices: Array, sizes: Ints, **dimensions: Any) -> Array:
    """A window that reaches over an end is moved back inside."""
    limits = [(0, n - size) for n, size in zip(x.shape, sizes, strict=True)]
    starts, inside = _places(indices, x.shape, limits, sizes, **dimensions)
    taken: Array = x[tuple(start + place for start, place in zip(starts, inside, strict=True))]
    return taken


def _scatter(x: Array, indices: Array, updates: Array, body: str, sizes: Ints, **dimensions: Any) -> Array:
    """A window that reaches over an end is dropped. `body` is "" if an update replaces the element."""
    limits = [(-1, n) for n in x.shape]
    starts, inside = _places(indices, x.shape, limits, sizes, **dimensions)
    fits = [(start >= 0) & (start + size <= n) for start, size, n in zip(starts, sizes, x.shape, strict=True)]
    kept = np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(True, *fits)), updates.shape)
    places = [np.broadcast_to(start + place, updates.shape)[kept] for start, place in zip(starts, inside, strict=True)]
    changed: Array = x.copy()
    if body:
        BODIES[body].at(changed, tuple(places), updates[kept])
    else:
        changed[tuple(places)] = updates[kept]
    return changed


def _places(
    indices: Array,
    shape: Ints,
    limits: Sequence[tuple[int, int]],
    sizes: Ints,
    windows: Ints,
    gone: Ints,
    batch: Ints,
    batch_of_indices: Ints,
    dims: Ints,
    vector: int,
) -> tuple[list[Array], list[Array]]:
    """For each dimension of a tensor, where the windows of a gather or scatter start, and the places inside of them.

    `sizes` are those of a window, which lacks the dimensions in `gone`, and has the others as its dimensions `windows`.
    The elements along the dimension `vector` of the indices are starts for the dimensions `dims`. A start beyond its
    `limits` is the nearest of them.
    """
    found = np.moveaxis(indices[..., None] if vector == indices.ndim else indices, vector, -1)
    rank, inner = found.ndim - 1 + len(windows), iter(sorted(windows))
    outer = [i for i in range(rank) if i not in windows]
    starts, inside = [], []
    for dim, (low, high) in enumerate(limits):
        start: Array = np.zeros([1] * rank, np.int64)
        if dim in dims:
            low = low if found.dtype.kind == "i" else 0
            start = np.clip(found[..., list(dims).index(dim)], _number(found, low), _number(found, high))
            start = np.expand_dims(start.astype(np.int64), tuple(sorted(windows)))
        if dim in batch:
            at = batch_of_indices[list(batch).index(dim)]
            start = _along(outer[at - (at > vector)], rank, shape[dim])
        starts.append(start)
        one = np.zeros([1] * rank, np.int64)
        inside.append(one if dim in gone else _along(next(inner), rank, sizes[dim]))
    return starts, inside


def _along(dim: int, rank: int, size: int) -> Array:
    """0, 1, 2 and so on along one dimension."""
    return np.arange(size).reshape([size if i == dim else 1 for i in range(rank)])


def _sort(*operands: Array, dim: int, keys: Sequence[tuple[int, bool]]) -> tuple[Array, ...]:
    """By some of the operands, the first of which decides first. A key has the position of its operand, and whether the
    largest number comes first. The order of equal elements stays."""
    order = np.lexsort([_ranks(operands[i], descending) for i, descending in reversed(keys)], axis=dim)
    return tuple(np.take_along_axis(x, order, dim) for x in operands)


def _top_k(x: Array, k: int) -> tuple[Array, ...]:
    """The largest elements of the last dimension, and their positions. Equal elements keep their order."""
    order = np.argsort(_ranks(x, True), axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


def _ranks(x: Array, descending: bool) -> Array:
    """Integers in the order of some numbers. All zeros are equal, and NaN is the largest float."""
    if x.dtype.kind == "f":
        bits = _signed(np.where(x == 0, _number(x, 0), np.where(np.isnan(x), _number(x, np.nan), x)))
        x = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    return np.invert(x) if descending else x


def _reduce(x: Array, first: Array, body: str, dims: Ints) -> Array:
    return np.asarray(BODIES[body].reduce(x, axis=tuple(dims), dtype=x.dtype, initial=first[()]))


def _reduce_window(
    x: Array, first: Array, body: str, sizes: Ints, steps: Ints, base: Ints, dilations: Ints, low: Ints, high: Ints
) -> Array:
    if not sizes:
        return BODIES[body](x, first)
    found = windows(pad(x, first, low, high, [n - 1 for n in base]), sizes, steps, dilations)
    return _reduce(found, first, body, range(x.ndim, 2 * x.ndim))


def windows(x: Array, sizes: Ints, steps: Ints, dilations: Ints) -> Array:
    """The windows along the last dimensions of an array. Their elements are in as many further dimensions."""
    spans = tuple((n - 1) * d + 1 for n, d in zip(sizes, dilations, strict=True))
    views = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(x.ndim - len(spans), x.ndim)))
    kept = [slice(None)] * (x.ndim - len(spans)) + [slice(None, None, step) for step in (*steps, *dilations)]
    return np.asarray(views[tuple(kept)])


def _convolution(
    x: Array,
    kernel: Array,
    of_x: Ints,
    of_kernel: Ints,
    of_result: Ints,
    steps: Ints,
    base: Ints,
    dilations: Ints,
    low: Ints,
    high: Ints,
    turned: Ints,
    groups: int,
    batches: int,
) -> Array:
    """A convolution of integers. `of_x` and `of_result` are positions of dimensions: first the batch, then the
    features, then the spatial ones. In `of_kernel`, the output features are first, then the input features, then the
    spatial ones."""
    x, kernel = x.transpose(of_x), np.flip(kernel.transpose(of_kernel), tuple(2 + i for i in turned))
    x = pad(x, _number(x, 0), [0, 0, *low], [0, 0, *high], [0, 0, *(n - 1 for n in base)])
    batch, features, *sizes = x.shape
    parts = np.moveaxis(x.reshape(batches, batch // batches, groups, features // groups, *sizes), 2, 1)
    parts = parts.reshape(batches * groups, batch // batches, features // groups, *sizes)
    weights = kernel.reshape(batches * groups, -1, *kernel.shape[1:])
    found = windows(parts, kernel.shape[2:], steps, dilations)
    outer, inner = list(range(4, 4 + len(sizes))), list(range(4 + len(sizes), 4 + 2 * len(sizes)))
    made: Array = np.einsum(found, [0, 1, 2, *outer, *inner], weights, [0, 3, 2, *inner], [1, 0, 3, *outer])
    return np.asarray(made.reshape(len(made), -1, *made.shape[3:]).transpose(np.argsort(of_result)))


def _dot_general(x: Array, y: Array, batch: Sequence[Ints], contracting: Sequence[Ints]) -> Array:
    of_x, of_y = list(range(x.ndim)), list(range(x.ndim, x.ndim + y.ndim))
    for ours, theirs in (*zip(*batch, strict=True), *zip(*contracting, strict=True)):
        of_y[theirs] = of_x[ours]
    first = [of_x[i] for i in batch[0]]
    left = [n for i, n in enumerate(of_x) if i not in (*batch[0], *contracting[0])]
    right = [n for i, n in enumerate(of_y) if i not in (*batch[1], *contracting[1])]
    return np.asarray(np.einsum(x, of_x, y, of_y, [*first, *left, *right]))


def _in_32_bits(x: Tensor, op: str) -> tuple[Tensor, ...]:
    """The integers themselves, for a program of the device. Raises InexactError if they need more than 32 bits."""
    values = x.numpy()
    low, high = (-(2**31), 2**31 - 1) if values.dtype.kind == "i" else (0, 2**32 - 1)
    if values.size and not low <= int(values.min()) <= int(values.max()) <= high:
        what = f"64-bit integers that the node {op} reads leave the device's 32 bits"
        raise InexactError(f"the device would not compute this call exactly: {what}")
    return (x,)


def _nearest(x: Array) -> Array:
    """The nearest integers of 32 bits. As positions in a tensor, they mean the same."""
    low, high = (-(2**31), 2**31 - 1) if x.dtype.kind == "i" else (0, 2**32 - 1)
    return np.clip(x, _number(x, low), _number(x, high))


def _toward_zero(x: Array) -> Array:
    """The float64s as numbers of float32 that are not larger. Raises InexactError for one beyond its range."""
    near = x.astype(np.float32)
    if (np.isinf(near) & np.isfinite(x)).any():
        what = "a float64 that is made of bits is beyond the range of float32"
        raise InexactError(f"the device would not compute this call exactly: {what}")
    cut = np.where((np.abs(near) > np.abs(x)) & np.isfinite(near), np.nextafter(near, np.float32(0)), near)
    return cut.astype(np.float64)


ON_ARRAYS: dict[str, Callable[..., Array | tuple[Array, ...]]] = {
    "abs": _of_one(np.abs), "add": _of_two(np.add), "and": _of_two(np.bitwise_and),
    "broadcast_in_dim": _broadcast_in_dim,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high), "compare": _compare,
    "concatenate": lambda *operands, dim: np.concatenate(operands, dim), "constant": _constant,
    "convolution": _convolution,
    "count_leading_zeros": _count_leading_zeros, "divide": _divide, "dot": _of_two(np.matmul),
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update_slice, "gather": _gather, "iota": _iota,
    "maximum": _of_two(np.maximum), "minimum": _of_two(np.minimum), "multiply": _of_two(np.multiply),
    "negate": _of_one(np.negative), "not": _of_one(np.invert), "optimization_barrier": lambda *operands: operands,
    "or": _of_two(np.bitwise_or), "pad": pad, "popcnt": _popcnt, "power": _power, "reduce": _reduce,
    "reduce_window": _reduce_window, "remainder": _remainder, "reshape": lambda x, shape: x.reshape(shape),
    "reverse": lambda x, dims: np.flip(x, tuple(dims)), "select": lambda chosen, x, y: np.where(chosen, x, y),
    "scatter": _scatter, "shift_left": partial(_shift, np.left_shift),
    "shift_right_arithmetic": _shift_right_arithmetic, "shift_right_logical": partial(_shift, np.right_shift),
    "sign": _of_one(np.sign), "slice": _slice, "sort": _sort, "subtract": _of_two(np.subtract),
    "top_k": _top_k, "toward_zero": _toward_zero,
    "transpose": lambda x, dims: x.transpose(dims), "xor": _of_two(np.bitwise_xor), "nearest": _nearest,
}  # fmt: skip
INTEGER_FUNCTIONS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    **{f"stablehlo.{name}": of_arrays(compute) for name, compute in ON_ARRAYS.items()},
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.convert": _convert,
    "stablehlo.in_32_bits": _in_32_bits,
}

"""Result types of ops, shared by TTIR and TTNN. Each rule takes operand values and attributes by name.

Builders use them to type new ops, and the verifier to check existing ones; they are the shape part of an op's
specification. Types have no layout here; `verify` compares shape and element type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch_mlir import ir

from tt_torch.mlir.types import Attr, Attrs, Infer, Operand, TensorType, Value


def make(dims: Sequence[int], element: ir.Type) -> TensorType:
    return ir.RankedTensorType.get(list(dims), element)


def dims(value: Value) -> list[int]:
    return list(value.type.shape)


def element(value: Value) -> ir.Type:
    return value.type.element_type


def axis(dim: int, rank: int) -> int:
    """A dimension as a number from the front; negative numbers count from the end."""
    if not -rank <= dim < max(rank, 1):
        raise ValueError(f"dimension {dim} is out of range for rank {rank}")
    return dim % rank if rank else 0


def same(x: Value, *_: Value, **__: Attr) -> TensorType:
    return make(dims(x), element(x))


def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """NumPy broadcasting of shapes."""
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(s)) + list(s) for s in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        size = next((s for s in sizes if s != 1), 1)
        if any(s not in (1, size) for s in sizes):
            raise ValueError(f"shapes {', '.join(map(str, map(list, shapes)))} do not broadcast")
        result.append(size)
    return result


def elementwise(*operands: Value, **_: Attr) -> TensorType:
    """The broadcast shape of all operands, with the element type of the first."""
    return make(broadcast_shapes(*map(dims, operands)), element(operands[0]))


def predicate(*operands: Value, **_: Attr) -> TensorType:
    """The type of comparisons and logical ops. They give 0 or 1 in bf16, because the device has no boolean type."""
    return make(broadcast_shapes(*map(dims, operands)), ir.BF16Type.get())


def where(condition: Value, true: Value, false: Value) -> TensorType:
    return make(broadcast_shapes(dims(condition), dims(true), dims(false)), element(true))


def typecast(x: Value, dtype: ir.Type, **_: Attr) -> TensorType:
    return make(dims(x), getattr(dtype, "value", dtype))


def reduced(shape: Sequence[int], axes: Sequence[int] | None, keep_dim: bool) -> list[int]:
    dropped = range(len(shape)) if axes is None else {axis(d, len(shape)) for d in axes}
    if keep_dim:
        return [1 if i in dropped else s for i, s in enumerate(shape)]
    return [s for i, s in enumerate(shape) if i not in dropped]


def reduction(x: Value, dim_arg: Sequence[int] | None, keep_dim: bool) -> TensorType:
    return make(reduced(dims(x), dim_arg, keep_dim), element(x))


def argmax(x: Value, dim_arg: Sequence[int] | None, keep_dim: bool) -> TensorType:
    return make(reduced(dims(x), dim_arg, keep_dim), ir.IntegerType.get_signless(32))


def ordering(x: Value, dim: int, k: int | None = None, **_: Attr) -> list[TensorType]:
    """Sorted values and their positions along `dim`; all of them, or the first `k`."""
    shape, at = dims(x), axis(dim, len(dims(x)))
    if k is not None and not 0 <= k <= shape[at]:
        raise ValueError(f"the first {k} of {shape[at]} elements do not exist")
    shape[at] = shape[at] if k is None else k
    return [make(shape, element(x)), make(shape, ir.IntegerType.get_signless(32))]


def matmul(
    a: Value, b: Value, bias: Value | None = None, transpose_a: bool = False, transpose_b: bool = False, **_: Attr
) -> TensorType:
    """The shape that torch.matmul gives for operands of rank 2 or more. Raises ValueError if the inner sizes differ."""
    left, right = dims(a), dims(b)
    rows, inner = (left[-1], left[-2]) if transpose_a else (left[-2], left[-1])
    inner_b, columns = (right[-1], right[-2]) if transpose_b else (right[-2], right[-1])
    if inner != inner_b:
        raise ValueError(f"inner dimensions {inner} and {inner_b} differ")
    return make([*broadcast_shapes(left[:-2], right[:-2]), rows, columns], element(a))


def reshape(x: Value, shape: Sequence[int]) -> TensorType:
    if math.prod(shape) != math.prod(dims(x)):
        raise ValueError(f"{dims(x)} cannot be reshaped to {list(shape)}")
    return make(shape, element(x))


def permute(x: Value, permutation: Sequence[int], **_: Attr) -> TensorType:
    if sorted(permutation) != list(range(len(dims(x)))):
        raise ValueError(f"{list(permutation)} is no permutation of rank {len(dims(x))}")
    return make([dims(x)[p] for p in permutation], element(x))


def broadcast(x: Value, broadcast_dimensions: Sequence[int]) -> TensorType:
    """Repeats size-1 dimensions: the attribute holds one factor per dimension."""
    return make([s * f for s, f in zip(dims(x), broadcast_dimensions, strict=True)], element(x))


def slice_static(x: Value, begins: Sequence[int], ends: Sequence[int], step: Sequence[int]) -> TensorType:
    for size, b, e in zip(dims(x), begins, ends, strict=True):
        if not 0 <= b <= e <= size:
            raise ValueError(f"slice {b} to {e} is not within size {size}")
    sizes = [max(0, -(-(e - b) // s)) for b, e, s in zip(begins, ends, step, strict=True)]
    return make(sizes, element(x))


def concat(inputs: Sequence[Value], dim: int, **_: Attr) -> TensorType:
    shape, at = dims(inputs[0]), axis(dim, len(dims(inputs[0])))
    for x in inputs:
        if [*dims(x)[:at], *dims(x)[at + 1 :]] != [*shape[:at], *shape[at + 1 :]]:
            raise ValueError(f"{dims(x)} and {shape} differ in more than dimension {at}")
    shape[at] = sum(dims(x)[at] for x in inputs)
    return make(shape, element(inputs[0]))


def pad(x: Value, padding: Sequence[int], **_: Attr) -> TensorType:
    """`padding` holds a pair (low, high) for each dimension, in the order of the dimensions."""
    pairs = zip(padding[::2], padding[1::2], strict=True)
    return make([s + low + high for s, (low, high) in zip(dims(x), pairs, strict=True)], element(x))


def repeat(x: Value, repeat_dims: Sequence[int], **_: Attr) -> TensorType:
    return make([s * f for s, f in zip(dims(x), repeat_dims, strict=True)], element(x))


def embedding(indices: Value, weight: Value, **_: Attr) -> TensorType:
    return make([*dims(indices), dims(weight)[-1]], element(weight))


def gather(x: Value, index: Value, dim: int, **_: Attr) -> TensorType:
    """torch.gather: the shape of the index, with the element type of the input."""
    return make(dims(index), element(x))


def window(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """Positions of a sliding window: 3 for a kernel of 3 over 7 elements with stride 2. `padding` counts both sides.

    The formula comes from torch.nn.MaxPool2d. Callers express ceil mode as padding.
    """
    return (size + padding - dilation * (kernel - 1) - 1) // stride + 1


def conv2d(
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    **attrs: Attr,
) -> TensorType:
    """Images are NHWC, flattened to (1, 1, N*H*W, C). The weight is OIHW. `padding` is top, bottom, left, right."""
    out, kernel = attrs["out_channels"], attrs["kernel_size"]
    height = window(attrs["input_height"], kernel[0], stride[0], padding[0] + padding[1], dilation[0])
    width = window(attrs["input_width"], kernel[1], stride[1], padding[2] + padding[3], dilation[1])
    return make([1, 1, attrs["batch_size"] * height * width, out], element(x))


def transposed_size(
    size: Sequence[int],
    kernel: Sequence[int],
    *,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    **_: Attr,
) -> list[int]:
    """Height and width by the shape formula of torch.nn.ConvTranspose2d. Padding is the same on both sides."""
    spans = zip(size, kernel, stride, padding, output_padding, dilation, strict=True)
    return [(n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, k, s, p, extra, d in spans]


def transposed_image(input_height: int, input_width: int, kernel_size: Sequence[int], **attrs: Attr) -> list[int]:
    """Height and width of the result of a transposed 2D convolution."""
    return transposed_size([input_height, input_width], kernel_size, **attrs)


def conv_transpose2d(x: Value, weight: Value, bias: Value | None = None, **attrs: Attr) -> TensorType:
    """Images are NHWC, flattened to (1, 1, N*H*W, C). The weight is (C, O / groups, KH, KW)."""
    height, width = transposed_image(**attrs)
    return make([1, 1, attrs["batch_size"] * height * width, attrs["out_channels"]], element(x))


def conv3d(
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    **attrs: Attr,
) -> TensorType:
    """Volumes are NDHWC. The weight is (KD * KH * KW * C / groups, O). Padding is the same on both sides."""
    spans = zip(dims(x)[1:4], kernel_size, stride, padding, strict=True)
    return make([dims(x)[0], *(window(n, k, s, 2 * p) for n, k, s, p in spans), attrs["out_channels"]], element(x))


def pool2d(
    x: Value,
    *,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    **attrs: Attr,
) -> TensorType:
    """Images are NHWC, flattened to (1, 1, N*H*W, C). `padding` is top, left, bottom, right."""
    height = window(attrs["input_height"], kernel_size[0], stride[0], padding[0] + padding[2], dilation[0])
    width = window(attrs["input_width"], kernel_size[1], stride[1], padding[1] + padding[3], dilation[1])
    return make([1, 1, attrs["batch_size"] * height * width, attrs["channels"]], element(x))


def pool2d_with_indices(x: Value, **attrs: Attr) -> list[TensorType]:
    pooled = pool2d(x, **attrs)
    return [pooled, make(pooled.shape, ir.IntegerType.get_signless(32))]


def attention(query: Value, key: Value, value: Value, *_: Value, **__: Attr) -> TensorType:
    return make([*dims(query)[:-1], dims(value)[-1]], element(query))


def split_heads(
    x: Value, kv_input: Value | None = None, *, num_heads: int, num_kv_heads: int | None, **_: Attr
) -> list[TensorType]:
    """Splits [B, S, (H + 2 Hkv) D] into a query [B, H, S, D], and a key and a value [B, Hkv, S, D]."""
    batch, length, width = dims(x)
    kv = num_kv_heads or num_heads
    size = width // (num_heads + 2 * kv)
    heads = [num_heads, kv, kv]
    return [make([batch, h, length, size], element(x)) for h in heads]


def concat_heads(x: Value, **_: Attr) -> TensorType:
    batch, heads, length, size = dims(x)
    return make([batch, length, heads * size], element(x))


def all_to_all(x: Value, split_dim: int, concat_dim: int, split_count: int, **_: Attr) -> TensorType:
    sizes = dims(x)
    if sizes[split_dim] % split_count:
        raise ValueError(f"dimension {split_dim} of {sizes} has no {split_count} equal parts")
    sizes[split_dim] //= split_count
    sizes[concat_dim] *= split_count
    return make(sizes, element(x))


def mesh_shard(x: Value, shard_direction: str, shard_shape: Sequence[int], **_: Attr) -> TensorType:
    pairs = list(zip(dims(x), shard_shape, strict=True))
    if shard_direction == "shard_to_full":
        return make([size * count for size, count in pairs], element(x))
    if any(size % count for size, count in pairs):
        raise ValueError(f"{dims(x)} has no {list(shard_shape)} equal parts")
    return make([size // count for size, count in pairs], element(x))


def verify(name: str, rule: Infer, operands: Sequence[Operand], attrs: Attrs, got: Sequence[TensorType]) -> str:
    """Returns "" if an op has the result types that its rule gives, and otherwise a text that says what is wrong."""
    try:
        expected = rule(*operands, **attrs)
    except (ValueError, IndexError) as error:
        return str(error)
    expected = expected if isinstance(expected, list) else [expected]
    plain = [make(t.shape, t.element_type) for t in got]
    if plain == expected:
        return ""
    texts = [", ".join(map(str, types)) for types in (plain, expected)]
    return f"got result {texts[0]}, expected {texts[1]} by its operands and attributes"

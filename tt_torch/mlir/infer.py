"""Result types of ops, shared by TTIR and TTNN. Each rule takes operand values and attributes by name.

Builders use them to type new ops, and the verifier to check existing ones; they are the shape part of an op's
specification. Types have no layout here; `verify` compares shape and element type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torch_mlir import ir

Type = Any  # an ir.RankedTensorType, whose package has no type hints


def make(dims: Sequence[int], element: ir.Type) -> Type:
    return ir.RankedTensorType.get(list(dims), element)


def dims(value: Any) -> list[int]:
    return list(value.type.shape)


def element(value: Any) -> ir.Type:
    return value.type.element_type


def axis(dim: int, rank: int) -> int:
    """A dimension as a number from the front; negative numbers count from the end."""
    if not -rank <= dim < max(rank, 1):
        raise ValueError(f"dimension {dim} is out of range for rank {rank}")
    return dim % rank if rank else 0


def same(x: Any, *_: Any, **__: Any) -> Type:
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


def elementwise(*operands: Any, **_: Any) -> Type:
    """The broadcast shape of all operands, with the element type of the first."""
    return make(broadcast_shapes(*map(dims, operands)), element(operands[0]))


def predicate(*operands: Any, **_: Any) -> Type:
    """Comparisons and logical ops: 0 or 1 in bf16, because the device has no boolean type."""
    return make(broadcast_shapes(*map(dims, operands)), ir.BF16Type.get())


def where(condition: Any, true: Any, false: Any) -> Type:
    return make(broadcast_shapes(dims(condition), dims(true), dims(false)), element(true))


def typecast(x: Any, dtype: ir.Type, **_: Any) -> Type:
    return make(dims(x), getattr(dtype, "value", dtype))


def reduced(shape: Sequence[int], axes: Sequence[int] | None, keep_dim: bool) -> list[int]:
    dropped = range(len(shape)) if axes is None else {axis(d, len(shape)) for d in axes}
    if keep_dim:
        return [1 if i in dropped else s for i, s in enumerate(shape)]
    return [s for i, s in enumerate(shape) if i not in dropped]


def reduction(x: Any, dim_arg: Sequence[int] | None, keep_dim: bool) -> Type:
    return make(reduced(dims(x), dim_arg, keep_dim), element(x))


def argmax(x: Any, dim_arg: Sequence[int] | None, keep_dim: bool) -> Type:
    return make(reduced(dims(x), dim_arg, keep_dim), ir.IntegerType.get_signless(32))


def ordering(x: Any, dim: int, k: int | None = None, **_: Any) -> list[Type]:
    """Sorted values and their positions along `dim`; all of them, or the first `k`."""
    shape, at = dims(x), axis(dim, len(dims(x)))
    if k is not None and not 0 <= k <= shape[at]:
        raise ValueError(f"{k} of {shape[at]} elements")
    shape[at] = shape[at] if k is None else k
    return [make(shape, element(x)), make(shape, ir.IntegerType.get_signless(32))]


def matmul(a: Any, b: Any, bias: Any = None, transpose_a: bool = False, transpose_b: bool = False, **_: Any) -> Type:
    """torch.matmul's shapes for operands of rank 2 and up."""
    left, right = dims(a), dims(b)
    rows, inner = (left[-1], left[-2]) if transpose_a else (left[-2], left[-1])
    inner_b, columns = (right[-1], right[-2]) if transpose_b else (right[-2], right[-1])
    if inner != inner_b:
        raise ValueError(f"inner dimensions {inner} and {inner_b} differ")
    return make([*broadcast_shapes(left[:-2], right[:-2]), rows, columns], element(a))


def reshape(x: Any, shape: Sequence[int]) -> Type:
    if math.prod(shape) != math.prod(dims(x)):
        raise ValueError(f"{dims(x)} cannot be reshaped to {list(shape)}")
    return make(shape, element(x))


def permute(x: Any, permutation: Sequence[int], **_: Any) -> Type:
    if sorted(permutation) != list(range(len(dims(x)))):
        raise ValueError(f"{list(permutation)} is no permutation of rank {len(dims(x))}")
    return make([dims(x)[p] for p in permutation], element(x))


def broadcast(x: Any, broadcast_dimensions: Sequence[int]) -> Type:
    """Repeats size-1 dimensions: the attribute holds one factor per dimension."""
    return make([s * f for s, f in zip(dims(x), broadcast_dimensions, strict=True)], element(x))


def slice_static(x: Any, begins: Sequence[int], ends: Sequence[int], step: Sequence[int]) -> Type:
    for size, b, e in zip(dims(x), begins, ends, strict=True):
        if not 0 <= b <= e <= size:
            raise ValueError(f"slice {b} to {e} is not within size {size}")
    sizes = [max(0, -(-(e - b) // s)) for b, e, s in zip(begins, ends, step, strict=True)]
    return make(sizes, element(x))


def concat(inputs: Sequence[Any], dim: int, **_: Any) -> Type:
    shape, at = dims(inputs[0]), axis(dim, len(dims(inputs[0])))
    for x in inputs:
        if [*dims(x)[:at], *dims(x)[at + 1 :]] != [*shape[:at], *shape[at + 1 :]]:
            raise ValueError(f"{dims(x)} and {shape} differ in more than dimension {at}")
    shape[at] = sum(dims(x)[at] for x in inputs)
    return make(shape, element(inputs[0]))


def pad(x: Any, padding: Sequence[int], **_: Any) -> Type:
    """`padding` holds (low, high) per dimension, first dimension first."""
    pairs = zip(padding[::2], padding[1::2], strict=True)
    return make([s + low + high for s, (low, high) in zip(dims(x), pairs, strict=True)], element(x))


def repeat(x: Any, repeat_dims: Sequence[int], **_: Any) -> Type:
    return make([s * f for s, f in zip(dims(x), repeat_dims, strict=True)], element(x))


def embedding(indices: Any, weight: Any, **_: Any) -> Type:
    return make([*dims(indices), dims(weight)[-1]], element(weight))


def gather(x: Any, index: Any, dim: int, **_: Any) -> Type:
    """torch.gather: the shape of the index, with the element type of the input."""
    return make(dims(index), element(x))


def window(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """Positions of a sliding window. Source: torch.nn.MaxPool2d's shape formula; ceil mode arrives as padding."""
    return (size + padding - dilation * (kernel - 1) - 1) // stride + 1


def conv2d(x: Any, weight: Any, bias: Any = None, *, stride: Any, padding: Any, dilation: Any, **attrs: Any) -> Type:
    """NHWC flattened to (1, 1, N*H*W, C); the weight is OIHW; padding is top, bottom, left, right."""
    out, kernel = attrs["out_channels"], attrs["kernel_size"]
    height = window(attrs["input_height"], kernel[0], stride[0], padding[0] + padding[1], dilation[0])
    width = window(attrs["input_width"], kernel[1], stride[1], padding[2] + padding[3], dilation[1])
    return make([1, 1, attrs["batch_size"] * height * width, out], element(x))


def transposed_size(
    size: Sequence[int], kernel: Any, *, stride: Any, padding: Any, output_padding: Any, dilation: Any, **_: Any
) -> list[int]:
    """Height and width. Source: torch.nn.ConvTranspose2d's shape formula; padding is the same on both sides."""
    spans = zip(size, kernel, stride, padding, output_padding, dilation, strict=True)
    return [(n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, k, s, p, extra, d in spans]


def transposed_image(input_height: int, input_width: int, kernel_size: Any, **attrs: Any) -> list[int]:
    """Height and width of the result of a transposed 2D convolution."""
    return transposed_size([input_height, input_width], kernel_size, **attrs)


def conv_transpose2d(x: Any, weight: Any, bias: Any = None, **attrs: Any) -> Type:
    """NHWC flattened to (1, 1, N*H*W, C); the weight is (C, O / groups, KH, KW)."""
    height, width = transposed_image(**attrs)
    return make([1, 1, attrs["batch_size"] * height * width, attrs["out_channels"]], element(x))


def conv3d(x: Any, weight: Any, bias: Any = None, *, kernel_size: Any, stride: Any, padding: Any, **attrs: Any) -> Type:
    """NDHWC; the weight is (KD * KH * KW * C / groups, O); padding is the same on both sides."""
    spans = zip(dims(x)[1:4], kernel_size, stride, padding, strict=True)
    return make([dims(x)[0], *(window(n, k, s, 2 * p) for n, k, s, p in spans), attrs["out_channels"]], element(x))


def pool2d(x: Any, *, kernel_size: Any, stride: Any, padding: Any, dilation: Any, **attrs: Any) -> Type:
    """NHWC flattened to (1, 1, N*H*W, C); padding is top, left, bottom, right."""
    height = window(attrs["input_height"], kernel_size[0], stride[0], padding[0] + padding[2], dilation[0])
    width = window(attrs["input_width"], kernel_size[1], stride[1], padding[1] + padding[3], dilation[1])
    return make([1, 1, attrs["batch_size"] * height * width, attrs["channels"]], element(x))


def pool2d_with_indices(x: Any, **attrs: Any) -> list[Type]:
    pooled = pool2d(x, **attrs)
    return [pooled, make(pooled.shape, ir.IntegerType.get_signless(32))]


def attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> Type:
    return make([*dims(query)[:-1], dims(value)[-1]], element(query))


def split_heads(x: Any, kv_input: Any = None, *, num_heads: int, num_kv_heads: int | None, **_: Any) -> list[Type]:
    """[B, S, (H + 2 Hkv) D] to query [B, H, S, D] and key, value [B, Hkv, S, D]."""
    batch, length, width = dims(x)
    kv = num_kv_heads or num_heads
    size = width // (num_heads + 2 * kv)
    heads = [num_heads, kv, kv]
    return [make([batch, h, length, size], element(x)) for h in heads]


def concat_heads(x: Any, **_: Any) -> Type:
    batch, heads, length, size = dims(x)
    return make([batch, length, heads * size], element(x))


def verify(
    name: str, rule: Callable[..., Any], operands: Sequence[Any], attrs: dict[str, Any], got: Sequence[Type]
) -> str:
    """An empty text if the types of an op are those of its rule; otherwise what is wrong."""
    try:
        expected = rule(*operands, **attrs)
    except (ValueError, IndexError) as error:
        return str(error)
    expected = expected if isinstance(expected, list) else [expected]
    plain = [make(t.shape, t.element_type) for t in got]
    return "" if plain == expected else f"result {', '.join(map(str, plain))}, expected {', '.join(map(str, expected))}"

"""Programs that Tenstorrent's library takes: each rule is for something that it refuses, or makes in another form.

A rule's docstring quotes the library's message; `python -m tt_torch.tools.workaround_docs` makes
docs/workarounds.md of them. What the library wants of an operand's layout is in the op's declaration (`needs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import main
from tt_torch.mlir.rules import Builder, Rule, RuleSet, infer, shape
from tt_torch.mlir.stablehlo.normalize import retype_function
from tt_torch.mlir.ttnn.from_ttir.creation import number
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout

FLOATS = ("Float32", "BFloat16")
TILE = 32
RULES = RuleSet("workarounds")


@dataclass(frozen=True)
class Workaround:
    """A rule, the ops that it is for, and the library version that needs it."""

    rule: Rule
    ops: tuple[str, ...]
    version: str


ALL: list[Workaround] = []


def workaround(*ops: str, version: str = "0.81.1") -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        ALL.append(Workaround(rule, ops, version))
        return RULES.rewrites(*ops)(rule)

    return register


def apply_workarounds(module: ir.Module) -> None:
    RULES.convert(module)
    with module.context, ir.Location.unknown():
        retype_function(main(module))


def make(b: Builder, name: str, *operands: Any, tiled: bool = True, dtype: str = "", **attributes: Any) -> Any:
    """An op whose result has the inferred shape, by default in tiles and in the data type of the first operand."""
    (kind,) = infer(f"ttnn.{name}", operands, attributes)
    layout = Layout(dtype or layout_of(operands[0]).dtype, tiled)
    return b(f"ttnn.{name}", *operands, type=with_layout(list(kind.shape), layout), **attributes)


def reshape(b: Builder, x: Any, sizes: list[int]) -> Any:
    return x if shape(x) == sizes else make(b, "reshape", x, shape=sizes)


def typecast(b: Builder, x: Any, dtype: str, tiled: bool = True) -> Any:
    return b("ttnn.typecast", x, type=with_layout(shape(x), Layout(dtype, tiled)))


def full(b: Builder, value: float | int, dtype: str, sizes: list[int] | None = None) -> Any:
    return b("ttnn.full", type=with_layout(sizes or [1], Layout(dtype)), fill_value=number(value))


def slices(b: Builder, x: Any, dim: int, begin: int, end: int) -> Any:
    """Elements `begin` to `end` of a dimension."""
    sizes = shape(x)
    bounds = {"begins": [0] * len(sizes), "ends": list(sizes)}
    bounds["begins"][dim], bounds["ends"][dim] = begin, end
    sizes[dim] = end - begin
    kind = with_layout(sizes, Layout(layout_of(x).dtype))
    return b("ttnn.slice_static", x, type=kind, step=[1] * len(sizes), params={"SliceStaticOpParams": bounds})


def is_float(value: Any) -> bool:
    return layout_of(value).dtype in FLOATS


# --- results in another form -----------------------------------------------------------------------


@workaround("ttnn.argmax")
def argmax_of_integers_and_its_result(op: Any, b: Builder) -> Any:
    """Indices come as UINT32 in row-major layout. Of integers only the last dimension is searched:

    "Only BFLOAT16, FLOAT32 are supported for inputs with TILE layout, got DataType::INT32"
    "ROW_MAJOR: only argmax on the last dim is supported"
    """
    (x,), dim, keep = op.operands, ods.attr(op, "dim"), ods.attr(op, "keep_dim")
    rank = len(shape(x))
    if layout_of(op.results[0]).dtype == "UInt32":
        return None
    last = rank - 1
    if not is_float(x) and dim % rank != last:
        order = [d for d in range(rank) if d != dim % rank] + [dim % rank]
        x = make(b, "permute", x, permutation=order)
        found = _argmax(b, x, last, False)
        return reshape(b, found, shape(op.results[0]))
    return _argmax(b, x, dim, keep)


def _argmax(b: Builder, x: Any, dim: int, keep: bool) -> Any:
    sizes = shape(x)
    sizes[dim : dim + 1 or None] = [1] if keep else []
    indices = b("ttnn.argmax", x, type=with_layout(sizes, Layout("UInt32", False)), dim=dim, keep_dim=keep)
    return typecast(b, indices, "Int32", tiled=False)


@workaround("ttnn.typecast")
def conversion_of_bytes(op: Any, b: Builder) -> Any:
    """Bytes of an input are converted before they become tiles:

    "Can only tilize bfloat16/float32 or int32/uint32/uint16 or fp8_e4m3 tensors"
    """
    (x,) = op.operands
    if layout_of(x).dtype != "UInt8" or layout_of(x).tiled or not layout_of(op.results[0]).tiled:
        return None
    return typecast(b, x, layout_of(op.results[0]).dtype, tiled=False)


@workaround("ttnn.sort", "ttnn.topk")
def indices_of_orderings(op: Any, b: Builder) -> Any:
    """Positions come as UINT16, for long dimensions as UINT32. Integers are not ordered, so they are halved: sorted
    by their lower 16 bits, then, keeping that order among equals, by the upper ones.

    "Input tensor data type must be BFLOAT16, UINT16, or FLOAT32, got DataType::INT32"
    "Input tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32, got: DataType::INT32"
    """
    (x,), a = op.operands, ods.attrs_of(op)
    if layout_of(op.results[1]).dtype != "Int32":
        return None
    if is_float(x):
        values, indices = _ordered(b, op.operation.name, x, shape(op.results[0]), a)
        return [values, typecast(b, indices, "Int32")]
    descending = a["descending" if "descending" in a else "largest"]
    order = _order_of_integers(b, x, a["dim"], descending)
    order = slices(b, order, a["dim"], 0, shape(op.results[0])[a["dim"]])
    return [make(b, "gather", x, order, dim=a["dim"]), order]


def _ordered(b: Builder, name: str, x: Any, sizes: list[int], attributes: dict[str, Any]) -> Any:
    longest = shape(x)[attributes["dim"]]
    rounded = 1 << (longest - 1).bit_length() if name == "ttnn.sort" else -(-longest // TILE) * TILE
    index = "UInt16" if max(rounded, 2 * TILE) < 1 << 16 else "UInt32"
    types = [with_layout(sizes, Layout(dtype)) for dtype in (layout_of(x).dtype, index)]
    return b(name, x, type=types, **attributes)


def _order_of_integers(b: Builder, x: Any, dim: int, descending: bool) -> Any:
    attributes = {"dim": dim, "descending": descending, "stable": True}
    low = make(b, "bitwise_and", x, full(b, 0xFFFF, "Int32"))
    high = typecast(b, make(b, "subtract", x, low), "Float32")  # exact: multiples of 2**16
    _, first = _ordered(b, "ttnn.sort", typecast(b, low, "Float32"), shape(x), attributes)
    first = typecast(b, first, "Int32")
    _, second = _ordered(b, "ttnn.sort", make(b, "gather", high, first, dim=dim), shape(x), attributes)
    return make(b, "gather", first, typecast(b, second, "Int32"), dim=dim)


@workaround("ttnn.pad")
def padding_in_front(op: Any, b: Builder) -> Any:
    """Rows are padded at their beginning in row-major layout:

    "ttnn.pad: on device tile padding does not support front padding"
    """
    if not any(ods.attr(op, "padding")[::2]) or not layout_of(op.results[0]).tiled:
        return None
    return make(b, "pad", *op.operands, tiled=False, **ods.attrs_of(op))


@workaround("ttnn.scatter")
def scatter_of_float32(op: Any, b: Builder) -> Any:
    """float32 is scattered in row-major layout:

    "Scatter doesn't work for fp32 tiled tensors yet"
    """
    if layout_of(op.results[0]) != Layout("Float32"):
        return None
    return make(b, "scatter", *op.operands, tiled=False, **ods.attrs_of(op))


# --- ops for fewer data types than ours ----------------------------------------------------------------


@workaround("ttnn.embedding")
def embedding_of_other_types_than_bfloat16(op: Any, b: Builder) -> Any:
    """Rows of a table that is not bfloat16 are gathered element by element, which is exact:

    "Weights tensor must have BFLOAT16 dtype"
    """
    indices, table = op.operands
    if layout_of(table).dtype == "BFloat16":
        return None
    width, count = shape(table)[-1], math.prod(shape(indices))
    table = reshape(b, table, [math.prod(shape(table)[:-1]), width])
    columns = reshape(b, indices, [count, 1])
    if width > 1:
        columns = make(b, "repeat", columns, repeat_dims=[1, width])
    rows = make(b, "gather", table, columns, dim=0)
    return reshape(b, rows, shape(op.results[0]))


@workaround("ttnn.matmul")
def products_of_integer_matrices(op: Any, b: Builder) -> Any:
    """Integers are multiplied element by element and summed:

    "Unsupported data format for input A: DataType::INT32"
    """
    left, right = op.operands
    if is_float(left):
        return None
    left = _transposed(b, left) if ods.attr(op, "transpose_a") else left
    right = _transposed(b, right) if ods.attr(op, "transpose_b") else right
    left = reshape(b, left, [*shape(left), 1])
    right = reshape(b, right, [*shape(right)[:-2], 1, *shape(right)[-2:]])
    product = make(b, "multiply", left, right)
    return make(b, "sum", product, dim_arg=[len(shape(product)) - 2], keep_dim=False)


def _transposed(b: Builder, x: Any) -> Any:
    *outer, rows, columns = range(len(shape(x)))
    return make(b, "permute", x, permutation=[*outer, columns, rows])


@workaround("ttnn.prod")
def products_of_integers(op: Any, b: Builder) -> Any:
    """Integers are multiplied half by half:

    "Error - unsupported data type for prod, expected BFLOAT16, FLOAT32 or BFLOAT8_B but got DataType::INT32"
    """
    (x,), dim = op.operands, ods.attr(op, "dim_arg")
    if is_float(x):
        return None
    while (size := shape(x)[dim]) > 1:
        half = size // 2
        product = make(b, "multiply", slices(b, x, dim, 0, half), slices(b, x, dim, half, 2 * half))
        rest = [slices(b, x, dim, 2 * half, size)] if size % 2 else []
        x = make(b, "concat", [product, *rest], dim=dim, dtype=layout_of(product).dtype) if rest else product
    return reshape(b, x, shape(op.results[0]))


@workaround("ttnn.avg_pool2d")
def averages_of_float32(op: Any, b: Builder) -> Any:
    """float32 is averaged by a convolution of each channel with equal weights:

    "Only BFLOAT16 supported for now"
    """
    (x,), a = op.operands, ods.attrs_of(op)
    if layout_of(x).dtype != "Float32":
        return None
    channels, kernel = a["channels"], a["kernel_size"]
    top, left, bottom, right = a["padding"] if len(a["padding"]) == 4 else a["padding"] * 2
    geometry = {k: a[k] for k in ("batch_size", "input_height", "input_width", "kernel_size", "stride", "dilation")}
    geometry |= {"in_channels": channels, "out_channels": channels, "groups": channels}
    geometry["padding"] = [top, bottom, left, right]
    whole = a["extra_params"]["AvgPool2dExtraParams"]["count_include_pad"] or not any(a["padding"])
    weight = full(b, 1 / math.prod(kernel) if whole else 1.0, "Float32", [channels, 1, *kernel])
    total = b("ttnn.conv2d", x, weight, None, type=op.results[0].type, conv2d_config=None, **geometry)
    if whole:
        return total
    ones = full(b, 1.0, "Float32", shape(x))
    counts = b("ttnn.conv2d", ones, weight, None, type=op.results[0].type, conv2d_config=None, **geometry)
    return make(b, "divide", total, counts)


# --- attention -----------------------------------------------------------------------------------------


@workaround("ttnn.scaled_dot_product_attention")
def attention_in_steps(op: Any, b: Builder) -> Any:
    """Attention that the fused op does not take is a product, a softmax and a product:

    "Data type of input tensor must be BFLOAT16, BFLOAT8_B, or BFLOAT4_B and is DataType::FLOAT32"
    "Padding is not supported on the head_dim dimension"
    "Mask batch dim must either be 1 (to be broadcasted across all batches) or must match Q batch dimension"
    """
    query, key, value, mask = ods.operands_of(op).values()
    sizes = [shape(query)[-1], shape(value)[-1]]
    fits = layout_of(query).dtype == "BFloat16" and all(s % TILE == 0 for s in sizes) and sizes[0] == sizes[1]
    if fits and (mask is None or shape(mask)[0] in (1, shape(query)[0])):
        return None
    key, value = (_all_heads(b, x, shape(query)[1]) for x in (key, value))
    scale = ods.attr(op, "scale")
    factor = full(b, sizes[0] ** -0.5 if scale is None else scale, layout_of(query).dtype)
    query = make(b, "multiply", query, factor)
    scores = make(b, "matmul", query, key, transpose_a=False, transpose_b=True)
    if ods.attr(op, "is_causal"):
        mask = _causal_mask(b, shape(scores)[-2], shape(scores)[-1], layout_of(query).dtype)
    if mask is not None:
        scores = make(b, "add", scores, mask)
    weights = make(b, "softmax", scores, dimension=3, numeric_stable=True)
    return make(b, "matmul", weights, value, transpose_a=False, transpose_b=False)


def _all_heads(b: Builder, x: Any, heads: int) -> Any:
    """Each of fewer heads as often as there are heads of the query for it."""
    batch, own, length, size = shape(x)
    if own == heads:
        return x
    apart = reshape(b, x, [batch * own, 1, length, size])
    repeated = make(b, "repeat", apart, repeat_dims=[1, heads // own, 1, 1])
    return reshape(b, repeated, [batch, heads, length, size])


def _causal_mask(b: Builder, rows: int, columns: int, dtype: str) -> Any:
    """0 where a row may see a column, else -inf."""
    down = reshape(b, _count(b, rows), [rows, 1])
    across = reshape(b, _count(b, columns), [1, columns])
    sees = make(b, "ge", down, across, dtype="BFloat16")
    zero, never = full(b, 0.0, dtype), full(b, -math.inf, dtype)
    return make(b, "where", sees, zero, never, dtype=dtype)


def _count(b: Builder, length: int) -> Any:
    kind = with_layout([length], Layout("Float32", tiled=False))
    return b("ttnn.arange", type=kind, start=0.0, end=float(length), step=1.0)

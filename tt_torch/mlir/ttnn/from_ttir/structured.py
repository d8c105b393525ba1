"""Ops whose attributes have another form on the wire: records, unions and reordered fields."""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.rules import Builder, dtype, infer, shape
from tt_torch.mlir.ttnn.from_ttir.creation import filled, number
from tt_torch.mlir.ttnn.from_ttir.registry import RULES
from tt_torch.mlir.ttnn.from_ttir.types import result_types
from tt_torch.mlir.ttnn.layout import Layout, wire_dtype, with_layout
from tt_torch.mlir.types import Attr, Op, Value


def _make(name: str, op: Op, b: Builder, *operands: Value | None, **attributes: Attr) -> Value:
    return b(name, *operands, type=result_types(name, op.results), **attributes)


def _bound(value: float, element: ir.Type) -> float | int:
    """A bound for integers, clamped to int32, which is the only integer type of the wire's union."""
    if str(element) in ("f32", "bf16"):
        return value
    return int(max(-(2**31), min(value, 2**31 - 1)))


@RULES.rewrites("ttir.clamp_scalar")
def clamp_scalar(op: Op, b: Builder) -> Value:
    bounds = {side: number(_bound(ods.attr(op, side), dtype(op.results[0]))) for side in ("min", "max")}
    return _make("ttnn.clamp_scalar", op, b, *op.operands, params={"ClampScalarOpParams": bounds})


@RULES.rewrites("ttir.leaky_relu")
def leaky_relu(op: Op, b: Builder) -> Value:
    slope = {"EltwiseOpWithFloatParams": {"parameter": ods.attr(op, "parameter")}}
    return _make("ttnn.leaky_relu", op, b, *op.operands, params=slope)


@RULES.rewrites("ttir.gelu_tanh")
def gelu_tanh(op: Op, b: Builder) -> Value:
    """TTNN has the approximation with tanh only as an activation of `linear`; its gelu is the exact one.

    (1 + tanh(z)) / 2 is sigmoid(2 * z), with z = sqrt(2 / pi) * (x + 0.044715 * x ** 3).
    """
    (x,), twice = op.operands, 2 * math.sqrt(2 / math.pi)
    scalar = with_layout([1] * len(shape(x)), Layout(wire_dtype(str(dtype(x)))))
    slope, cubic = (filled(b, scalar, value) for value in (twice, 0.044715 * twice))
    square = _make("ttnn.multiply", op, b, _make("ttnn.multiply", op, b, x, x), cubic)
    inner = _make("ttnn.multiply", op, b, _make("ttnn.add", op, b, square, slope), x)
    return _make("ttnn.multiply", op, b, _make("ttnn.sigmoid", op, b, inner), x)


@RULES.rewrites("ttir.prod")
def prod(op: Op, b: Builder) -> Value:
    """TTNN's prod reduces one dimension, so several dimensions become a chain of ops from the last to the first."""
    (x,), keep, sizes = op.operands, ods.attr(op, "keep_dim"), shape(op.operands[0])
    layout = Layout(wire_dtype(str(dtype(op.results[0]))))
    for dim in sorted(d % len(sizes) for d in ods.attr(op, "dim_arg"))[::-1]:
        sizes[dim : dim + 1] = [1] if keep else []
        x = b("ttnn.prod", x, type=with_layout(sizes, layout), dim_arg=dim, keep_dim=keep)
    return x


@RULES.rewrites("ttir.update_cache", "ttir.paged_update_cache", "ttir.paged_fill_cache")
def update_cache(op: Op, b: Builder) -> Value:
    """The device changes the cache itself, which update_states.py allows only where nothing reads the old values."""
    name = op.operation.name.replace("ttir.", "ttnn.")
    b(name, *ods.operands_of(op).values(), type=[], **ods.attrs_of(op))
    return op.operands[0]


@RULES.rewrites("ttir.collective_permute")
def collective_permute(op: Op, b: Builder) -> Value:
    """The transfers run one after the other. The first one makes a new tensor, and each other one writes into it. The
    zeros of a chip without a sender are copied within the chip, because other programs read the zeros, too."""
    (x,), pairs = op.operands, ods.attr(op, "source_target_pairs")
    (kind,) = result_types("ttnn.point_to_point", op.results)
    zero = 0.0 if str(dtype(x)) in ("f32", "bf16") else 0
    without = sorted(set(range(math.prod(mesh_of(op)))) - set(pairs[1::2]))
    zeros = b("ttnn.full", type=kind, fill_value=number(zero)) if without else None
    transfers = [(x, *pair) for pair in zip(pairs[::2], pairs[1::2], strict=True)]
    received = None
    for value, sender, receiver in transfers + [(zeros, chip, chip) for chip in without]:
        received = _sent(op, b, value, received, sender, receiver)
    return received


def _sent(op: Op, b: Builder, x: Value, received: Value | None, sender: int, receiver: int) -> Value:
    """The library sends along a row or a column. Between chips that share neither, a value is sent in two steps."""
    _, columns = mesh_of(op)
    (row, column), (last_row, last_column) = divmod(sender, columns), divmod(receiver, columns)
    if row != last_row and column != last_column:
        x, column = _sent(op, b, x, None, sender, row * columns + last_column), last_column
    places = {"sender_coord": [row, column], "receiver_coord": [last_row, last_column]}
    return b("ttnn.point_to_point", x, received, type=result_types("ttnn.point_to_point", op.results)[0], **places)


@RULES.rewrites("ttir.fill_cache")
def fill_cache(op: Op, b: Builder) -> Value:
    """The library fills the cache of one user at a time."""
    (cache, x), first = op.operands, ods.attr(op, "batch_offset")
    kind, (users, *size) = Layout(wire_dtype(str(dtype(x)))), shape(x)
    for user in range(users):
        bounds = {"SliceStaticOpParams": {"begins": [user, 0, 0, 0], "ends": [user + 1, *size]}}
        one = b("ttnn.slice_static", x, type=with_layout([1, *size], kind), step=[1] * 4, params=bounds)
        b("ttnn.fill_cache", cache, one if users > 1 else x, type=[], batch_offset=first + user)
    return cache


@RULES.rewrites("ttir.argmax")
def argmax(op: Op, b: Builder) -> Value:
    (dim,) = ods.attr(op, "dim_arg")
    return _make("ttnn.argmax", op, b, *op.operands, dim=dim, keep_dim=ods.attr(op, "keep_dim"))


@RULES.rewrites("ttir.slice_static")
def slice_static(op: Op, b: Builder) -> Value:
    bounds = {"begins": ods.attr(op, "begins"), "ends": ods.attr(op, "ends")}
    return _make(
        "ttnn.slice_static", op, b, *op.operands, step=ods.attr(op, "step"), params={"SliceStaticOpParams": bounds}
    )


@RULES.rewrites("ttir.pad")
def pad(op: Op, b: Builder) -> Value:
    return _make("ttnn.pad", op, b, *op.operands, **ods.attrs_of(op))


@RULES.rewrites("ttir.broadcast")
def broadcast(op: Op, b: Builder) -> Value:
    return _make("ttnn.repeat", op, b, *op.operands, repeat_dims=ods.attr(op, "broadcast_dimensions"))


@RULES.rewrites("ttir.conv2d")
def conv2d(op: Op, b: Builder) -> Value | None:
    attributes = ods.attrs_of(op)
    activation = attributes.pop("activation")
    config = {"activation": {"op_type": activation.capitalize(), "params": []}} if activation else None
    operands = ods.operands_of(op)
    if operands["bias"] is not None and len(shape(operands["bias"])) != 4:
        return None
    return _make("ttnn.conv2d", op, b, *operands.values(), conv2d_config=config, **attributes)


@RULES.rewrites("ttir.max_pool2d")
def max_pool2d(op: Op, b: Builder) -> Value:
    return _make("ttnn.max_pool2d", op, b, *op.operands, extra_params={"MaxPool2dExtraParams": {}}, **ods.attrs_of(op))


@RULES.rewrites("ttir.avg_pool2d")
def avg_pool2d(op: Op, b: Builder) -> Value:
    extra = {"AvgPool2dExtraParams": {"count_include_pad": True}}
    return _make("ttnn.avg_pool2d", op, b, *op.operands, extra_params=extra, **ods.attrs_of(op))


@RULES.rewrites("ttir.rotary_embedding")
def rotary_embedding(op: Op, b: Builder) -> Value:
    """The library rounds rows up to whole tiles, also in the shape, so the rows of the operand are sliced out."""
    kind, sizes = Layout(wire_dtype(str(dtype(op.results[0])))), shape(op.results[0])
    (whole,) = infer("ttnn.rotary_embedding", op.operands, {})
    turned = b("ttnn.rotary_embedding", *op.operands, type=with_layout(list(whole.shape), kind))
    if shape(turned) == sizes:
        return turned
    bounds = {"SliceStaticOpParams": {"begins": [0] * 4, "ends": sizes}}
    return _make("ttnn.slice_static", op, b, turned, step=[1] * 4, params=bounds)

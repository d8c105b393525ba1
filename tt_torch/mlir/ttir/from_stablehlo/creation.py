"""Constants and sequences. A constant of one value is a `ttir.full`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, producer, shape, tensor, users
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES, unsupported
from tt_torch.mlir.types import Op, Value
from tt_torch.wire import bfloat16

# Integers up to this size are exact in float32, which is the type of some attributes.
EXACT = 2**24


def full(b: Builder, dims: Sequence[int], element: ir.Type, value: float | int) -> Value:
    """A `ttir.full` whose attribute is an integer or a float, like the element type."""
    is_int = isinstance(element, ir.IntegerType)
    return b(
        "ttir.full", type=tensor(dims, element), shape=list(dims), fill_value=int(value) if is_int else float(value)
    )


def as_element(value: float | int, element: ir.Type) -> float | int | None:
    """The number that an element of this type has after a conversion; None for an integer that does not fit."""
    if isinstance(element, ir.IntegerType):
        lowest = 0 if element.is_unsigned else -(2 ** (element.width - 1))
        fits = lowest <= value < lowest + 2**element.width  # false for NaN
        return math.trunc(value) if fits else None
    with np.errstate(over="ignore"):
        number = np.float32(value)
    return bfloat16.rounded(number) if isinstance(element, ir.BF16Type) else number.item()


def splat_of(value: Value) -> float | None:
    """The value of a `ttir.full`, also behind broadcasts, reshapes and casts; otherwise None. A constant with equal
    elements is a full before its users are converted. torch-mlir casts scalars from f64 and i64."""
    op = producer(value, "ttir.full", "ttir.broadcast", "ttir.reshape", "ttir.typecast")
    if op is None:
        return None
    if op.name == "ttir.full":
        return op.attributes["fill_value"].value
    inner = splat_of(op.operands[0])
    return inner if inner is None or op.name != "ttir.typecast" else as_element(inner, dtype(value))


@RULES.rewrites("stablehlo.constant", "chlo.constant", "arith.constant")
def constant(op: Op, b: Builder) -> Value | None:
    result, value = op.results[0], op.operation.attributes["value"]
    if not isinstance(result.type, ir.RankedTensorType) or isinstance(dtype(result), ir.IndexType):
        return None  # a size in a shape computation of torch-mlir
    single = attrs.splat(value)
    values = attrs.elements(value) if single is None else np.array(single)
    if limits := RANGES.get(str(dtype(result))):
        inside = np.clip(values, *limits)
        if not np.array_equal(inside, values) and not _saturates(result):
            raise unsupported(op, accepted="integers of 32 bits, and larger bounds")
        values = inside
    if single is not None:
        return full(b, shape(result), dtype(result), values.item())
    return b("ttir.constant", type=result.type, value=elements(values, result.type))


RANGES = {"i32": (-(2**31), 2**31 - 1), "ui32": (0, 2**32 - 1)}
# These ops use a bound beyond 32 bits like the largest or smallest integer, for example as "to the end".
SATURATING = ("maximum", "minimum", "clamp", "reduce", "reduce_window", "dynamic_slice", "dynamic_update_slice")
MOVING = ("reshape", "broadcast_in_dim", "convert")


def _saturates(value: Value) -> bool:
    """Whether each reader of an integer uses a bound beyond 32 bits like the largest or smallest integer, or only asks
    whether the integer is zero."""
    for reader in users(value):
        name = reader.name.removeprefix("chlo.broadcast_").rpartition(".")[2]
        moved = name in MOVING and dtype(reader.results[0]) == dtype(value) and _saturates(reader.results[0])
        if name not in SATURATING and not moved and "tt.to_bool" not in reader.attributes:
            return False
    return True


def elements(values: np.ndarray, kind: ir.RankedTensorType) -> ir.Attribute:
    """A dense attribute of the device's element type. Booleans are in bf16, too."""
    name = str(kind.element_type)
    if name == "bf16":
        return ir.Attribute.parse(f'dense<"0x{bfloat16.halves(values).tobytes().hex()}"> : {kind}')
    target = {"f32": np.float32, "i32": np.int32, "ui32": np.uint32, "ui8": np.uint8}[name]
    return ir.DenseElementsAttr.get(np.ascontiguousarray(values.astype(target)), type=kind)


@RULES.rewrites("stablehlo.get_dimension_size")
def get_dimension_size(op: Op, b: Builder) -> Value:
    return full(b, [], dtype(op.results[0]), shape(op.operands[0])[attrs.integer(op, "dimension")])


@RULES.rewrites("tensor.empty")
def empty(op: Op, b: Builder) -> Value:
    """A tensor whose elements the program overwrites or does not care about."""
    return full(b, shape(op.results[0]), dtype(op.results[0]), 0)


@RULES.rewrites("stablehlo.iota", "stablehlo.dynamic_iota")
def iota(op: Op, b: Builder) -> Value:
    """The shape comes from the result type, because torch-mlir writes a dynamic_iota for a static arange."""
    result, dim = op.results[0], attrs.integer(op, "iota_dimension")
    end, bytes_ = shape(result)[dim], str(dtype(result)) == "ui8"  # TTNN does not count in bytes
    kind = tensor(shape(result), ir.IntegerType.get_signless(32)) if bytes_ else result.type
    counted = b("ttir.arange", type=kind, start=0, end=end, step=1, arange_dimension=dim)
    return b("ttir.typecast", counted, dtype=dtype(result)) if bytes_ else counted

"""Constants and sequences."""

from __future__ import annotations

from ctypes import c_float

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttnn.from_ttir.registry import RULES
from tt_torch.mlir.ttnn.from_ttir.types import result_types
from tt_torch.mlir.ttnn.layout import Layout, wire_dtype, with_layout
from tt_torch.mlir.types import Attrs, Op, TensorType, Value


def number(value: float | int) -> Attrs:
    """A number as a value of the wire's union NumberType. Its floats are float32, in which 1e300 is infinite."""
    if isinstance(value, int):
        return {"I32": {"value": value}}
    return {"FP": {"value": value if abs(value) < 2**31 else c_float(value).value}}


def filled(b: Builder, kind: TensorType, value: float | int) -> Value:
    """A tensor of one value. The wire's integers have a sign, so a uint32 from 2^31 on is given as bits of an int32."""
    if isinstance(value, int) and value > 2**31 - 1:
        bits = b("ttnn.full", type=with_layout(list(kind.shape), Layout("Int32")), fill_value=number(value - 2**32))
        return b("ttnn.bitcast_convert", bits, type=kind)
    return b("ttnn.full", type=kind, fill_value=number(value))


@RULES.rewrites("ttir.full")
def full(op: Op, b: Builder) -> Value:
    return filled(b, result_types("ttnn.full", op.results)[0], ods.attr(op, "fill_value"))


@RULES.rewrites("ttir.rand")
def rand(op: Op, b: Builder) -> Value:
    """With the seed zero, the library takes another seed at each run."""
    return b("ttnn.rand", type=result_types("ttnn.rand", op.results), seed=0, **ods.attrs_of(op))


@RULES.rewrites("ttir.constant")
def constant(op: Op, b: Builder) -> Value:
    value = op.operation.attributes["value"]
    return b("ttnn.constant", type=result_types("ttnn.constant", op.results), input=value)


@RULES.rewrites("ttir.arange")
def arange(op: Op, b: Builder) -> Value:
    """A vector, which reshape and repeat bring to the shape of the result."""
    (result,), a = op.results, ods.attrs_of(op)
    length, dim = shape(result)[a["arange_dimension"]], a["arange_dimension"]
    kind = tensor([length], dtype(result))
    layout = Layout(wire_dtype(str(kind.element_type)), tiled=False)
    vector = b("ttnn.arange", type=with_layout([length], layout), start=a["start"], end=a["end"], step=a["step"])
    if shape(result) == [length]:
        return vector
    spread = [length if d == dim else 1 for d in range(len(shape(result)))]
    tiled = Layout(layout.dtype)
    spread_out = b("ttnn.reshape", vector, type=with_layout(spread, tiled), shape=spread)
    factors = [1 if d == dim else size for d, size in enumerate(shape(result))]
    if all(f == 1 for f in factors):
        return spread_out
    return b("ttnn.repeat", spread_out, type=with_layout(shape(result), tiled), repeat_dims=factors)

"""Creates StableHLO ops at the current insertion point and location; the binding has no classes for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch_mlir import ir


def make(name: str, kind: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    """The result of `stablehlo.<name>`."""
    return ir.Operation.create(f"stablehlo.{name}", [kind], list(operands), attributes).results[0]


def again(
    op: ir.Operation, operands: Sequence[ir.Value], kinds: Sequence[ir.Type], **more: ir.Attribute
) -> list[ir.Value]:
    """The results of the same op with other operands; they have the types `kinds`. `more` are extra attributes."""
    attributes = {name: op.attributes[name] for name in op.attributes} | more
    return list(ir.Operation.create(op.name, list(kinds), list(operands), attributes).results)


def constant(kind: ir.RankedTensorType, values: np.ndarray) -> ir.Value:
    """A constant of the type, with the elements of an array."""
    return make("constant", kind, value=ir.DenseElementsAttr.get(np.ascontiguousarray(values), type=kind))


def zeros(kind: ir.RankedTensorType) -> ir.Value:
    """Zeros of a type of floats or complex numbers."""
    if isinstance(kind.element_type, ir.ComplexType):
        part = zeros(ir.RankedTensorType.get(kind.shape, kind.element_type.element_type))
        return make("complex", kind, part, part)
    return make("constant", kind, value=ir.Attribute.parse(f"dense<0.0> : {kind}"))


def compared(direction: str, x: ir.Value, y: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType.get(x.type.shape, ir.IntegerType.get_signless(1))
    attribute = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
    return make("compare", kind, x, y, comparison_direction=attribute)


def sliced(x: ir.Value, begins: Sequence[int], ends: Sequence[int], strides: Sequence[int] | None = None) -> ir.Value:
    steps = strides or [1] * len(ends)
    sizes = [max(0, -((b - e) // s)) for b, e, s in zip(begins, ends, steps, strict=True)]
    kind = ir.RankedTensorType.get(sizes, x.type.element_type)
    spans = {"start_indices": begins, "limit_indices": ends, "strides": steps}
    return make("slice", kind, x, **{name: ir.DenseI64ArrayAttr.get(list(span)) for name, span in spans.items()})


def padded(
    x: ir.Value, fill: ir.Value, low: Sequence[int], high: Sequence[int], between: Sequence[int] | None = None
) -> ir.Value:
    """Adds elements at the ends of each dimension, and `between` each two elements. Negative numbers take some away."""
    between = between or [0] * len(low)
    if not any((*low, *high, *between)):
        return x
    sizes = [n + lo + hi + max(0, n - 1) * gap for n, lo, hi, gap in zip(x.type.shape, low, high, between, strict=True)]
    kind = ir.RankedTensorType.get(sizes, x.type.element_type)
    spans = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": between}
    return make("pad", kind, x, fill, **{name: ir.DenseI64ArrayAttr.get(list(span)) for name, span in spans.items()})


def broadcast(x: ir.Value, shape: Sequence[int], dims: Sequence[int]) -> ir.Value:
    kind = ir.RankedTensorType.get(list(shape), x.type.element_type)
    return make("broadcast_in_dim", kind, x, broadcast_dimensions=ir.DenseI64ArrayAttr.get(list(dims)))


def reshaped(x: ir.Value, shape: Sequence[int]) -> ir.Value:
    return make("reshape", ir.RankedTensorType.get(list(shape), x.type.element_type), x)


def joined(parts: Sequence[ir.Value], kind: ir.Type, dim: int) -> ir.Value:
    return make("concatenate", kind, *parts, dimension=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim))


def add_body(region: ir.Region, element: ir.Type, name: str) -> None:
    """Gives a reduction the body that combines two scalars by `stablehlo.<name>`."""
    scalar = ir.RankedTensorType.get([], element)
    body = ir.Block.create_at_start(region, [scalar, scalar])
    with ir.InsertionPoint(body):
        ir.Operation.create("stablehlo.return", [], [make(name, scalar, *body.arguments)])

"""The registry of the rules, and functions that make ops for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from tt_torch.mlir.rules import Builder, Rule, RuleSet, infer, producer, shape
from tt_torch.mlir.ttnn.from_ttir.creation import filled
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.types import Attr, Op, Operand, Value

RULES = RuleSet("workarounds")


@dataclass(frozen=True)
class Workaround:
    """A rule, the ops to which it applies, and the version of the library that needs it."""

    rule: Rule
    ops: tuple[str, ...]
    version: str


ALL: list[Workaround] = []


def workaround(*ops: str, version: str = "0.81.1") -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        @wraps(rule)
        def of_the_same_shape(op: Op, b: Builder) -> list[Value] | None:
            """Gives scalars one dimension: the library cannot fill a tensor without dimensions."""
            values = rule(op, b)
            if values is None:
                return None
            values = values if isinstance(values, (list, tuple)) else [values]
            return [reshape(b, new, shape(old)) for new, old in zip(values, op.results, strict=True)]

        ALL.append(Workaround(rule, ops, version))
        RULES.rewrites(*ops)(of_the_same_shape)
        return rule

    return register


def make(b: Builder, name: str, *operands: Operand, tiled: bool = True, dtype: str = "", **attributes: Attr) -> Value:
    """An op whose result has the inferred shape, by default in tiles and in the data type of the first operand."""
    (kind,) = infer(f"ttnn.{name}", operands, attributes)
    layout = Layout(dtype or layout_of(operands[0]).dtype, tiled)
    return b(f"ttnn.{name}", *operands, type=with_layout(list(kind.shape), layout), **attributes)


def reshape(b: Builder, x: Value, sizes: list[int]) -> Value:
    """A reshape to tiles. If another reshape to tiles made `x`, the operand of that reshape is reshaped instead."""
    before = producer(x, "ttnn.reshape")
    if before is not None and layout_of(x) == Layout(layout_of(before.operands[0]).dtype):
        x = before.operands[0]
    return x if shape(x) == sizes else make(b, "reshape", x, shape=sizes)


def typecast(b: Builder, x: Value, dtype: str, tiled: bool = True) -> Value:
    return b("ttnn.typecast", x, type=with_layout(shape(x), Layout(dtype, tiled)))


def bits(b: Builder, x: Value, dtype: str) -> Value:
    """The same bits in another data type."""
    return b("ttnn.bitcast_convert", x, type=with_layout(shape(x), Layout(dtype)))


def full(b: Builder, value: float | int, dtype: str, sizes: list[int] | None = None) -> Value:
    return filled(b, with_layout(sizes or [1], Layout(dtype)), value)


def slices(b: Builder, x: Value, dim: int, begin: int, end: int, step: int = 1) -> Value:
    """Elements `begin` to `end` of a dimension."""
    sizes = shape(x)
    if (begin, end, step) == (0, sizes[dim], 1):
        return x
    steps, bounds = [1] * len(sizes), {"begins": [0] * len(sizes), "ends": list(sizes)}
    bounds["begins"][dim], bounds["ends"][dim], steps[dim] = begin, end, step
    sizes[dim] = -(-(end - begin) // step)
    kind = with_layout(sizes, Layout(layout_of(x).dtype))
    return b("ttnn.slice_static", x, type=kind, step=steps, params={"SliceStaticOpParams": bounds})

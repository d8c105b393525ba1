"""reduce: the op in its body determines the reduction."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, producer, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.creation import full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value

# Booleans are zeros and ones in bf16, so "and" is the minimum and "or" is the maximum.
REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "and": "min", "or": "max"}

# Initial values that do not change the result. For max and min, these are the end of the element type and values
# beyond.
NEUTRAL = {"sum": lambda v: v == 0, "prod": lambda v: v == 1}
ENDS = {
    "f32": (-3.4028234e38, 3.4028234e38),
    "bf16": (-3.3895313e38, 3.3895313e38),
    "i32": (-(2**31), 2**31 - 1),
    "ui8": (0, 255),
}


def body_op(op: Op) -> str:
    """The name of the only op in a region, apart from the return; "" if there are several."""
    ops = [o.operation.name for o in op.operation.regions[0].blocks[0].operations]
    return ops[0].split(".")[1] if len(ops) == 2 else ""


@RULES.rewrites("stablehlo.reduce")
def reduce(op: Op, b: Builder) -> Value | list[Value] | None:
    dims = attrs.ints(op, "dimensions")
    if len(op.results) == 2:
        return _argmax(op, b, dims)
    target, x = REDUCTIONS.get(body_op(op)), op.operands[0]
    initial = splat_of(op.operands[1])
    if initial is not None and 0 in shape(x):  # over nothing, a reduction gives its initial value
        return full(b, shape(op.results[0]), dtype(op.results[0]), initial)
    boolean = body_op(op) in ("and", "or")
    if target is None or (boolean and not isinstance(dtype(x), ir.BF16Type)):
        return None
    if initial is None or not neutral(target, initial, dtype(x), boolean):
        return None
    if dims:
        return b(f"ttir.{target}", x, dim_arg=dims)
    # without dimensions, an element is added to the initial zero: for -0.0 this gives 0.0
    return b("ttir.add", x, full(b, shape(x), dtype(x), initial)) if target == "sum" else x


def neutral(target: str, initial: float | None, element: ir.Type, boolean: bool) -> bool:
    """Whether the initial value does not change the result. TTIR's reductions have no initial value."""
    if initial is None:
        return False
    if target in NEUTRAL:
        return NEUTRAL[target](initial)
    if boolean:
        return initial == (target == "min")
    low, high = ENDS.get(str(element), (float("-inf"), float("inf")))
    return initial >= high if target == "min" else initial <= low


def counts(positions: Value, dim: int) -> bool:
    """Whether `positions` holds 0, 1, 2, ... along `dim`."""
    while spread := producer(positions, "ttir.broadcast"):
        positions = spread.operands[0]
    sizes = shape(positions)
    while move := producer(positions, "ttir.reshape"):
        positions = move.operands[0]
    count = producer(positions, "ttir.arange")
    if count is None or count.attributes["start"].value != 0 or count.attributes["step"].value != 1:
        return False
    if shape(positions) == sizes:
        return count.attributes["arange_dimension"].value == dim
    return shape(positions) == [sizes[dim]]


def _argmax(op: Op, b: Builder, dims: list[int]) -> list[Value] | None:
    """torch.max(dim), argmax and their opposites: values reduced together with their positions. TTNN finds the
    position of the largest one only, so the smallest one's is that of the largest negative."""
    x, positions = op.operands[:2]
    compares = [o for o in op.operation.regions[0].blocks[0].operations if o.operation.name == "stablehlo.compare"]
    if len(dims) != 1 or not compares or not counts(positions, dims[0]):
        return None
    if attrs.direction(compares[0]) in ("GE", "GT"):
        return [b("ttir.max", x, dim_arg=dims), b("ttir.argmax", x, dim_arg=dims)]
    if attrs.direction(compares[0]) in ("LE", "LT"):
        opposite = "ttir.bitwise_not" if isinstance(dtype(x), ir.IntegerType) else "ttir.neg"  # no -x for the lowest
        return [b("ttir.min", x, dim_arg=dims), b("ttir.argmax", b(opposite, x), dim_arg=dims)]
    return None

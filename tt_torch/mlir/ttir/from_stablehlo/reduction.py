"""reduce: the ops in its body determine the reductions."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, producer, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import combining
from tt_torch.mlir.ttir.from_stablehlo.arranging import part, repeated
from tt_torch.mlir.ttir.from_stablehlo.creation import splat_of
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value

# Booleans are zeros and ones in bf16, so "and" is the minimum and "or" is the maximum.
REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "and": "min", "or": "max"}

# The op that combines two elements of bf16, and the op for other types. Booleans are in bf16, and `normalize` has made
# their arithmetic logical.
COMBINED = {name: (name, name) for name in ("add", "maximum", "minimum", "multiply")}
COMBINED |= {name: (f"logical_{name}", f"bitwise_{name}") for name in ("and", "or", "xor")}

# Initial values that do not change the result. For max and min, these are the end of the element type and all values
# beyond it.
NEUTRAL = {"sum": lambda v: v == 0, "prod": lambda v: v == 1}
ENDS = {
    "f32": (-3.4028234e38, 3.4028234e38),
    "bf16": (-3.3895313e38, 3.3895313e38),
    "i32": (-(2**31), 2**31 - 1),
    "i16": (-(2**15), 2**15 - 1),
    "i8": (-128, 127),
    "ui16": (0, 2**16 - 1),
    "ui8": (0, 255),
    "ui32": (0, 2**32 - 1),
    "i1": (0, 1),
}


@RULES.rewrites("stablehlo.reduce")
def reduce(op: Op, b: Builder) -> Value | list[Value] | None:
    dims, names, count = attrs.ints(op, "dimensions"), combining(op), len(op.results)
    if names is None or not COMBINED.keys() >= set(names):
        return _argmax(op, b, dims) if count == 2 else None
    pairs = zip(list(op.operands)[:count], list(op.operands)[count:], names, strict=True)
    return [_reduced(b, x, initial, name, dims) for x, initial, name in pairs]


def _reduced(b: Builder, x: Value, initial: Value, name: str, dims: list[int]) -> Value:
    """Combines the elements of the dimensions and the initial value."""
    sizes = [n for d, n in enumerate(shape(x)) if d not in dims]
    if any(shape(x)[d] == 0 for d in dims):
        return repeated(b, initial, sizes)
    value = reduced_over(b, x, name, dims)
    if _is_one_op(x, name):
        target = REDUCTIONS[name]
        # without dimensions, an element is added to the initial zero: for -0.0 this gives 0.0
        if neutral(target, splat_of(initial), dtype(x), name in ("and", "or")) and (dims or target != "sum"):
            return value
    return combined(b, name, value, b("ttir.reshape", initial, shape=[1] * len(sizes)))


def _is_one_op(x: Value, name: str) -> bool:
    """Whether TTNN has a reduction that combines the elements by this op."""
    return name in REDUCTIONS and (name not in ("and", "or") or isinstance(dtype(x), ir.BF16Type))


def reduced_over(b: Builder, x: Value, name: str, dims: list[int]) -> Value:
    """Combines the elements of the dimensions by an op of StableHLO. No dimension is empty."""
    if not _is_one_op(x, name):
        return _halved(b, x, name, dims)
    return b(f"ttir.{REDUCTIONS[name]}", x, dim_arg=dims) if dims else x


def _halved(b: Builder, x: Value, name: str, dims: list[int]) -> Value:
    """Combines the two halves of a dimension until one element is left. TTNN has no reduction for these ops."""
    for dim in dims:
        while (size := shape(x)[dim]) > 1:
            half = size // 2
            both = combined(b, name, part(b, x, dim, 0, half), part(b, x, dim, half, 2 * half))
            x = b("ttir.concat", [both, part(b, x, dim, 2 * half, size)], dim=dim) if size % 2 else both
    return b("ttir.reshape", x, shape=[n for d, n in enumerate(shape(x)) if d not in dims])


def combined(b: Builder, name: str, x: Value, y: Value) -> Value:
    """Two tensors combined by an op of StableHLO that is commutative and associative."""
    logical, bitwise = COMBINED[name]
    return b(f"ttir.{logical if isinstance(dtype(x), ir.BF16Type) else bitwise}", x, y)


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
    """torch.max(dim), argmax and their opposites: values reduced together with their positions. TTNN only finds the
    position of the largest value. To find the smallest value, it searches the negated floats or inverted integers."""
    x, positions = op.operands[:2]
    compares = [o for o in op.operation.regions[0].blocks[0].operations if o.operation.name == "stablehlo.compare"]
    if len(dims) != 1 or not compares or not counts(positions, dims[0]):
        return None
    target = {"G": "max", "L": "min"}.get(attrs.direction(compares[0])[0], "")
    types = op.operation.attributes
    element = types["tt.types"][0].value if "tt.types" in types else dtype(x)  # as in the program: see `normalize`
    if not target or not neutral(target, splat_of(op.operands[2]), element, False):
        return None
    if target == "max":
        return [b("ttir.max", x, dim_arg=dims), b("ttir.argmax", x, dim_arg=dims)]
    opposite = "ttir.bitwise_not" if isinstance(dtype(x), ir.IntegerType) else "ttir.neg"  # the lowest has no -x
    return [b("ttir.min", x, dim_arg=dims), b("ttir.argmax", b(opposite, x), dim_arg=dims)]

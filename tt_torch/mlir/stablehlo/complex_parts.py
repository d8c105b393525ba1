"""Complex numbers become two values, the real and the imaginary part. Arguments and results have both in a last
dimension of size 2, like the result of `torch.view_as_real`.

In programs of PyTorch, `dynamo/complex_pairs` has replaced complex numbers before. If some are left, an op has no rule.
Then the form of arguments and results must not change here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from torch_mlir import ir

from tt_torch.dynamo.mesh_ops import TARGET
from tt_torch.mlir.context import node_of, unsupported
from tt_torch.mlir.functions import block
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.build import again, compared, constant, joined, make, sliced
from tt_torch.mlir.types import Function, TensorType, Value

Parts = tuple[Value, Value]

# Ops that work on each part alone. Operands that are not complex are passed to both.
PARTWISE = (
    "add all_gather all_to_all broadcast_in_dim collective_broadcast collective_permute concatenate dynamic_slice "
    "dynamic_update_slice gather negate optimization_barrier pad reshape reverse select slice subtract transpose"
).split()
PRODUCTS = ["multiply", "dot_general", "convolution"]


def has_complex(body: ir.Block) -> bool:
    values = (v for op in body.operations for v in op.operation.results)
    return any("complex<" in str(v.type) for v in (*body.arguments, *values))


def split_complex(function: Function) -> None:
    """Removes complex numbers from a function. Raises UnsupportedOpError for an op without a rule."""
    body = block(function)
    parts: dict[Value, Parts] = {}
    with ir.InsertionPoint.at_block_begin(body), function.location:
        for argument in list(body.arguments):
            if is_complex(argument):
                _take_from_pairs(argument)
    ops = [op.operation for op in body.operations]
    for op in ops:
        if any(is_complex(v) for v in (*op.operands, *op.results)):
            with ir.InsertionPoint(op), op.location:
                _split(op, parts)
    for op in reversed(ops[:-1]):
        if any(is_complex(v) for v in (*op.operands, *op.results)) and not any(list(r.uses) for r in op.results):
            op.erase()


def is_complex(value: Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and isinstance(value.type.element_type, ir.ComplexType)


def part_type(kind: TensorType, *more: int) -> ir.RankedTensorType:
    """The type of one part, with more dimensions at the end."""
    element = kind.element_type
    element = element.element_type if isinstance(element, ir.ComplexType) else element
    return ir.RankedTensorType.get([*kind.shape, *more], element)


def split_pairs(pairs: Value) -> Parts:
    """The real and the imaginary parts of pairs, which have both parts in a last dimension."""
    *sizes, _ = pairs.type.shape
    columns = [sliced(pairs, [0] * len(sizes) + [i], [*sizes, i + 1]) for i in (0, 1)]
    kind = ir.RankedTensorType.get(sizes, pairs.type.element_type)
    return make("reshape", kind, columns[0]), make("reshape", kind, columns[1])


def joined_parts(value: Value) -> Value:
    """A complex value as pairs, with both parts in a last dimension."""
    real, imaginary = (make(part, part_type(value.type), value) for part in ("real", "imag"))
    return _joined(real, imaginary, value.type)


def _take_from_pairs(argument: Value) -> None:
    """Changes a complex argument to pairs of floats, and rebuilds the complex numbers from them."""
    kind, uses = argument.type, list(argument.uses)
    for use in uses:
        _refuse_pytorchs(use.owner.operation)
    argument.set_type(part_type(kind, 2))
    whole = make("complex", kind, *split_pairs(argument))
    for use in uses:
        use.owner.operands[use.operand_number] = whole


def _refuse_pytorchs(op: ir.Operation) -> None:
    if node_of(op.location)[1]:
        raise unsupported(op, "stablehlo-to-ttir")


def _split(op: ir.Operation, parts: dict[Value, Parts]) -> None:
    """Adds the parts of the op's complex results, or replaces its real results. Raises UnsupportedOpError."""
    name = op.name.removeprefix("stablehlo.")
    given = [parts.get(v, (v, v)) for v in op.operands]
    if op.name == "func.return":
        for i, v in enumerate(list(op.operands)):
            if is_complex(v):
                _refuse_pytorchs(v.owner)
                op.operands[i] = _joined(*parts[v], v.type)
    elif name == "complex":
        parts[op.results[0]] = op.operands[0], op.operands[1]
    elif name in ("real", "imag"):
        op.results[0].replace_all_uses_with(given[0][name == "imag"])
    elif name == "constant":
        parts[op.results[0]] = _constants(op)
    elif name in PARTWISE or _of_a_mesh(op):
        for old, *pair in zip(op.results, *(_again(op, [v[i] for v in given]) for i in (0, 1)), strict=True):
            parts[old] = pair[0], pair[1]
    elif name in PRODUCTS:
        parts[op.results[0]] = _product(op, *given)
    elif name in SPECIAL and (made := SPECIAL[name](op, given)) is not None:
        if is_complex(op.results[0]):
            parts[op.results[0]] = made
        else:
            op.results[0].replace_all_uses_with(made)
    else:
        raise unsupported(op, "stablehlo-to-ttir", "what adds, multiplies, divides or moves complex numbers")


def _of_a_mesh(op: ir.Operation) -> bool:
    """Whether a custom call takes parts of a value, or joins them."""
    return op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value.startswith(TARGET)


def _again(op: ir.Operation, operands: list[Value]) -> list[Value]:
    return again(op, operands, [part_type(r.type) for r in op.results])


def _joined(real: Value, imaginary: Value, kind: TensorType) -> Value:
    columns = [make("reshape", part_type(kind, 1), v) for v in (real, imaginary)]
    return joined(columns, part_type(kind, 2), len(kind.shape))


def _constants(op: ir.Operation) -> Parts:
    """The parts of a complex constant. The binding cannot read its attribute, so this reads the text."""
    kind = op.results[0].type
    text = op.get_asm()
    text = re.sub(r"tensor<.*", "", text[text.index("dense<") :], flags=re.DOTALL)
    values = np.array(list(_numbers(text)), np.float64).reshape(-1, 2)
    values = np.broadcast_to(values, (int(np.prod(kind.shape)), 2)) if len(values) == 1 else values
    numbers = np.float32 if str(kind.element_type.element_type) == "f32" else np.float64
    parts = [constant(part_type(kind), values[:, i].astype(numbers).reshape(kind.shape)) for i in (0, 1)]
    return parts[0], parts[1]


def _numbers(text: str) -> Iterator[float]:
    if blob := re.search(r'"0x([0-9A-Fa-f]*)"', text):
        wide = "f64" in text
        yield from np.frombuffer(bytes.fromhex(blob[1]), np.float64 if wide else np.float32)
        return
    for number in re.findall(r"0x[0-9A-F]+|[-+]?\d[-+.\de]*", text):
        if number.startswith("0x"):  # infinities and NaN
            yield np.array([int(number, 16)], np.uint32 if len(number) == 10 else np.uint64).view(
                np.float32 if len(number) == 10 else np.float64
            )[0]
        else:
            yield float(number)


def _product(op: ir.Operation, x: Parts, y: Parts) -> Parts:
    kind = part_type(op.results[0].type)
    (ac, ad), (bc, bd) = ([_again(op, [p, q])[0] for q in y] for p in x)
    return make("subtract", kind, ac, bd), make("add", kind, ad, bc)


# --- ops that mix the parts


def _quotient(op: ir.Operation, given: list[Parts]) -> Parts:
    """(a + bi) / (c + di) = (a + bi) (c - di) / (c^2 + d^2)"""
    (a, b), (c, d) = given
    kind = a.type

    def times(p: Value, q: Value) -> Value:
        return make("multiply", kind, p, q)

    size = make("add", kind, times(c, c), times(d, d))
    real = make("add", kind, times(a, c), times(b, d))
    imaginary = make("subtract", kind, times(b, c), times(a, d))
    return make("divide", kind, real, size), make("divide", kind, imaginary, size)


def _absolute(op: ir.Operation, given: list[Parts]) -> Value:
    """m sqrt(1 + (n / m)^2), where m is the larger and n the smaller of |a| and |b|. The square of m could overflow."""
    kind = part_type(op.results[0].type)
    ((a, b),) = given
    a, b = make("abs", kind, a), make("abs", kind, b)
    large, small = make("maximum", kind, a, b), make("minimum", kind, a, b)
    one, zero = (_full(kind, v) for v in (1.0, 0.0))
    ratio = make("divide", kind, small, large)
    root = make("sqrt", kind, make("add", kind, one, make("multiply", kind, ratio, ratio)))
    return make("select", kind, compared("EQ", large, zero), zero, make("multiply", kind, large, root))


def _converted(op: ir.Operation, given: list[Parts]) -> Value | Parts:
    source, kind = op.operands[0], part_type(op.results[0].type)
    if not is_complex(op.results[0]):
        return make("convert", kind, given[0][0])
    real, imaginary = given[0] if is_complex(source) else (source, None)
    return make("convert", kind, real), make("convert", kind, imaginary) if imaginary else _full(kind, 0.0)


def _counted(op: ir.Operation, given: list[Parts]) -> Parts:
    """The numbers 0, 1, 2, ... are real, so the imaginary part is zero."""
    kind = part_type(op.results[0].type)
    return make("iota", kind, iota_dimension=op.attributes["iota_dimension"]), _full(kind, 0.0)


def _equality(op: ir.Operation, given: list[Parts]) -> Value:
    direction = attrs.direction(op)
    real, imaginary = (compared(direction, p, q) for p, q in zip(*given, strict=True))
    return make("and" if direction == "EQ" else "or", real.type, real, imaginary)


def _sum(op: ir.Operation, given: list[Parts]) -> Parts | None:
    """A sum as two reductions, one per part, each with its own body."""
    if [o.operation.name for o in op.regions[0].blocks[0].operations][:-1] != ["stablehlo.add"]:
        return None
    sums = []
    for i in (0, 1):
        clone = op.clone()
        for number, v in enumerate(given):
            clone.operands[number] = v[i]
        body = clone.regions[0].blocks[0]
        inner = [r for o in body.operations for r in o.operation.results]
        for value in (*clone.results, *body.arguments, *inner):
            value.set_type(part_type(value.type))
        sums.append(clone.results[0])
    return sums[0], sums[1]


def _full(kind: TensorType, value: float) -> Value:
    number = ir.FloatAttr.get(kind.element_type, value)
    return make("constant", kind, value=ir.DenseElementsAttr.get_splat(kind, number))


SPECIAL = {"abs": _absolute, "compare": _equality, "convert": _converted, "divide": _quotient}
SPECIAL |= {"iota": _counted, "reduce": _sum}

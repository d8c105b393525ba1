"""Arithmetic of integers that the library supports for floats only."""

from __future__ import annotations

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, producer, shape
from tt_torch.mlir.ttnn import legality
from tt_torch.mlir.ttnn.from_ttir.creation import number
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.passes.workarounds.registry import bits, full, make, reshape, slices, typecast, workaround
from tt_torch.mlir.types import Op, Value


@workaround(*legality.without_bytes())
def arithmetic_of_bytes(op: Op, b: Builder) -> list[Value] | None:
    """Bytes are computed as 32-bit integers, and the lower 8 bits of the results are kept:

    "Unsupported datatype DataType::UINT8"
    "Can only tilize bfloat16/float32 or int32/uint32/uint16 or fp8_e4m3 tensors"
    """
    name = op.operation.name
    if all(layout_of(v).dtype != "UInt8" for v in op.operands):
        return None
    operands = {k: _wider(b, v) for k, v in ods.operands_of(op).items()}
    types = [with_layout(shape(r), _as_integer(layout_of(r))) for r in op.results]
    made = b(name, *operands.values(), type=types, **ods.attrs_of(op))
    results = zip(made if isinstance(made, list) else [made], op.results, strict=True)
    return [_byte(b, v) if layout_of(r).dtype == "UInt8" else v for v, r in results]


def _as_integer(layout: Layout) -> Layout:
    return layout.with_(dtype="Int32") if layout.dtype == "UInt8" else layout


def _wider(b: Builder, value: Value) -> Value:
    if isinstance(value, list):
        return [_wider(b, v) for v in value]
    return typecast(b, value, "Int32") if value is not None and layout_of(value).dtype == "UInt8" else value


def _byte(b: Builder, value: Value) -> Value:
    low = make(b, "bitwise_and", value, full(b, 255, "Int32"))
    return typecast(b, reshape(b, low, shape(value)), "UInt8")


@workaround("ttnn.matmul")
def products_of_integer_matrices(op: Op, b: Builder) -> Value | None:
    """Integers are multiplied element by element and summed:

    "Unsupported data format for input A: DataType::INT32"
    """
    left, right = op.operands
    if legality.takes(op, left):
        return None
    left = _transposed(b, left) if ods.attr(op, "transpose_a") else left
    right = _transposed(b, right) if ods.attr(op, "transpose_b") else right
    left = reshape(b, left, [*shape(left), 1])
    right = reshape(b, right, [*shape(right)[:-2], 1, *shape(right)[-2:]])
    product = make(b, "multiply", left, right)
    return make(b, "sum", product, dim_arg=[len(shape(product)) - 2], keep_dim=False)


def _transposed(b: Builder, x: Value) -> Value:
    *outer, rows, columns = range(len(shape(x)))
    return make(b, "permute", x, permutation=[*outer, columns, rows])


@workaround("ttnn.sign")
def signs_of_integers(op: Op, b: Builder) -> Value | None:
    """The sign of an integer is the integer clamped to -1 .. 1:

    "Unary: UnaryOpType::SIGN does not support integer input dtype DataType::INT32"
    """
    (x,) = op.operands
    if legality.takes(op, x):
        return None
    dtype = layout_of(x).dtype
    return make(b, "minimum", make(b, "maximum", x, full(b, -1, dtype)), full(b, 1, dtype))


@workaround("ttnn.prod")
def products_of_integers(op: Op, b: Builder) -> Value | None:
    """The two halves of the dimension are multiplied with each other, until one element is left:

    "Error - unsupported data type for prod, expected BFLOAT16, FLOAT32 or BFLOAT8_B but got DataType::INT32"
    """
    (x,), dim = op.operands, ods.attr(op, "dim_arg")
    if legality.takes(op, x):
        return None
    while (size := shape(x)[dim]) > 1:
        half = size // 2
        product = make(b, "multiply", slices(b, x, dim, 0, half), slices(b, x, dim, half, 2 * half))
        rest = [slices(b, x, dim, 2 * half, size)] if size % 2 else []
        x = make(b, "concat", [product, *rest], dim=dim, dtype=layout_of(product).dtype) if rest else product
    return reshape(b, x, shape(op.results[0]))


@workaround("ttnn.pow")
def powers_of_integers(op: Op, b: Builder) -> Value | None:
    """For integers, the exponent becomes an attribute, so it must be a constant number:

    "tensor exponents are not supported for integer inputs, use a scalar integer exponent"
    """
    base, exponent = op.operands
    constant = producer(exponent, "ttnn.full")
    if legality.takes(op, base) or constant is None:
        return None
    power, sizes = ods.attr(constant, "fill_value")["I32"]["value"], shape(op.results[0])
    if power < 0:
        return None
    powered = make(b, "pow_scalar", base, rhs=number(power))
    own = [1] * (len(sizes) - len(shape(powered))) + shape(powered)
    if own == sizes:
        return powered
    factors = [n if m == 1 else 1 for n, m in zip(sizes, own, strict=True)]  # the exponent has more elements
    return make(b, "repeat", reshape(b, powered, own), repeat_dims=factors)


@workaround("ttnn.divide")
def quotients_of_integers(op: Op, b: Builder) -> Value | None:
    """The dividend without its remainder is divided as float32, so that the quotient is a whole number. A second
    division, of the dividend minus the product of quotient and divisor, gives the error of the first division.

    "Incorrect output_dtype value for Integer Division(rounding_mode=None) ; valid input values are None or
    ttnn.float32"
    """
    left, right = op.operands
    if layout_of(op.results[0]).dtype not in legality.INTEGERS:
        return None
    product = make(b, "subtract", left, _signed_remainder(b, left, right))
    first = _near_quotient(b, product, right)
    missing = make(b, "subtract", product, make(b, "multiply", first, right))
    if layout_of(left).dtype == "UInt32":  # the product may be too large, and where it is, the divisor is small
        second = bits(b, _near_quotient(b, bits(b, missing, "Int32"), bits(b, right, "Int32")), "UInt32")
    else:
        second = _near_quotient(b, missing, right)
    return make(b, "add", first, second)


def _signed_remainder(b: Builder, left: Value, right: Value) -> Value:
    """The remainder with the sign of `left`. The library's remainder has the sign of `right`, so it may be too large by
    `right`."""
    rest = make(b, "remainder", left, right)
    dtype = layout_of(rest).dtype
    zero = full(b, 0, dtype)
    below = [_predicate(b, "lt", v, zero) for v in (rest, left)]
    other = make(b, "multiply", _predicate(b, "ne", *below), _predicate(b, "ne", rest, zero))
    return make(b, "subtract", rest, make(b, "multiply", typecast(b, other, dtype), right))


def _predicate(b: Builder, name: str, left: Value, right: Value) -> Value:
    return make(b, name, left, right, dtype="BFloat16")


def _near_quotient(b: Builder, left: Value, right: Value) -> Value:
    quotient = make(b, "divide", typecast(b, left, "Float32"), typecast(b, right, "Float32"))
    rounded = make(b, "floor", make(b, "add", quotient, full(b, 0.5, "Float32")))
    if layout_of(left).dtype == "UInt32":
        rounded = make(b, "minimum", rounded, full(b, 2.0**32 - 2**8, "Float32"))  # the largest float32 below 2^32
    return typecast(b, rounded, layout_of(left).dtype)

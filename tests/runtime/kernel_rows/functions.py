"""Every function of the element-wise ops and of the reductions, on floats and on integers."""

import torch
import torch.nn.functional as F
from kernel_rows.row import Row, randn

from tt_torch.mlir import ods
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn.dialect import camel

WIDE = torch.linspace(-4.1, 8.3, 40).reshape(5, 8)  # negative, above six, and no multiple of a half
SMALL = torch.linspace(0.07, 0.93, 40).reshape(5, 8)  # in the domain of every function
COUNTS = torch.arange(-20, 20, dtype=torch.int32).reshape(5, 8)
OTHER = torch.tensor([3, -7, 5, 1, -2, 9, 4, 2], dtype=torch.int32)  # without zero
SHIFTS = torch.tensor([0, 1, 5, 31, 2, 3, 32, 33], dtype=torch.int32)


def truth(function):
    return lambda *operands: function(*operands).float()


# The functions that the compiler uses, by their names in TTIR; some are defined for few numbers only.
NAMES = [name for name in ttir.UNARY if name not in ("cbrt", "log1p", "bitwise_not")]
ON_SOME = ("acos", "asin", "log", "reciprocal", "rsqrt", "sqrt")
TRUTHS = torch.tensor([0.0, -0.0, 1.0, -2.0, torch.inf, -torch.inf, torch.nan, 1e-30])


def unary(function, x, expected, result="Float32", **attributes):
    return Row("EltwiseUnaryOp", {"in": x}, {"out": (tuple(x.shape), result)}, expected,
               {"type": function, **attributes}, f"{function} {result}")  # fmt: skip


UNARY = [
    *(unary(camel(n), SMALL if n in ON_SOME else WIDE, getattr(torch, n, None) or getattr(F, n)) for n in NAMES),
    unary("LeakyRelu", WIDE, F.leaky_relu),
    unary("LeakyRelu", WIDE, lambda x: F.leaky_relu(x, 0.3), params={"EltwiseOpWithFloatParams": {"parameter": 0.3}}),
    unary("IsFinite", TRUTHS, truth(torch.isfinite)),
    unary("IsFinite", TRUTHS, lambda x: torch.isfinite(x).int(), "Int32"),
    unary("LogicalNot", TRUTHS, truth(torch.logical_not)),
    unary("LogicalNot", COUNTS, lambda x: torch.logical_not(x).int(), "Int32"),
    unary("BitwiseNot", COUNTS, torch.bitwise_not, "Int32"),
    unary("Abs", COUNTS, torch.abs, "Int32"),
    unary("Neg", WIDE, lambda x: (-x).int(), "Int32"),  # the result has another type than the operand
]


def composite(function, expected, params=None, x=WIDE, **operands):
    return Row("EltwiseUnaryCompositeOp", {"in": x, **operands}, {"out": tuple(x.shape)}, expected,
               {"type": function, **({"params": {"ClampScalarOpParams": params}} if params else {})},
               f"{function} {sorted(params or ())}")  # fmt: skip


LOW, HIGH = {"min": {"FP": {"value": -1.5}}}, {"max": {"I32": {"value": 4}}}
UNARY += [
    composite("Cbrt", lambda x: x.sign() * x.abs() ** (1 / 3)),
    composite("Log1p", torch.log1p, x=SMALL),
    composite("ClampScalar", lambda x: x.clamp(-1.5, 4), LOW | HIGH),
    composite("ClampScalar", lambda x: x.clamp(min=-1.5), LOW),
    composite("ClampScalar", lambda x: x.clamp(max=4), HIGH),
    # Where the bounds cross, the upper one counts.
    composite("ClampTensor", lambda x, low, high: x.clamp(low, high), min=randn(5, 8), max=randn(8, 5).reshape(5, 8)),
]

COMPARISONS = {"Equal": torch.eq, "NotEqual": torch.ne, "GreaterEqual": torch.ge, "GreaterThan": torch.gt,
               "LessEqual": torch.le, "LessThan": torch.lt, "LogicalAnd": torch.logical_and,
               "LogicalOr": torch.logical_or, "LogicalXor": torch.logical_xor}  # fmt: skip
ARITHMETIC = {"Add": torch.add, "Subtract": torch.sub, "Multiply": torch.mul}
EXTREMES = {"Maximum": torch.maximum, "Minimum": torch.minimum, "Remainder": torch.remainder}
BITS = {"BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor}


def unsigned(x):
    return x.long() & 0xFFFFFFFF


def binary(op, function, a, b, expected, result="Float32", note=""):
    shape = tuple(torch.broadcast_shapes(a.shape, b.shape))
    return Row(op, {"lhs": a, "rhs": b}, {"out": (shape, result)}, expected, {"type": function},
               f"{function} {result} {note}".strip())  # fmt: skip


def shift_right(x, by):
    return torch.where(by < 32, unsigned(x) >> by.clamp(max=31), 0).int()


PLAIN, COMPOSITE = "EltwiseBinaryOp", "EltwiseBinaryCompositeOp"
ROUNDED = WIDE.round()
BINARY = [
    *(binary(PLAIN, name, ROUNDED, ROUNDED.flip(1), truth(f)) for name, f in COMPARISONS.items()),
    *(binary(PLAIN, name, COUNTS, OTHER, lambda *ab, f=f: f(*ab).int(), "Int32") for name, f in COMPARISONS.items()),
    *(binary(PLAIN, name, WIDE, SMALL, f) for name, f in ARITHMETIC.items()),
    *(binary(PLAIN, name, WIDE[:, :1], SMALL[0], f, note="broadcast") for name, f in ARITHMETIC.items()),
    *(binary(PLAIN, name, COUNTS, OTHER, f, "Int32") for name, f in ARITHMETIC.items()),
    *(binary(PLAIN, name, ROUNDED, ROUNDED.flip(1), lambda *ab, f=f: f(*ab).int(), "Int32", "of floats")
      for name, f in ARITHMETIC.items()),
    *(binary(PLAIN, name, randn(129, 128), randn(128, 129).reshape(129, 128), f, note="large")
      for name, f in ARITHMETIC.items()),
    binary(PLAIN, "Divide", WIDE, SMALL, torch.div),
    binary(PLAIN, "Divide", COUNTS, OTHER, lambda a, b: torch.div(a, b, rounding_mode="trunc"), "Int32"),
    binary(PLAIN, "Divide", COUNTS, OTHER, lambda a, b: a / b, note="of integers"),
    binary(PLAIN, "LogicalRightShift", COUNTS, SHIFTS, shift_right, "Int32"),
    *(binary(COMPOSITE, name, WIDE, SMALL, f) for name, f in EXTREMES.items()),
    *(binary(COMPOSITE, name, COUNTS, OTHER, f, "Int32") for name, f in EXTREMES.items()),
    *(binary(COMPOSITE, name, COUNTS, OTHER, f, "Int32") for name, f in BITS.items()),
    binary(COMPOSITE, "LogicalLeftShift", COUNTS, SHIFTS % 32, torch.bitwise_left_shift, "Int32"),
    binary(COMPOSITE, "Atan2", WIDE, SMALL - 0.5, torch.atan2),
    binary(COMPOSITE, "Pow", SMALL, WIDE / 4, torch.pow),
    binary(COMPOSITE, "Pow", COUNTS, SHIFTS % 5, torch.pow, "Int32"),
    *(binary(COMPOSITE, "Pow", WIDE, torch.full((1,), n), torch.pow, note=f"of {n}") for n in (2.0, 3.0, 4.0)),
    binary(COMPOSITE, "Pow", torch.full((1,), 1.5), torch.full((1, 3), 3.0), torch.pow, note="of fewer dimensions"),
]  # fmt: skip


def power(exponent, member, x=SMALL, result="Float32"):
    return Row("EltwiseBinaryCompositeScalarOp", {"lhs": x}, {"out": (tuple(x.shape), result)},
               lambda x: x**exponent, {"type": "PowScalar", "rhs": {member: {"value": exponent}}},
               f"{exponent} {result}")  # fmt: skip


def where(first, second, third):
    return Row("EltwiseTernaryWhereOp", {"first": first, "second": second, "third": third}, {"out": (5, 8)},
               lambda c, a, b: torch.where(c != 0, a, b), label=str(tuple(first.shape)))  # fmt: skip


NUMBERS, INTEGERS = WIDE.reshape(5, 2, 4), COUNTS.reshape(5, 2, 4)


def reduction(function, expected, dims, keep, x=NUMBERS, result="Float32"):
    every = tuple(d % 3 for d in dims) or (0, 1, 2)
    shape = tuple(1 if d in every else n for d, n in enumerate(x.shape) if keep or d not in every)
    return Row("ReductionOp", {"in": x}, {"out": (shape, result)}, lambda x: expected(x, every, keepdim=keep),
               {"type": function, "dim_arg": list(dims), "keep_dim": keep},
               f"{function} {dims} {keep} {result}")  # fmt: skip


REDUCTIONS = {"Sum": torch.sum, "Mean": torch.mean, "Max": torch.amax, "Min": torch.amin}
OTHERS = [
    power(2.5, "FP"),
    power(3, "I32"),
    power(3, "I32", COUNTS, "Int32"),
    where(torch.tensor([0.0, 1.0, -2.0, 0.0, 0.5, 0.0, 0.0, 3.0]), WIDE, SMALL),
    where(COUNTS % 3, WIDE[:, :1], SMALL[0]),
    *(reduction(name, function, dims, keep) for name, function in REDUCTIONS.items()
      for dims, keep in [((1,), False), ((-1, 0), True), ((), False)]),
    *(reduction(name, REDUCTIONS[name], (0, 2), True, INTEGERS, "Int32") for name in ("Sum", "Max", "Min")),
    reduction("Mean", lambda x, *a, **k: x.float().mean(*a, **k), (1,), True, INTEGERS),
]  # fmt: skip


SCANS = [name.removeprefix("ttir.") for name, op in ods.OPS.items() if "scan_of" in op.facts]


def scan(op, expected, dim):
    return Row(op, {"in": SMALL}, {"out": (5, 8)}, lambda x: expected(x, dim), {"dim": dim}, str(dim))


def product(dim, keep, shape):
    attributes = {"keep_dim": keep} if dim is None else {"keep_dim": keep, "dim_arg": dim}
    return Row("ReductionProdOp", {"in": SMALL + 0.5}, {"out": shape},
               lambda x: x.prod().reshape(shape) if dim is None else x.prod(dim, keep), attributes,
               f"{dim} {keep}")  # fmt: skip


def argmax(dim, keep, shape):
    attributes = {"keep_dim": keep} if dim is None else {"keep_dim": keep, "dim": dim}
    x = randn(5, 8)
    return Row("ReductionArgMaxOp", {"in": x}, {"out": (shape, "Int32")},
               lambda x: x.argmax(dim, keepdim=keep and dim is not None).reshape(shape).int(), attributes,
               f"{dim} {keep}")  # fmt: skip


OTHERS += [
    *(scan(ods.OPS[f"ttnn.{name}"].facts["table"], getattr(torch, name), dim) for name in SCANS for dim in (0, -1)),
    product(None, False, ()), product(None, True, (1, 1)), product(-1, True, (5, 1)), product(0, False, (8,)),
    argmax(None, False, ()), argmax(None, True, (1, 1)), argmax(-1, True, (5, 1)), argmax(0, False, (8,)),
]  # fmt: skip

ROWS = UNARY + BINARY + OTHERS

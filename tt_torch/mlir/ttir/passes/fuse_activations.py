"""Finds chains of primitives that are one activation of TTNN: GELU, its approximation with tanh, or SiLU."""

from __future__ import annotations

import itertools
import math

from tt_torch.mlir.rules import Builder, RuleSet, producer, shape, single_use
from tt_torch.mlir.ttir.passes.canonicalize import splat
from tt_torch.mlir.types import Op, Value

RULES = RuleSet("fuse-activations")


@RULES.rewrites("ttir.multiply")
def gelu(op: Op, b: Builder) -> Value | None:
    """x * 0.5 * (1 + erf(x / sqrt(2))), in any order of the factors."""
    factors = _factors(op)
    outer = next((f for f in factors if _erf_plus_one(f) is not None), None)
    if outer is None or len(factors) != 3:
        return None
    x = _erf_plus_one(outer)
    rest = [f for f in factors if f != outer]
    halves = [f for f in rest if splat(f) == 0.5]
    whole = shape(x) == shape(op.results[0])
    return b("ttir.gelu", x) if whole and len(halves) == 1 and any(f == x for f in rest) else None


def _factors(op: Op) -> list[Value]:
    """The factors of a product of products: a, b and c of (a * b) * c, which is the form of a GELU."""
    inner = [producer(value, "ttir.multiply") for value in op.operands]
    return [f for v, i in zip(op.operands, inner, strict=True) for f in (i.operands if i is not None else [v])]


def _erf_plus_one(value: Value) -> Value | None:
    """x of 1 + erf(x * sqrt(0.5))."""
    total = producer(value, "ttir.add")
    if total is None or splat(total.operands[1]) != 1:
        return None
    erf = producer(total.operands[0], "ttir.erf")
    product = producer(erf.operands[0], "ttir.multiply", "ttir.divide") if erf is not None else None
    if product is None:
        return None
    factor, expected = splat(product.operands[1]), math.sqrt(0.5 if product.name == "ttir.multiply" else 2)
    return product.operands[0] if factor and math.isclose(factor, expected, rel_tol=1e-5) else None


@RULES.rewrites("ttir.multiply")
def gelu_tanh(op: Op, b: Builder) -> Value | None:
    """x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))), in any order of the factors and terms.

    Nothing else, such as a backward pass, may read a part of the chain. Otherwise most of it would be computed twice.
    """
    factors = _factors(op)
    outer = next((f for f in factors if _tanh_plus_one(f) is not None), None)
    if outer is None or len(factors) != 3 or not any(splat(f) == 0.5 for f in factors):
        return None
    x = next((f for f in factors if f != outer and splat(f) is None), None)
    if x is None or shape(x) != shape(op.results[0]):
        return None
    if not all(v == x or single_use(v) for v in (*op.operands, outer)):
        return None
    found, slope = _polynomial(_tanh_plus_one(outer), x), math.sqrt(2 / math.pi)
    expected = {1: slope, 3: 0.044715 * slope}
    alike = found.keys() == expected.keys() and all(math.isclose(found[n], expected[n], rel_tol=1e-5) for n in found)
    return b("ttir.gelu_tanh", x) if alike else None


def _tanh_plus_one(value: Value) -> Value | None:
    """z of 1 + tanh(z), if nothing else reads the tanh."""
    total = producer(value, "ttir.add")
    if total is None or splat(total.operands[1]) != 1 or not single_use(total.operands[0]):
        return None
    tanh = producer(total.operands[0], "ttir.tanh")
    return None if tanh is None else tanh.operands[0]


def _polynomial(value: Value, x: Value, depth: int = 6) -> dict[int, float]:
    """The coefficients of a polynomial of x, by their exponents.

    There are none if `value` is another expression, if it has more than `depth` ops in a row, or if another op reads a
    part of it.
    """
    number = splat(value)
    if value == x or number is not None:
        return {1: 1.0} if number is None else {0: number}
    op = producer(value, "ttir.add", "ttir.multiply", "ttir.pow")
    if op is None or depth == 0 or not single_use(value):
        return {}
    left, right = (_polynomial(operand, x, depth - 1) for operand in op.operands)
    if op.name == "ttir.add":
        return {n: left.get(n, 0.0) + right.get(n, 0.0) for n in left | right} if left and right else {}
    if op.name == "ttir.multiply":
        return _product(left, right)
    square = _product(left, left)
    return {2.0: square, 3.0: _product(square, left)}.get(right.get(0, 0.0), {}) if len(right) == 1 else {}


def _product(left: dict[int, float], right: dict[int, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for (n, a), (m, c) in itertools.product(left.items(), right.items()):
        found[n + m] = found.get(n + m, 0.0) + a * c
    return found


@RULES.rewrites("ttir.multiply")
def silu(op: Op, b: Builder) -> Value | None:
    for x, gate in (op.operands, list(op.operands)[::-1]):
        sigmoid = producer(gate, "ttir.sigmoid")
        if sigmoid is not None and sigmoid.operands[0] == x:
            return b("ttir.silu", x)
    return None

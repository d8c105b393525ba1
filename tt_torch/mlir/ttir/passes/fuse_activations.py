"""Finds activations that TTNN has in chains of primitives: GELU, SiLU."""

from __future__ import annotations

import math

from tt_torch.mlir.rules import Builder, RuleSet, producer, shape
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
def silu(op: Op, b: Builder) -> Value | None:
    for x, gate in (op.operands, list(op.operands)[::-1]):
        sigmoid = producer(gate, "ttir.sigmoid")
        if sigmoid is not None and sigmoid.operands[0] == x:
            return b("ttir.silu", x)
    return None

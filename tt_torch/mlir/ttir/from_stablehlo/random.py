"""Random numbers of StableHLO that others write. What PyTorch draws has a seed and is arithmetic by the time it is
StableHLO (dynamo/decompositions/random.py)."""

from __future__ import annotations

import math
from typing import Any

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttir.from_stablehlo.creation import EXACT, full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES

SMALLEST = 2.0**-24  # above zero, so that it has a logarithm; the distance of float32 numbers below one is this


@RULES.rewrites("stablehlo.rng")
def rng(op: Any, b: Builder) -> Any:
    """Each run draws anew: UNIFORM between two scalars, NORMAL of a mean and a deviation."""
    first, second, _ = op.operands
    result = op.results[0]
    uniform = "UNIFORM" in str(op.attributes["rng_distribution"])
    low, high = splat_of(first), splat_of(second)
    if not isinstance(dtype(result), ir.FloatType):
        known = uniform and low is not None and high is not None
        return _integers(b, result, low, high) if known and 0 < high - low <= EXACT else None

    def drawn(low: float, high: float) -> Any:
        return b("ttir.rand", type=result.type, size=shape(result), low=low, high=high)

    if uniform and low is not None and high is not None:
        return drawn(low, high)
    rank = [1] * len(shape(result))
    first, second = (b("ttir.reshape", v, shape=rank) for v in (first, second))
    if uniform:
        spread = b("ttir.subtract", second, first)
        return b("ttir.add", b("ttir.multiply", drawn(0.0, 1.0), spread), first)
    # Box and Muller's form of two independent numbers.
    scale = b("ttir.multiply", b("ttir.log", drawn(SMALLEST, 1.0)), full(b, rank, dtype(result), -2.0))
    angle = b("ttir.cos", drawn(0.0, 2 * math.pi))
    normal = b("ttir.multiply", b("ttir.sqrt", scale), angle)
    return b("ttir.add", b("ttir.multiply", normal, second), first)


def _integers(b: Builder, result: Any, low: int, high: int) -> Any:
    """From `low` to below `high`, so few that a float32 tells them apart."""
    kind, span = tensor(shape(result), ir.F32Type.get()), high - low
    number = b("ttir.floor", b("ttir.rand", type=kind, size=shape(result), low=0.0, high=float(span)))
    number = b("ttir.clamp_scalar", number, min=0.0, max=float(span - 1))  # a product may round up to the end
    number = b("ttir.typecast", number, dtype=dtype(result))
    return b("ttir.add", number, full(b, [1] * len(shape(result)), dtype(result), low))

"""Random numbers in StableHLO from other front-ends. Random numbers of PyTorch have a seed and are plain arithmetic in
StableHLO: see dynamo/decompositions/random.py.
"""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttir.from_stablehlo.creation import EXACT, full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value

# It is larger than zero, because its logarithm is needed. It is the distance of float32 numbers just below 1.
SMALLEST = 2.0**-24


@RULES.rewrites("stablehlo.rng")
def rng(op: Op, b: Builder) -> Value | None:
    """New numbers at each run: UNIFORM between two scalars, or NORMAL with a mean and a standard deviation."""
    first, second, _ = op.operands
    result = op.results[0]
    uniform = "UNIFORM" in str(op.attributes["rng_distribution"])
    low, high = splat_of(first), splat_of(second)
    if not isinstance(dtype(result), ir.FloatType):
        if not uniform or low is None or high is None or not 0 < high - low <= EXACT:
            return None
        return _integers(b, result, low, high)

    def drawn(low: float, high: float) -> Value:
        return b("ttir.rand", type=result.type, size=shape(result), low=low, high=high)

    if uniform and low is not None and high is not None:
        return drawn(low, high)
    rank = [1] * len(shape(result))
    first, second = (b("ttir.reshape", v, shape=rank) for v in (first, second))
    if uniform:
        spread = b("ttir.subtract", second, first)
        return b("ttir.add", b("ttir.multiply", drawn(0.0, 1.0), spread), first)
    # The method of Box and Muller, from two independent uniform numbers.
    scale = b("ttir.multiply", b("ttir.log", drawn(SMALLEST, 1.0)), full(b, rank, dtype(result), -2.0))
    angle = b("ttir.cos", drawn(0.0, 2 * math.pi))
    normal = b("ttir.multiply", b("ttir.sqrt", scale), angle)
    return b("ttir.add", b("ttir.multiply", normal, second), first)


def _integers(b: Builder, result: Value, low: float, high: float) -> Value:
    """Integers in [low, high). There are so few that float32 can represent how far each is from `low`."""
    kind, span = tensor(shape(result), ir.F32Type.get()), high - low
    number = b("ttir.floor", b("ttir.rand", type=kind, size=shape(result), low=0.0, high=float(span)))
    number = b("ttir.clamp_scalar", number, min=0.0, max=float(span - 1))  # the product may be rounded up to `span`
    number = b("ttir.typecast", number, dtype=dtype(result))
    return b("ttir.add", number, full(b, [1] * len(shape(result)), dtype(result), low))

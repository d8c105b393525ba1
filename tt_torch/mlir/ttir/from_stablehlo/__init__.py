"""StableHLO (and CHLO) to TTIR: one file per family of ops, all registered in `RULES`."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.stablehlo.flatten import flatten
from tt_torch.mlir.stablehlo.normalize import DEVICE_TYPES, normalize, retype_function
from tt_torch.mlir.ttir.from_stablehlo import (  # noqa: F401  (importing registers the rules)
    collectives,
    composites,
    convolution,
    creation,
    custom_calls,
    data_movement,
    dynamic,
    elementwise,
    indexing,
    matmul,
    normalization,
    ordering,
    pooling,
    random,
    random_bits,
    reduction,
)
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES, unsupported

elementwise.take_the_rest()
SOURCE = ("stablehlo.", "chlo.", "arith.", "tensor.", "func.call")
TARGET = ("ttir.", "func.return")


def convert(module: ir.Module) -> None:
    """Converts `main` and drops decompositions of composites. Raises UnsupportedOpError for an op without a rule."""
    flatten(module, composites.is_known, RULES.names)
    normalize(module)
    RULES.convert(module)
    (function,) = module.body.operations
    for argument in function.regions[0].blocks[0].arguments:
        if _foreign(argument) and (use := next(iter(argument.uses), None)):
            raise unsupported(use.owner)
    for op in function.regions[0].blocks[0].operations:
        used = any(True for r in op.results for _ in r.uses)
        unknown = not op.operation.name.startswith((*SOURCE, *TARGET))  # it may do something without a result
        if unknown or (used and (op.operation.name.startswith(SOURCE) or any(_foreign(r) for r in op.results))):
            raise unsupported(op)
    with module.context, ir.Location.unknown():
        retype_function(function)


def _foreign(value: ir.Value) -> bool:
    """Whether the device has no type for the value, for example for complex numbers."""
    return not isinstance(value.type, ir.RankedTensorType) or str(value.type.element_type) not in DEVICE_TYPES

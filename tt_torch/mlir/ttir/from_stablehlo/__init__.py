"""StableHLO (and CHLO) to TTIR: one file per family of ops, all registered in `RULES`."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.context import describe, node_of
from tt_torch.mlir.stablehlo.normalize import DEVICE_TYPES, normalize, retype_function
from tt_torch.mlir.ttir.from_stablehlo import (  # noqa: F401  (importing registers the rules)
    composites,
    convolution,
    creation,
    data_movement,
    dynamic,
    elementwise,
    indexing,
    matmul,
    normalization,
    ordering,
    pooling,
    random,
    reduction,
)
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES

SOURCE = ("stablehlo.", "chlo.", "arith.", "tensor.", "func.call")


def convert(module: ir.Module) -> None:
    """Converts `main`; the decompositions of composites are dropped. Names the first op without a rule."""
    for function in list(module.body.operations):
        if function.name.value != "main":
            function.operation.erase()
    normalize(module)
    RULES.convert(module)
    (function,) = module.body.operations
    for op in function.regions[0].blocks[0].operations:
        used = any(True for r in op.results for _ in r.uses)
        if used and (op.operation.name.startswith(SOURCE) or any(_foreign(r) for r in op.results)):
            raise unsupported(op)
    with module.context, ir.Location.unknown():
        retype_function(function)


def _foreign(value: ir.Value) -> bool:
    """Whether no device type stands for those of the value, as for complex numbers."""
    return str(value.type.element_type) not in DEVICE_TYPES


def unsupported(op: ir.OpView) -> UnsupportedOpError:
    """The error of an op without a rule, by its ATen name where the location has it."""
    name, target = node_of(op.location)
    signature = str(op).split(" loc(")[0].strip().splitlines()[0][:200]
    detail = f"node {name} needs {signature}" if name else signature
    return UnsupportedOpError(target or op.operation.name, "stablehlo-to-ttir", describe(op.location), detail)

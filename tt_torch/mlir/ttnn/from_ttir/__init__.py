"""TTIR to TTNN. Most ops only change their dialect. Results get the layout that their op produces (see `types`)."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.context import describe, node_of
from tt_torch.mlir.functions import VARYING, argument_kinds
from tt_torch.mlir.stablehlo.normalize import retype_function
from tt_torch.mlir.ttnn.from_ttir import (  # noqa: F401  (registers the rules)
    computing,
    creation,
    structured,
)
from tt_torch.mlir.ttnn.from_ttir.registry import RULES
from tt_torch.mlir.ttnn.layout import Layout, wire_dtype, with_layout
from tt_torch.mlir.types import Function

computing.take_the_rest()
STATES_IN_TILES = ("Float32", "BFloat16")


def convert(module: ir.Module) -> None:
    """Converts `main`: arguments get their placement, ops their TTNN form."""
    (function,) = module.body.operations
    with module.context, ir.Location.unknown():
        _place_arguments(function)
    RULES.convert(module)
    for op in function.regions[0].blocks[0].operations:
        if op.operation.name.startswith("ttir."):
            name, target = node_of(op.location)
            detail = f"node {name} needs {op.operation.name}" if name else op.operation.name
            raise UnsupportedOpError(target or op.operation.name, "ttir-to-ttnn", describe(op.location), detail)
    with module.context, ir.Location.unknown():
        retype_function(function)


def _place_arguments(function: Function) -> None:
    """Inputs are row-major in DRAM, to which the runtime uploads them. States stay in DRAM in the form that ops make,
    which is tiles for floats. Parameters and constants are in host memory, where const-eval reads them. It leaves on
    the device only the tensors that the program uses."""
    for argument, kind in zip(function.arguments, argument_kinds(function), strict=True):
        buffer = "DRAM" if kind in VARYING else "SystemMemory"
        dtype = wire_dtype(str(argument.type.element_type))
        layout = Layout(dtype, tiled=kind == "state" and dtype in STATES_IN_TILES, buffer=buffer)
        argument.set_type(with_layout(list(argument.type.shape), layout))

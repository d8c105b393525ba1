"""Writes the options `math_fidelity` and `fp32_dest_acc_en` on all ops that compute on the matrix unit or can do so.

Which ops these are is read from the wire table: those that have a field `compute_config`. An op without the attribute
has the default, and an op with an empty one leaves the choice to the library (see `to_binary.SETTINGS`).
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block
from tt_torch.mlir.ttnn.precision import Precision
from tt_torch.mlir.types import Attrs

FIELD = "compute_config"
OPTIONS = ("math_fidelity", "fp32_dest_acc_en")
# The members of the wire's enum, by tt-mlir's name of the option's value.
FIDELITIES = {"lofi": "LoFi", "hifi2": "HiFi2", "hifi3": "HiFi3", "hifi4": "HiFi4"}


def set_compute_config(module: ir.Module, precision: Precision) -> None:
    """Sets the attribute in all functions, also in those of const-eval, unless both options have their defaults."""
    if not any(map(precision.has, OPTIONS)):
        return
    with module.context:
        for function in module.body.operations:
            for op in (op.operation for op in block(function).operations):
                if op.name in ods.OPS and FIELD in ods.OPS[op.name].attrs:
                    op.attributes[FIELD] = ods.to_attr("dict", _config(precision.of(op)))


def _config(chosen: Attrs) -> Attrs:
    if chosen["math_fidelity"] not in FIDELITIES:
        return {}
    return {name: FIDELITIES.get(chosen[name], chosen[name]) for name in OPTIONS}

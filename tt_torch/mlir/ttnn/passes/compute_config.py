"""Writes the options `math_fidelity` and `fp32_dest_acc_en` on all ops that compute on the matrix unit or can do so.

Which ops these are is read from the wire table: those that have a field `compute_config`. An op without the attribute
has the default, and an op with an empty one leaves the choice to the library (see `to_binary.SETTINGS`).
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.compiler_options import CompilerOptions
from tt_torch.mlir import ods
from tt_torch.mlir.functions import block
from tt_torch.mlir.types import Attrs

FIELD = "compute_config"
# The members of the wire's enum, by tt-mlir's name of the option's value.
FIDELITIES = {"lofi": "LoFi", "hifi2": "HiFi2", "hifi3": "HiFi3", "hifi4": "HiFi4"}


def set_compute_config(module: ir.Module, options: CompilerOptions) -> None:
    """Sets the attribute in all functions, const-eval ones included, unless both options have their defaults."""
    defaults = CompilerOptions()
    if (options.math_fidelity, options.fp32_dest_acc_en) == (defaults.math_fidelity, defaults.fp32_dest_acc_en):
        return
    with module.context:
        config = ods.to_attr("dict", _config(options))
        for function in module.body.operations:
            for op in (op.operation for op in block(function).operations):
                if op.name in ods.OPS and FIELD in ods.OPS[op.name].attrs:
                    op.attributes[FIELD] = config


def _config(options: CompilerOptions) -> Attrs:
    if options.math_fidelity not in FIDELITIES:
        return {}
    return {"math_fidelity": FIDELITIES[options.math_fidelity], "fp32_dest_acc_en": options.fp32_dest_acc_en}

"""Writes the collectives of a graph as ops of StableHLO. Before this they are custom calls: see mlir/user_ops.py.

StableHLO has no op for a chip's own part of a tensor, so `tt_mesh.mesh_partition` stays a custom call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch_mlir import ir

from tt_torch.dynamo.mesh_ops import TARGET
from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main, replace
from tt_torch.mlir.mesh import groups_along, mesh_of
from tt_torch.mlir.stablehlo.build import add_body
from tt_torch.mlir.types import Op

COMBINING = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum"}
Attributes = Mapping[str, Any]  # of the op of a graph


def write_collectives(module: ir.Module) -> None:
    """Replaces the custom calls of collectives in a module, which must have its mesh as an attribute."""
    for op in [op.operation for op in block(main(module)).operations]:
        target = ods.attr(op, "call_target_name") if op.name == "stablehlo.custom_call" else ""
        form = FORMS.get(target.removeprefix(TARGET)) if target.startswith(TARGET) else None
        if form:
            with ir.InsertionPoint(op), op.location:
                replace(op, _collective(op, target.removeprefix(TARGET), form))


def _collective(op: Op, name: str, form: Callable[[Attributes], Attributes]) -> ir.Operation:
    a = ods.attr(op, "mhlo.frontend_attributes")
    groups = np.array(groups_along(a["axes"], mesh_of(op)), dtype=np.int64)
    attributes = {key: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n) for key, n in form(a).items()}
    attributes["replica_groups"] = ir.DenseElementsAttr.get(groups)
    attributes["channel_handle"] = ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>")
    if name != "all_to_all":
        attributes["use_global_device_ids"] = ir.UnitAttr.get()
    kinds = [r.type for r in op.results]
    new = ir.Operation.create(f"stablehlo.{name}", kinds, list(op.operands), attributes, regions="reduce" in a)
    if "reduce" in a:
        add_body(new.regions[0], ir.RankedTensorType(kinds[0]).element_type, COMBINING[a["reduce"]])
    return new


FORMS: dict[str, Callable[[Attributes], Attributes]] = {
    "all_gather": lambda a: {"all_gather_dim": a["dim"]},
    "all_reduce": lambda a: {},
    "reduce_scatter": lambda a: {"scatter_dimension": a["dim"]},
    "all_to_all": lambda a: {
        "split_dimension": a["split"], "concat_dimension": a["join"], "split_count": a["count"]
    },
}  # fmt: skip

"""Unsigned integers and int16 in ONNX models. torch-mlir refuses casts to most of them, and unsigned constants.

The casts cross torch-mlir as calls, and become converts. So does BitCast, which torch-mlir does not know, for types of
at most 32 bits: the device lacks the upper bits of 64-bit types. The constants are casts of signed constants. Mod of
floats crosses as a call, too, and becomes a remainder, which is exact: torch-mlir subtracts a rounded multiple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main, replace
from tt_torch.mlir.onnx_corrections import UNSIGNED, refill
from tt_torch.mlir.onnx_folding import constant
from tt_torch.mlir.stablehlo.normalize import element_name
from tt_torch.mlir.user_ops import CustomCall, is_call, outline

if TYPE_CHECKING:
    import onnx

TARGET, BITS, REST = "tt_torch.cast", "tt_torch.bitcast", "tt_torch.remainder"
OPSET = "torch.onnx_meta.opset_version"
ELEMENTS = ("si16", "ui8", "ui16", "ui32", "ui64")


def cast_constants(model: onnx.ModelProto) -> None:
    """Writes unsigned constants as casts."""
    graph = model.graph
    given = {value.name: value for value in graph.initializer}
    casts = {name: made for name, value in given.items() if (made := _cast(name, value, ""))}
    initializers = [value for value in graph.initializer if value.name not in casts]
    nodes = [new for made in casts.values() for new in made]
    for node in graph.node:
        plain = node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value"
        cast = plain and _cast(node.output[0], node.attribute[0].t, node.name)
        nodes += cast or [node]
    refill(graph.initializer, initializers)
    refill(graph.node, nodes)


def _cast(name: str, value: onnx.TensorProto, node: str) -> list[onnx.NodeProto]:
    """The nodes that cast the value from int64, or from int32 if its type is uint32. Numbers that the signed type lacks
    are negative ones there. There are no nodes if the value has another type."""
    from onnx import TensorProto
    from onnx.helper import make_node
    from onnx.numpy_helper import to_array

    if value.data_type not in UNSIGNED:
        return []
    signed = f"{name}/signed"
    kind = np.int32 if value.data_type == TensorProto.UINT32 else np.int64
    number = constant(signed, to_array(value).astype(kind), node)
    return [number, make_node("Cast", [signed], [name], node, to=value.data_type)]


def outline_casts(module: ir.Module) -> None:
    """Replaces the nodes Cast of an imported model that torch-mlir refuses, the nodes BitCast, and Mod of floats."""
    ops = [op.operation for op in block(main(module)).operations if op.operation.name == "torch.operator"]
    for number, op in enumerate(ops):
        name, to = ods.attr(op, "name"), _element(op.results[0])
        if name == "onnx.Cast" and to in ELEMENTS:
            outline_node(op, CustomCall(TARGET, {}), f"cast{number}", module)
        elif name == "onnx.BitCast":
            outline_node(op, CustomCall(BITS, {}), f"cast{number}", module)
        elif name == "onnx.Mod" and "f" in to:
            outline_node(op, CustomCall(REST, {}), f"cast{number}", module)


def _element(value: ir.Value) -> str:
    """The element type of a tensor of the torch dialect."""
    return str(value.type).rstrip(">").rpartition(",")[2]


def outline_node(op: ir.Operation, call: CustomCall, symbol: str, module: ir.Module) -> None:
    """Replaces a node by a call. torch-mlir wants an opset for the called function, too."""
    outline(op, call, symbol, module)
    (function,) = (f for f in module.body.operations if f.name.value == symbol)
    function.attributes[OPSET] = main(module).attributes[OPSET]


def write_casts(module: ir.Module) -> None:
    """Writes the calls as StableHLO. A boolean has the bits of 0 or 1."""
    for op in [op.operation for op in block(main(module)).operations]:
        if is_call(op, REST):
            with ir.InsertionPoint(op), op.location:
                kinds = [r.type for r in op.results]
                replace(op, ir.Operation.create("chlo.broadcast_remainder", kinds, list(op.operands)))
        elif is_call(op, TARGET) or is_call(op, BITS):
            boolean = "i1" in [element_name(x) for x in (op.operands[0], op.results[0])]
            name = "convert" if is_call(op, TARGET) or boolean else "bitcast_convert"
            with ir.InsertionPoint(op), op.location:
                replace(op, ir.Operation.create(f"stablehlo.{name}", [r.type for r in op.results], list(op.operands)))

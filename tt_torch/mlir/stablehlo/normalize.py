"""Replaces element types of PyTorch programs by those that the device has, before StableHLO becomes TTIR.

i64 -> i32, f64 -> f32, i1 -> bf16 (zeros and ones), f16 -> f32, i8 and i16 -> i32. The runtime converts the
caller's tensors at upload and download, so that users keep PyTorch's dtypes.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch_mlir import ir

from tt_torch.mlir.types import Function, TensorType, Value

NORMAL = {"i64": "i32", "ui64": "ui32", "f64": "f32", "i1": "bf16", "f16": "f32", "i8": "i32", "i16": "i32"}

MARKED = ("stablehlo.convert", "stablehlo.bitcast_convert")
DEVICE_TYPES = {"f32", "bf16", "i32", "ui32", "ui16", "ui8"}


def normal_type(kind: TensorType | ir.Type) -> TensorType | ir.Type:
    """The device type of a tensor type; other types pass."""
    name = NORMAL.get(str(kind.element_type)) if isinstance(kind, ir.RankedTensorType) else None
    return ir.RankedTensorType.get(kind.shape, ir.Type.parse(name)) if name else kind


def normalize(module: ir.Module) -> None:
    """Retypes every value of the module. Constants keep their attribute; their rule converts it."""
    with module.context, ir.Location.unknown():
        for function in module.body.operations:
            for block in function.regions[0].blocks:
                _retype(block.arguments)
                for op in block.operations:
                    _mark(op.operation)
                    _retype(op.operation.results)
            retype_function(function)


def _mark(op: ir.Operation) -> None:
    """Notes what the device types no longer show: that a convert to boolean means "is not zero", and the source type of
    a bitcast."""
    name = str(op.results[0].type.element_type) if op.name in MARKED else ""
    if op.name == "stablehlo.convert" and name == "i1":
        op.attributes["tt.to_bool"] = ir.UnitAttr.get()
    if op.name == "stablehlo.bitcast_convert" and name in NORMAL:
        op.attributes["tt.retyped"] = ir.UnitAttr.get()


def _retype(values: Iterable[Value]) -> None:
    for value in values:
        new = normal_type(value.type)
        if new is not value.type:
            value.set_type(new)


def retype_function(function: Function) -> None:
    """Sets the signature of a function to the types of its arguments and of its return op."""
    block = function.regions[0].blocks[0]
    returned = [v.type for v in list(block.operations)[-1].operation.operands]
    signature = ir.FunctionType.get([a.type for a in block.arguments], returned)
    function.attributes["function_type"] = ir.TypeAttr.get(signature)

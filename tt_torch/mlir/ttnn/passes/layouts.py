"""Gives every operand the layout that its op requires, with as few conversions as possible.

An op requires tiles on the device, unless its declaration says otherwise (`needs`). If a value is needed in another
layout, it is converted once, before the first use in that layout; later uses share the result.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import main
from tt_torch.mlir.rules import Builder, producer, shape
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.passes.prepare_convolutions import PREPARED
from tt_torch.mlir.ttnn.precision import Precision
from tt_torch.mlir.types import Value

# These ops take any layout, because they change layouts.
FREE = ("ttnn.to_layout", "ttnn.to_device", "ttnn.from_device", "ttnn.to_memory_config")

# Operands that get the data type `weight_dtype` if they are constant.
WEIGHTS = {("ttnn.matmul", "b"), ("ttnn.linear", "b")}


def assign_layouts(module: ir.Module, precision: Precision) -> None:
    """Inserts to_device, to_layout, typecast and from_device before ops whose operands have another layout."""
    converted: dict[tuple[Value, Layout], Value] = {}
    with module.context, ir.Location.unknown():
        weights = constant_values(main(module)) if precision.has("weight_dtype") else set()
        for op in list(main(module).regions[0].blocks[0].operations):
            op = op.operation
            if not op.name.startswith("ttnn.") or op.name in FREE:
                continue
            for i, name in enumerate(_operand_names(op)):
                target = wanted(op, name, op.operands[i])
                if (op.name, name) in WEIGHTS and op.operands[i] in weights:
                    target = target.with_(dtype=precision.weight_type(op) or target.dtype)
                _fix(op, i, target, converted)


def _operand_names(op: ir.Operation) -> list[str]:
    """The declared name of each operand. All operands of a variadic group have the same name."""
    names = []
    for name, value in ods.operands_of(op).items():
        names += [name] * (len(value) if isinstance(value, list) else value is not None)
    return names


def wanted(op: ir.Operation, name: str, value: Value) -> Layout:
    """The layout that `op` requires for its operand `name`."""
    layout = layout_of(value)
    if producer(value, *PREPARED):
        return layout
    needs = ods.OPS[op.name].facts.get("needs", {}).get(name, {})
    needs = needs(op, layout) if callable(needs) else needs
    return layout.with_(**{"tiled": True, "buffer": layout.buffer if layout.on_device else "DRAM", **needs})


def _fix(op: ir.Operation, index: int, target: Layout, converted: dict[tuple[Value, Layout], Value]) -> None:
    value = op.operands[index]
    if layout_of(value) == target:
        return
    if (value, target) not in converted:
        with ir.InsertionPoint(op), op.location:
            converted[value, target] = convert(Builder(), value, target)
    op.operands[index] = converted[value, target]


def convert(b: Builder, value: Value, target: Layout) -> Value:
    """`value` in the layout `target`: moved to the device first, then converted there, and moved to the host last.

    The library can change the data type while it makes tiles, but not while it makes rows. It makes no tiles of bytes.
    """
    size, current = shape(value), layout_of(value)
    if target.on_device and not current.on_device:
        current = current.with_(buffer=target.buffer)
        value = b("ttnn.to_device", value, type=with_layout(size, current))
    bytes_to_tiles = current.dtype == "UInt8" and target.tiled and not current.tiled
    if bytes_to_tiles or (current.dtype != target.dtype and not target.tiled):
        current = current.with_(dtype="UInt16" if target.dtype == "UInt8" else target.dtype)
        value = b("ttnn.typecast", value, type=with_layout(size, current))
    if current.tiled != target.tiled:
        current = current.with_(tiled=target.tiled, dtype=current.dtype if bytes_to_tiles else target.dtype)
        value = b("ttnn.to_layout", value, type=with_layout(size, current))
    if current.dtype != target.dtype:
        current = current.with_(dtype=target.dtype)
        value = b("ttnn.typecast", value, type=with_layout(size, current))
    if target.memory_layout != current.memory_layout:
        current = target
        value = b("ttnn.to_memory_config", value, type=with_layout(size, current))
    if current.on_device and not target.on_device:
        current = current.with_(buffer="SystemMemory")
        value = b("ttnn.from_device", value, type=with_layout(size, current))
    return value

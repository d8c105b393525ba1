"""Gives an op of a module the form that was chosen for it."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, shape, users
from tt_torch.mlir.ttnn.layout import Layout, layout_of, memory_config, with_layout
from tt_torch.mlir.ttnn.optimizer.choice import Choice, configure, steps
from tt_torch.mlir.ttnn.optimizer.cores import Cores
from tt_torch.mlir.ttnn.optimizer.products import cast_to_blocks
from tt_torch.mlir.types import Attrs, Value


def moved(op: ir.Operation, value: Value, layout: Layout) -> Value:
    """A value in another place, to which it is moved before an op."""
    with ir.InsertionPoint(op), op.location:
        for place in steps(layout_of(value), layout):
            name = "ttnn.to_memory_config" if place.tiled == layout_of(value).tiled else "ttnn.to_layout"
            value = Builder()(name, value, type=with_layout(shape(value), place))
    return value


def take(op: ir.Operation, choice: Choice, cores: Cores) -> list[Value]:
    """Gives an op, whose operands were moved, the attributes and the results of a form. Returns weights that had to be
    prepared anew."""
    made = [_split(op, index, choice.operands[index]) for index in choice.weights]
    configure(op, choice.attributes)
    if op.name == "ttnn.conv2d" and "conv2d_config" in choice.attributes:
        made = _prepare_for(op, layout_of(op.operands[0]), cores)
    for result, layout in choice.makes(op):
        result.set_type(with_layout(shape(result), layout))
    return made


def _split(op: ir.Operation, index: int, layout: Layout) -> Value:
    """Splits the weight of a product over the banks of DRAM. There, it must not be transposed."""
    weight = op.operands[index]
    with ir.InsertionPoint(op), op.location:
        value = _transposed(weight) if ods.attr(op, "transpose_b") else weight
    op.operands[index] = made = moved(op, value, layout)
    return made


def _transposed(weight: Value) -> Value:
    """The transposed weight. Block floats are made after that: their rounding depends on how the weight lies, and so it
    is rounded once."""
    made, cast = layout_of(weight), cast_to_blocks(weight)
    value = cast.operands[0] if cast else weight
    if not layout_of(value).tiled:
        value = Builder()("ttnn.to_layout", value, type=with_layout(shape(value), layout_of(value).with_(tiled=True)))
    *outer, rows, columns = shape(value)
    kind = with_layout([*outer, columns, rows], layout_of(value))
    turned = Builder()("ttnn.transpose", value, type=kind, dim0=-2, dim1=-1)
    return Builder()("ttnn.typecast", turned, type=with_layout(shape(turned), made)) if cast else turned


def _prepare_for(op: ir.Operation, layout: Layout, cores: Cores) -> list[Value]:
    """Prepares the weights of a convolution anew, for the parts that its cores get."""
    x, config = op.operands[0], ods.attrs_of(op)["conv2d_config"]
    place: Attrs = {"input_memory_config": memory_config(layout, shape(x), cores.columns)}
    place["input_tensor_layout"] = layout.page_layout
    weights = []
    for index, weight in enumerate(list(op.operands)[1:], 1):
        prepared = weight.owner
        attributes: Attrs = ods.attrs_of(prepared) | {"conv2d_config": config} | place
        with ir.InsertionPoint(op), prepared.location:
            made = Builder()(prepared.name, prepared.operands[0], type=weight.type, **attributes)
        op.operands[index] = made
        weights.append(made)
        if not users(weight):
            prepared.erase()
    return weights

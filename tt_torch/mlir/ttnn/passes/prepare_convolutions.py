"""Prepares constant weights of convolutions once: the device needs them in blocks."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, Rule, RuleSet, producer, shape
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.precision import Precision
from tt_torch.mlir.types import Attrs, Op, Value

PREPARED = ("ttnn.prepare_conv2d_weights", "ttnn.prepare_conv2d_bias")
INTERLEAVED_DRAM = {"tensor_memory_layout": "Interleaved", "buffer_type": "DRAM"}


def prepare_convolutions(module: ir.Module, precision: Precision) -> None:
    """Inserts the preparing ops. Weights of 1x1 convolutions get the data type that `weight_dtype` has for them."""
    rules = RuleSet("prepare-convolutions")
    rules.rows(prepare, {"ttnn.conv2d": precision})
    rules.convert(module)


def prepare(precision: Precision) -> Rule:
    def rule(op: Op, b: Builder) -> Value | None:
        operands, attributes = ods.operands_of(op), ods.attrs_of(op)
        weight, bias = operands["weight"], operands["bias"]
        if producer(weight, *PREPARED) or not is_constant(weight) or not (bias is None or is_constant(bias)):
            return None
        dtype = (_is_product(weight, attributes) and precision.weight_type(op)) or layout_of(weight).dtype
        # The library has no default for this data type; the bias has the same one.
        attributes["conv2d_config"] = (attributes["conv2d_config"] or {}) | {"weights_dtype": dtype}
        described = attributes | _future_input(operands["input"])
        has_bias = bias is not None
        kind = with_layout(_prepared_shape(weight, attributes["groups"]), Layout(dtype))
        operands["weight"] = b("ttnn.prepare_conv2d_weights", weight, type=kind, has_bias=has_bias, **described)
        if has_bias:
            kind = with_layout(shape(bias), Layout(dtype))
            operands["bias"] = b("ttnn.prepare_conv2d_bias", bias, type=kind, **described)
        return b("ttnn.conv2d", *operands.values(), type=op.results[0].type, **attributes)

    return rule


def _is_product(weight: Value, attributes: Attrs) -> bool:
    """Whether a convolution is a matrix product. The library prepares block floats for no others: "Only TILE layout
    is supported for BFLOAT8_B dtype!"
    """
    plain = shape(weight)[2:] == [1, 1] and not any(attributes["padding"]) and attributes["groups"] == 1
    return plain and all(s == 1 for s in attributes["stride"])


def _future_input(activation: Value) -> Attrs:
    """The attributes that describe the input of the convolution to the op that prepares its weights."""
    dtype = layout_of(activation).dtype
    return {"input_dtype": dtype, "input_tensor_layout": "Tile", "input_memory_config": INTERLEAVED_DRAM}


def _prepared_shape(weight: Value, groups: int) -> list[int]:
    """(1, 1, KH * KW * C, O): one row per element of a filter, and one column per filter. With groups, filters have
    zeros for the channels of other groups."""
    out, inner, height, width = shape(weight)
    return [1, 1, height * width * inner * groups, out]

"""Convolutions whose weights are known before the inputs take them prepared: blocked for the device, once."""

from __future__ import annotations

from typing import Any

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, producer, shape
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout

RULES = RuleSet("prepare-convolutions")
PREPARED = ("ttnn.prepare_conv2d_weights", "ttnn.prepare_conv2d_bias")
INTERLEAVED_DRAM = {"tensor_memory_layout": "Interleaved", "buffer_type": "DRAM"}


@RULES.rewrites("ttnn.conv2d")
def prepare(op: Any, b: Builder) -> Any:
    operands, attributes = ods.operands_of(op), ods.attrs_of(op)
    weight, bias = operands["weight"], operands["bias"]
    if producer(weight, *PREPARED) or not is_constant(weight) or not (bias is None or is_constant(bias)):
        return None
    activation = layout_of(operands["input"])
    described = attributes | {
        "input_dtype": activation.dtype,
        "input_tensor_layout": "Tile",
        "input_memory_config": INTERLEAVED_DRAM,
    }
    kind = with_layout(_prepared_shape(weight), Layout(layout_of(weight).dtype))
    has_bias = bias is not None
    operands["weight"] = b("ttnn.prepare_conv2d_weights", weight, type=kind, has_bias=has_bias, **described)
    if has_bias:
        kind = with_layout(shape(bias), Layout(layout_of(bias).dtype))
        operands["bias"] = b("ttnn.prepare_conv2d_bias", bias, type=kind, **described)
    return b("ttnn.conv2d", *operands.values(), type=op.results[0].type, **attributes)


def _prepared_shape(weight: Any) -> list[int]:
    """(1, 1, KH * KW * C / groups, O): one row per element of a filter, one column per filter."""
    out, inner, height, width = shape(weight)
    return [1, 1, height * width * inner, out]


def prepare_convolutions(module: ir.Module) -> None:
    RULES.convert(module)

"""Convolutions whose weights are known before the inputs take them prepared: blocked for the device, once."""

from __future__ import annotations

from typing import Any

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, Rule, RuleSet, producer, shape
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttnn.layout import BLOCK_FLOATS, Layout, layout_of, with_layout

PREPARED = ("ttnn.prepare_conv2d_weights", "ttnn.prepare_conv2d_bias")
INTERLEAVED_DRAM = {"tensor_memory_layout": "Interleaved", "buffer_type": "DRAM"}


def prepare_convolutions(module: ir.Module, weight_dtype: str | None = None) -> None:
    """Inserts the preparing ops; weights become block floats when `weight_dtype` says so."""
    rules = RuleSet("prepare-convolutions")
    rules.rows(prepare, {"ttnn.conv2d": weight_dtype and BLOCK_FLOATS[weight_dtype]})
    rules.convert(module)


def prepare(weights_dtype: str | None) -> Rule:
    def rule(op: Any, b: Builder) -> Any:
        operands, attributes = ods.operands_of(op), ods.attrs_of(op)
        weight, bias = operands["weight"], operands["bias"]
        if producer(weight, *PREPARED) or not is_constant(weight) or not (bias is None or is_constant(bias)):
            return None
        if weights_dtype:
            attributes["conv2d_config"] = (attributes["conv2d_config"] or {}) | {"weights_dtype": weights_dtype}
        described = attributes | _future_input(operands["input"])
        kind = with_layout(_prepared_shape(weight), Layout(weights_dtype or layout_of(weight).dtype))
        has_bias = bias is not None
        operands["weight"] = b("ttnn.prepare_conv2d_weights", weight, type=kind, has_bias=has_bias, **described)
        if has_bias:
            kind = with_layout(shape(bias), Layout(layout_of(bias).dtype))
            operands["bias"] = b("ttnn.prepare_conv2d_bias", bias, type=kind, **described)
        return b("ttnn.conv2d", *operands.values(), type=op.results[0].type, **attributes)

    return rule


def _future_input(activation: Any) -> dict[str, Any]:
    """What the preparation must know of the convolution's input."""
    dtype = layout_of(activation).dtype
    return {"input_dtype": dtype, "input_tensor_layout": "Tile", "input_memory_config": INTERLEAVED_DRAM}


def _prepared_shape(weight: Any) -> list[int]:
    """(1, 1, KH * KW * C / groups, O): one row per element of a filter, one column per filter."""
    out, inner, height, width = shape(weight)
    return [1, 1, height * width * inner, out]

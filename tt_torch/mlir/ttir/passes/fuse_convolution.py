"""Fuses per-channel ops into the convolution before them: batch norm, scales, biases, ReLU.

Batch norm becomes a scale and a shift. `sink_data_movement` brings both next to the convolution. They depend only on
parameters, so const-eval computes the folded weights once.
"""

from __future__ import annotations

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, dtype, producer, shape, single_use
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.types import Attr, Op, Value

RULES = RuleSet("fuse-convolution")


@RULES.rewrites("ttir.batch_norm_inference")
def batch_norm(op: Op, b: Builder) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset as x * factor + shift."""
    x, scale, offset, mean, variance = op.operands
    epsilon = full(b, [1], dtype(variance), ods.attr(op, "epsilon"))
    factor = b("ttir.multiply", scale, b("ttir.rsqrt", b("ttir.add", variance, epsilon)))
    shift = b("ttir.subtract", offset, b("ttir.multiply", mean, factor))
    sizes = [1] * len(shape(x))
    sizes[ods.attr(op, "dimension")] = shape(scale)[0]
    factor, shift = (b("ttir.reshape", v, shape=sizes) for v in (factor, shift))
    return b("ttir.add", b("ttir.multiply", x, factor), shift)


def _conv_and_vector(op: Op) -> tuple[Op, Value] | tuple[None, None]:
    """The convolution whose only reader is `op`, and the other operand of `op` if it is a constant per channel."""
    for product, vector in (op.operands, list(op.operands)[::-1]):
        conv = producer(product, "ttir.conv2d")
        if conv is None or not single_use(product) or ods.attr(conv, "activation"):
            continue
        if shape(vector) == [1, 1, 1, shape(product)[-1]] and is_constant(vector):
            return conv, vector
    return None, None


def _rebuilt(b: Builder, conv: Op, **changes: Attr) -> Value:
    operands = ods.operands_of(conv)
    operands |= {k: v for k, v in changes.items() if k in operands}
    attributes = ods.attrs_of(conv) | {k: v for k, v in changes.items() if k not in operands}
    return b.also_from(conv)("ttir.conv2d", *operands.values(), **attributes)


@RULES.rewrites("ttir.multiply")
def scale(op: Op, b: Builder) -> Value | None:
    conv, factor = _conv_and_vector(op)
    if conv is None or not is_constant(ods.operand(conv, "weight")):
        return None
    weight, bias = ods.operand(conv, "weight"), ods.operand(conv, "bias")
    per_filter = b("ttir.reshape", factor, shape=[shape(weight)[0], 1, 1, 1])
    scaled = b("ttir.multiply", weight, per_filter)
    return _rebuilt(b, conv, weight=scaled, bias=bias and b("ttir.multiply", bias, factor))


@RULES.rewrites("ttir.add")
def add_bias(op: Op, b: Builder) -> Value | None:
    conv, vector = _conv_and_vector(op)
    if conv is None:
        return None
    bias = ods.operand(conv, "bias")
    return _rebuilt(b, conv, bias=vector if bias is None else b("ttir.add", bias, vector))


@RULES.rewrites("ttir.relu")
def relu(op: Op, b: Builder) -> Value | None:
    product = op.operands[0]
    conv = producer(product, "ttir.conv2d")
    if conv is None or not single_use(product) or ods.attr(conv, "activation"):
        return None
    return _rebuilt(b, conv, activation="relu")

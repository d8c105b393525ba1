"""Batch norm ops of StableHLO: inference, training and gradient."""

from __future__ import annotations

import math

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value


@RULES.rewrites("stablehlo.batch_norm_inference")
def batch_norm_inference(op: Op, b: Builder) -> Value:
    dimension, epsilon = attrs.integer(op, "feature_index"), attrs.number(op, "epsilon")
    return b("ttir.batch_norm_inference", *op.operands, dimension=dimension, epsilon=epsilon)


class _Features:
    """Ops along the feature dimension of an operand, for both ops of training."""

    def __init__(self, op: Op, b: Builder) -> None:
        x = op.operands[0]
        self.b, self.sizes, self.dim = b, shape(x), attrs.integer(op, "feature_index")
        self.others = [d for d in range(len(self.sizes)) if d != self.dim]
        self.count = math.prod(self.sizes[d] for d in self.others)
        self.epsilon = full(b, [1], dtype(x), attrs.number(op, "epsilon"))

    def spread(self, vector: Value) -> Value:
        """One value per feature, to broadcast with the operand."""
        return self.b("ttir.reshape", vector, shape=[s if d == self.dim else 1 for d, s in enumerate(self.sizes)])

    def sum(self, x: Value) -> Value:
        return self.b("ttir.sum", x, dim_arg=self.others)

    def mean(self, x: Value) -> Value:
        return self.b("ttir.mean", x, dim_arg=self.others)

    def inverse_deviation(self, variance: Value) -> Value:
        return self.b("ttir.rsqrt", self.b("ttir.add", variance, self.epsilon))


@RULES.rewrites("stablehlo.batch_norm_training")
def batch_norm_training(op: Op, b: Builder) -> list[Value]:
    """Returns also the mean and the variance of the batch. The variance is the mean of the squared differences."""
    x, scale, offset = op.operands
    features = _Features(op, b)
    mean = features.mean(x)
    centred = b("ttir.subtract", x, features.spread(mean))
    variance = features.mean(b("ttir.multiply", centred, centred))
    factor = b("ttir.multiply", scale, features.inverse_deviation(variance))
    scaled = b("ttir.multiply", centred, features.spread(factor))
    return [b("ttir.add", scaled, features.spread(offset)), mean, variance]


@RULES.rewrites("stablehlo.batch_norm_grad")
def batch_norm_grad(op: Op, b: Builder) -> list[Value]:
    """The gradients of the operand, the scale and the offset. Source: the specification of StableHLO."""
    x, scale, mean, variance, grad = op.operands
    features = _Features(op, b)
    inverse = features.inverse_deviation(variance)
    normal = b("ttir.multiply", b("ttir.subtract", x, features.spread(mean)), features.spread(inverse))
    to_offset, to_scale = features.sum(grad), features.sum(b("ttir.multiply", grad, normal))
    one = full(b, [1], dtype(x), 1 / features.count)
    average, slope = (features.spread(b("ttir.multiply", v, one)) for v in (to_offset, to_scale))
    rest = b("ttir.subtract", b("ttir.subtract", grad, average), b("ttir.multiply", normal, slope))
    return [b("ttir.multiply", rest, features.spread(b("ttir.multiply", scale, inverse))), to_scale, to_offset]

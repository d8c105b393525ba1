"""Nodes of ONNX's domain for classical machine learning, `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tt_torch.mlir.onnx_nodes import Nodes


def _binarizer(nodes: Nodes) -> bool:
    """1 for numbers above the threshold, and 0 for others."""
    x = nodes.operand(0)
    threshold = nodes.constant(np.array(nodes.given.get("threshold", 0.0)), like=x)
    return nodes.done(nodes.cast(nodes.op("Greater", x, threshold), nodes.facts.types[x]))


def _array_feature_extractor(nodes: Nodes) -> bool:
    """The columns at some positions. A vector is one row."""
    x, positions = nodes.node.input
    count = prod(nodes.facts.shapes[positions])
    rows = nodes.facts.shapes[x][:-1] or [1]
    taken = nodes.op("Gather", x, nodes.op("Reshape", positions, nodes.constant([count])), axis=-1)
    return nodes.done(nodes.op("Reshape", taken, nodes.constant([*rows, count])))


FEATURES: dict[str, Callable[[Nodes], bool]] = {
    "ai.onnx.ml.ArrayFeatureExtractor": _array_feature_extractor,
    "ai.onnx.ml.Binarizer": _binarizer,
}

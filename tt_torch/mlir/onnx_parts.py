"""Nodes of ONNX models that cut tensors, in the forms for which torch-mlir fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tt_torch.mlir.onnx_nodes import Nodes


def _split(nodes: Nodes) -> bool:
    """Parts without elements are constants. If the first part is one, torch-mlir gives it the size of the tensor."""
    x, sizes, axis = nodes.operand(0), nodes.value(1), nodes.given.get("axis", 0)
    if sizes is None or sizes.all():
        return False
    shape, ends = nodes.facts.shapes[x], np.cumsum(sizes)
    for number, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        limits = [nodes.constant([place]) for place in (end - size, end, axis)]
        empty = nodes.constant(np.zeros([0 if d == axis % len(shape) else n for d, n in enumerate(shape)]), like=x)
        nodes.named(number, nodes.op("Slice", x, *limits) if size else empty)
    return True


PARTS: dict[str, Callable[[Nodes], bool]] = {"Split": _split}

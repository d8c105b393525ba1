"""Writes the plain nodes that replace a node of an ONNX model, and keeps what is known about its operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tt_torch.mlir.onnx_folding import Folder, constant, first_result

if TYPE_CHECKING:
    import onnx


class Facts:
    """The element types and shapes of all values in a graph, and the values of constants."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        folder = Folder(model)
        folder.folded(node for node in graph.node if node.op_type == "Constant")
        self.shapes, self.values, self.run = folder.shapes, folder.values, folder.run
        (self.opset,) = (one.version for one in model.opset_import if not one.domain)
        self.types = folder.types
        self.sequences: dict[str, list[str]] = {}  # the names of the elements; the rules of onnx_sequences.py write it


class Nodes:
    """The nodes that replace one node. The names of inner values begin with the name of the node's first result."""

    def __init__(self, node: onnx.NodeProto, facts: Facts) -> None:
        from onnx.helper import get_attribute_value

        self.node, self.facts = node, facts
        self._prefix = first_result(node)
        self.made: list[onnx.NodeProto] = []
        self.given: dict[str, Any] = {a.name: get_attribute_value(a) for a in node.attribute}

    def op(self, op: str, *operands: str, result: str = "", **attributes: Any) -> str:
        from onnx.helper import make_node

        name = result or f"{self._prefix}/{len(self.made)}"
        self.made.append(make_node(op, operands, [name], self.node.name, **attributes))
        return name

    def constant(self, value: Any, like: str = "") -> str:
        """A constant, which has the type of the value `like` if this is given."""
        from onnx.helper import tensor_dtype_to_np_dtype

        array = np.asarray(value)
        if like:
            array = array.astype(tensor_dtype_to_np_dtype(self.facts.types[like]))
        self.made.append(constant(f"{self._prefix}/{len(self.made)}", array, self.node.name))
        return str(self.made[-1].output[0])

    def total(self, terms: Sequence[str]) -> str:
        """The sum of values."""
        return reduce(lambda total, term: self.op("Add", total, term), terms)

    def operand(self, number: int) -> str:
        """The name of an operand; "" if it is left out."""
        return self.node.input[number] if number < len(self.node.input) else ""

    def value(self, number: int) -> np.ndarray | None:
        """The value of an operand; None if it is left out or is no constant."""
        return self.facts.values.get(self.operand(number))

    @property
    def result(self) -> str:
        return str(self.node.output[0])

    def done(self, name: str) -> bool:
        """Makes a value the result of the node."""
        self.op("Identity", name, result=self.result)
        return True

    def named(self, number: int, name: str) -> None:
        """Makes a value the result at position `number`, if the node has a result there."""
        if number < len(self.node.output) and self.node.output[number]:
            self.op("Identity", name, result=self.node.output[number])

    def cast(self, name: str, kind: int) -> str:
        return self.op("Cast", name, to=kind)


def full_name(node: onnx.NodeProto) -> str:
    """The name of an op, with its domain if this is not the main one."""
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)

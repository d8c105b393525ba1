"""Random ONNX models of a few nodes. Each node is evaluated when it is drawn, so the next one knows its operands."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.helper import make_node
from onnx.numpy_helper import from_array
from onnx.reference import ReferenceEvaluator
from onnx_programs import model_of

from tt_torch.onnx_compile import prepare_inference_session

Array = np.ndarray[Any, Any]
FLOATS = ("float32", "float32", "float32", "float64")
INTEGERS = ("int32", "int64", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
KINDS = (*FLOATS, *INTEGERS, "bool")
OPSETS = (16, 17, 18, 21, 21, 22, 23)
SMALL = 9  # the largest magnitude of integers that are drawn, so that few sums leave their type
LARGEST = 1 << 16  # elements of a value


class UnfitError(Exception):
    """The drawn form of a node is not valid, or too large, or neither evaluator computes it."""


class Drawn:
    """A model, and the values of all its tensors."""

    def __init__(self, seed: int) -> None:
        self.draw, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.opset = self.draw.choice(OPSETS)
        self.values: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}
        self.constants: dict[str, onnx.NodeProto] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.results: list[str] = []

    # --- operands

    def shape(self, low: int = 0, high: int = 4) -> list[int]:
        """Sizes of so many dimensions. A few of them are 0."""
        return [self.draw.choice((1, 2, 3, 4, 5)) if self.draw.random() > 0.02 else 0 for _ in self.some(low, high)]

    def some(self, low: int, high: int) -> range:
        return range(self.draw.randint(low, high))

    def numbers(self, shape: Sequence[int], kind: str) -> Array:
        if kind == "bool":
            return np.asarray(self.rng.random(shape) < 0.5)
        if kind.startswith("float"):
            x = self.rng.standard_normal(shape) * self.draw.choice((1, 1, 3))
            return np.asarray(np.round(x) if self.draw.random() < 0.2 else x).astype(kind)
        low = 0 if kind.startswith("u") else -SMALL
        return np.asarray(self.rng.integers(low, SMALL, shape, endpoint=True)).astype(kind)

    def fresh(self, shape: Sequence[int], kind: str) -> str:
        """A new input, or in one of four cases a new constant."""
        x = self.numbers(shape, kind)
        return self.constant(x) if self.draw.random() < 0.25 else self.given(x)

    def given(self, x: Array) -> str:
        """A new input with this value."""
        name = f"x{len(self.values)}"
        self.values[name] = self.inputs[name] = x
        return name

    def constant(self, value: Any, kind: str = "") -> str:
        x, name = np.asarray(value, kind or None), f"x{len(self.values)}"
        self.values[name], self.constants[name] = x, make_node("Constant", [], [name], value=from_array(x, name))
        return name

    def any(self, kinds: Sequence[str] = KINDS, low: int = 0, high: int = 4) -> str:
        """A result of one of these types, with so many dimensions; or a new value."""
        fits = [x for x in self.results if self.values[x].dtype.name in kinds and low <= self.values[x].ndim <= high]
        if fits and self.draw.random() < 0.75:
            return self.draw.choice(fits)
        return self.fresh(self.shape(low, high), self.draw.choice(kinds))

    def beside(self, name: str) -> str:
        """A new value of the type of another one, whose shape can be broadcast with its shape."""
        x = self.values[name]
        sizes = [1 if self.draw.random() < 0.2 else n for n in x.shape]
        first = self.draw.randint(0, len(sizes)) if self.draw.random() < 0.2 else 0
        return self.fresh(sizes[first:], x.dtype.name)

    def axis(self, name: str) -> int:
        """A dimension of a value, which may count from the end."""
        rank = self.values[name].ndim
        return self.draw.randint(-rank, rank - 1)

    def axes(self, name: str, least: int = 0) -> list[int]:
        rank = self.values[name].ndim
        return self.draw.sample(range(rank), self.draw.randint(min(least, rank), rank))

    # --- nodes

    def add(self, op: str, *operands: str, count: int = 1, **attributes: Any) -> None:
        """Adds a node and its values. Raises UnfitError if its form is not valid, or nothing evaluates it."""
        names = [f"{op}_{len(self.results) + i}" for i in range(count)]
        node = make_node(op, operands, names, names[0], **attributes)
        given = {name: self.values[name] for name in operands if name and name not in self.constants}
        made = self._evaluated([node], given, names)
        if sum(x.size for x in made) > LARGEST:
            raise UnfitError
        self.values |= dict(zip(names, made, strict=True))
        self.nodes.append(node)
        self.results += names

    def model(self, nodes: Sequence[onnx.NodeProto], given: dict[str, Array], names: Sequence[str]) -> onnx.ModelProto:
        read = {name for node in nodes for name in node.input}
        return model_of([*(x for name, x in self.constants.items() if name in read), *nodes], given, names, self.opset)

    def whole(self) -> tuple[onnx.ModelProto, dict[str, Array]]:
        """The model with all results of all nodes, and its inputs."""
        read = {name for node in self.nodes for name in node.input}
        given = {name: x for name, x in self.inputs.items() if name in read}
        return self.model(self.nodes, given, self.results), given

    def _evaluated(self, nodes: Sequence[onnx.NodeProto], given: dict[str, Array], names: Sequence[str]) -> list[Array]:
        """The values by ONNX Runtime, or by ONNX's evaluator if ONNX Runtime lacks the op for these types."""
        try:
            model = self.model(nodes, given, names)
            onnx.checker.check_model(model, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, TypeError) as error:
            raise UnfitError from error
        for make in (prepare_inference_session, ReferenceEvaluator):
            try:
                return [np.asarray(x) for x in make(model).run(None, given)]
            except Exception:  # neither package has one class for what it refuses
                continue
        raise UnfitError


def drawn(seed: int, rows: Sequence[Callable[[Drawn], None]]) -> Drawn:
    """A model of one to four nodes."""
    made = Drawn(seed)
    for _ in made.some(1, 4):
        while True:
            try:
                made.draw.choice(rows)(made)
                break
            except UnfitError:
                continue
    return made

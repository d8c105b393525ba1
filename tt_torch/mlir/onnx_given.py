"""Checks what a user gives to `compile_onnx`: the model, its values, and the arguments `constants` and `shapes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch

from tt_torch.errors import CompileError
from tt_torch.extras import require
from tt_torch.mlir.onnx_folding import graphs

if TYPE_CHECKING:
    import onnx


def check_model(model: Any) -> None:
    """Raises CompileError for an object that is no model, and for a model with a value that cannot be read. Raises
    ExtraMissingError if the package `onnx` is not installed."""
    require("onnx")
    from onnx import ModelProto

    if not isinstance(model, ModelProto):
        raise CompileError(f"expected an onnx.ModelProto or the path of an ONNX model, got {_shown(model)}")
    for name, value in _values(model.graph):
        _check_value(name, value)


@dataclass(frozen=True)
class Given:
    """The values of some inputs, the shapes of some inputs, and the sizes of dimensions with names."""

    constants: Mapping[str, torch.Tensor]
    shapes: Mapping[str, Sequence[int]]
    sizes: Mapping[str, int]


def check_arguments(given: Given) -> None:
    """Raises CompileError for a constant that is no tensor, or a shape that has other things than sizes."""
    for name, mapping in (("constants", given.constants), ("shapes", given.shapes)):
        if not isinstance(mapping, Mapping):
            raise CompileError(f"`{name}` must be a dict by the names of inputs, got {_shown(mapping)}")
    for name, value in given.constants.items():
        if not isinstance(value, torch.Tensor) or value.is_meta:
            raise CompileError(f"`constants` must have tensors with values; for {name!r} it has {_shown(value)}")
    for name, shape in given.shapes.items():
        sizes = list(shape) if isinstance(shape, Sequence) or hasattr(shape, "__array__") else [None]
        if not all(isinstance(size, Integral) for size in sizes):
            raise CompileError(f"`shapes` must have tuples of integers; for {name!r} it has {shape!r}")


def check_sizes(sizes: Any) -> None:
    """Raises CompileError for something else than a dict of lists of sizes."""
    if not isinstance(sizes, Mapping) or not sizes:
        raise CompileError(f"`sizes` must be a dict by the names of dimensions, got {sizes!r}")
    for name, each in sizes.items():
        if isinstance(each, str) or not isinstance(each, (Sequence, range)) or not each:
            raise CompileError(f"`sizes` must have lists of sizes; for {name!r} it has {each!r}")
        if not all(isinstance(size, int) and size > 0 for size in each):
            raise CompileError(f"`sizes` must have positive integers; for {name!r} it has {each!r}")


def _shown(value: Any) -> str:
    return "a meta tensor" if isinstance(value, torch.Tensor) else f"an object of the type {type(value).__name__}"


def _values(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """The initializers and constants of a graph and of the graphs inside of its nodes, with their names."""
    for value in graph.initializer:
        yield value.name, value
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t.name or node.output[0], attribute.t
        for inner in graphs(node):
            yield from _values(inner)


def _check_value(name: str, value: onnx.TensorProto) -> None:
    from onnx.external_data_helper import uses_external_data
    from onnx.numpy_helper import to_array

    if uses_external_data(value):
        (place,) = (entry.value for entry in value.external_data if entry.key == "location")
        raise CompileError(f"the value {name!r} lies in the file {place!r}; give the path of the ONNX model instead")
    try:
        if any(size < 0 for size in value.dims):
            raise ValueError(f"its shape is {tuple(value.dims)}")
        to_array(value)
    except (ValueError, KeyError, TypeError) as error:
        why = f"no data type has the number {error}" if isinstance(error, KeyError) else error
        raise CompileError(f"the value {name!r} of the ONNX model cannot be read: {why}") from error

"""Fixes the shapes of inputs, which may be open in an ONNX model, and infers the shapes of all other values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tt_torch.errors import CompileError
from tt_torch.mlir.onnx_corrections import refused

if TYPE_CHECKING:
    import onnx

Shapes: TypeAlias = Mapping[str, Sequence[int]]  # by the names of inputs


def check_constants(inputs: Sequence[onnx.ValueInfoProto], constants: Mapping[str, np.ndarray]) -> None:
    """Raises CompileError for a constant whose type or shape is not that of its input."""
    from onnx.helper import np_dtype_to_tensor_dtype, tensor_dtype_to_np_dtype

    for value in inputs:
        if value.name not in constants:
            continue
        given, kind = constants[value.name], value.type.tensor_type
        if np_dtype_to_tensor_dtype(given.dtype) != kind.elem_type:
            wanted = f"the type {tensor_dtype_to_np_dtype(kind.elem_type)}"
            raise CompileError(f"the ONNX input {value.name!r} has {wanted}; `constants` gives {given.dtype}")
        sizes = [None if _is_open(one) else one.dim_value for one in kind.shape.dim]
        pairs = zip(sizes, given.shape, strict=False)
        fits = len(sizes) == given.ndim and all(size in (None, own) for size, own in pairs)
        if kind.HasField("shape") and not fits:
            wanted = f"the shape {_shown(value)}"
            raise CompileError(f"the ONNX input {value.name!r} has {wanted}; `constants` gives {given.shape}")


def fix_sizes(inputs: Sequence[onnx.ValueInfoProto], shapes: Shapes, named: Mapping[str, int]) -> None:
    """Gives the open dimensions of inputs their sizes. A dimension with a name has the same size in all inputs, which
    `named` may give.

    Raises CompileError if `shapes` names something that is no input, if a shape contradicts the model or another shape,
    and if the size of a dimension is not given.
    """
    if unknown := shapes.keys() - {value.name for value in inputs}:
        names = ", ".join(value.name for value in inputs) or "none"
        raise CompileError(f"`shapes` has {min(unknown)!r}, but the inputs without a value are {names}")
    sizes = dict(named)
    for value in inputs:
        if value.name in shapes:
            _fix(value, shapes[value.name], sizes)
    for value in inputs:
        _fix_named(value, sizes)


def _fix(value: onnx.ValueInfoProto, shape: Sequence[int], sizes: dict[str, int]) -> None:
    """Gives an input this shape, and notes the sizes of dimensions with a name."""
    dimensions, given = value.type.tensor_type.shape.dim, tuple(shape)
    has_rank = value.type.tensor_type.HasField("shape")
    if any(size < 0 for size in given) or (has_rank and len(given) != len(dimensions)):
        raise CompileError(f"the ONNX input {value.name!r} has the shape {_shown(value)}; `shapes` gives {given}")
    if not has_rank:
        value.type.tensor_type.shape.SetInParent()
        for _ in given:
            dimensions.add()
    for dimension, size in zip(dimensions, given, strict=True):
        name = _name(dimension)
        other = sizes.setdefault(name, size) if name else size
        if other != size or not (_is_open(dimension) or dimension.dim_value == size):
            expected = f", where {name!r} is {other}" if other != size else ""
            raise CompileError(
                f"the ONNX input {value.name!r} has the shape {_shown(value)}{expected}; `shapes` gives {given}"
            )
    for dimension, size in zip(dimensions, given, strict=True):
        dimension.dim_value = size


def _fix_named(value: onnx.ValueInfoProto, sizes: Mapping[str, int]) -> None:
    """Gives each named dimension of an input the size of its name. Raises CompileError if a dimension stays open."""
    if not value.type.tensor_type.HasField("shape"):
        raise CompileError(f"the ONNX input {value.name!r} has no shape in the model; {_how(value)}")
    for number, dimension in enumerate(value.type.tensor_type.shape.dim):
        if _name(dimension) in sizes:
            dimension.dim_value = sizes[_name(dimension)]
        if _is_open(dimension):
            size = repr(_name(dimension)) if _name(dimension) else "unknown"
            raise CompileError(f"dimension {number} of the ONNX input {value.name!r} is {size}; {_how(value)}")


def _how(value: onnx.ValueInfoProto) -> str:
    """How the user gives the shape of an input."""
    return f"give its shape, as in `shapes={{{value.name!r}: (2, 3)}}` or `tt-torch compile --shape '{value.name}=2,3'`"


def named_dimensions(inputs: Sequence[onnx.ValueInfoProto]) -> dict[str, list[tuple[str, int]]]:
    """The open dimensions with a name, each with its places: the name of an input and the number of a dimension."""
    found: dict[str, list[tuple[str, int]]] = {}
    for value in inputs:
        for number, dimension in enumerate(value.type.tensor_type.shape.dim):
            if _is_open(dimension) and _name(dimension):
                found.setdefault(_name(dimension), []).append((value.name, number))
    return found


def forget_shapes(results: Sequence[onnx.ValueInfoProto]) -> dict[str, onnx.TensorShapeProto]:
    """Takes away the shapes of results, and returns them by name. Some models declare wrong shapes, even with a wrong
    number of dimensions, and torch-mlir would trust them."""
    shapes = {}
    for value in results:
        if value.type.tensor_type.HasField("shape"):
            shapes[value.name] = type(value.type.tensor_type.shape)()
            shapes[value.name].CopyFrom(value.type.tensor_type.shape)
            value.type.tensor_type.ClearField("shape")
    return shapes


def inferred(model: onnx.ModelProto, declared: Mapping[str, onnx.TensorShapeProto]) -> onnx.ModelProto:
    """The model with the types of all values. A result whose shape ONNX cannot infer has the declared one."""
    from onnx.shape_inference import infer_shapes

    found = infer_shapes(model, data_prop=True)
    unknown = [value for value in found.graph.output if not value.type.tensor_type.HasField("shape")]
    for value in unknown:
        if value.name in declared:
            value.type.tensor_type.shape.CopyFrom(declared[value.name])
    return infer_shapes(found, data_prop=True) if unknown else found


def refuse_unknown(graph: onnx.GraphProto) -> None:
    """Raises UnsupportedOpError for a node that ONNX does not define, if the types of its results are unknown."""
    typed = {value.name for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        if node.domain not in ("", "ai.onnx") and not typed.issuperset(filter(None, node.output)):
            raise refused(node, f"ONNX does not define it; it is an extension of {node.domain!r}")


def _is_open(dimension: Any) -> bool:
    """Whether the size of a dimension is not known. Some exporters write -1 for this."""
    return not dimension.HasField("dim_value") or dimension.dim_value < 0


def _name(dimension: Any) -> str:
    """The name of a dimension, or "". Some exporters write "?" for all dimensions without a name."""
    return dimension.dim_param if any(map(str.isalnum, dimension.dim_param)) else ""


def _shown(value: onnx.ValueInfoProto) -> str:
    """The shape as the model gives it: `[1, 'width', ?]`."""
    sizes = [
        (repr(_name(d)) if _name(d) else "?") if _is_open(d) else str(d.dim_value)
        for d in value.type.tensor_type.shape.dim
    ]
    return f"[{', '.join(sizes)}]"

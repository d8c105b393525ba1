"""Runs the nodes of an ONNX model that the host computes. This imports no compiler.

It needs the packages `onnx` and `onnxruntime`, also in a loaded package: pip install 'tt-torch[onnx]'.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from tt_torch.extras import require

if TYPE_CHECKING:
    import onnx

Array: TypeAlias = np.ndarray[Any, Any]
MOST_MODELS = 1024  # that are kept ready to run


def onnx_model(*operands: Tensor, model: str, by_reference: bool) -> tuple[Tensor, ...]:
    """The results of an ONNX model in Base64, whose inputs are the operands, in order.

    ONNX Runtime runs it, or, if `by_reference` is true, ONNX's reference evaluator. Raises RuntimeError if this fails,
    and ExtraMissingError if a package of the extra `onnx` is not installed.
    """
    require("onnx")
    try:
        results = _runner(model, by_reference)([_array(x) for x in operands])
    except Exception as error:  # both raise errors of many classes
        raise RuntimeError(f"the nodes of ONNX cannot be computed: {error}") from error
    return tuple(map(_tensor, results))


@lru_cache(MOST_MODELS)
def _runner(text: str, by_reference: bool) -> Callable[[Sequence[Array]], Sequence[Array]]:
    from onnx import ModelProto

    model = ModelProto.FromString(b64decode(text))
    names = [value.name for value in model.graph.input]
    nodes = [node for function in model.functions for node in function.node]
    if any(x.data_location == x.EXTERNAL for x in (*_tensors(model.graph), *_tensors_of(nodes))):
        raise ValueError("a value lies in another file")
    run: Any
    if by_reference:
        from onnx.reference import ReferenceEvaluator

        run = ReferenceEvaluator(model).run
    else:
        from onnxruntime import InferenceSession

        run = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run
    return lambda given: run(None, dict(zip(names, given, strict=True)))


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The values in a graph, also in the graphs of its nodes."""
    yield from graph.initializer
    yield from _parts(graph.sparse_initializer)
    yield from _tensors_of(graph.node)


def _tensors_of(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        yield from _parts([attribute.sparse_tensor, *attribute.sparse_tensors])
        for inner in (attribute.g, *attribute.graphs):
            yield from _tensors(inner)


def _parts(tensors: Iterable[onnx.SparseTensorProto]) -> Iterator[onnx.TensorProto]:
    for tensor in tensors:
        yield from (tensor.values, tensor.indices)


def _array(x: Tensor) -> Array:
    """A tensor as an array. NumPy lacks bfloat16, so the package `onnx` has a dtype for it."""
    if x.dtype != torch.bfloat16:
        return x.numpy()
    from onnx.helper import tensor_dtype_to_np_dtype

    bits: Array = x.contiguous().view(torch.int16).numpy()
    return bits.view(tensor_dtype_to_np_dtype(16))


def _tensor(result: Any) -> Tensor:
    array = np.array(result, order="C")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)

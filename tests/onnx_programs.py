"""ONNX models of a few nodes, whose results are compared with those of ONNX Runtime or of ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tt_torch.driver.onnx import compile_onnx
from tt_torch.driver.stablehlo import in_a_list
from tt_torch.onnx_compile import prepare_inference_session


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    names: Sequence[str],
    opset: int = 21,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model whose inputs have the names, shapes and types of `inputs`, and whose results have the given names."""
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in inputs.items()
    ]
    graph = helper.make_graph(nodes, "graph", values, [helper.make_empty_tensor_value_info(name) for name in names])
    domains = {one.domain for one in (*nodes, *functions)} - {""}
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in sorted(domains))]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions)
    return onnx.shape_inference.infer_shapes(made)


def runtime_saturates() -> bool:
    """Whether ONNX Runtime's sums of products of uint8 and int8 saturate at 16 bits, as on processors with AVX2
    and without VNNI."""
    inputs = {"a": np.full((1, 2), 255, "uint8"), "b": np.full((2, 1), 127, "int8")}
    node = onnx.helper.make_node("MatMulInteger", ["a", "b"], ["c"])
    (sums,) = prepare_inference_session(model_of([node], inputs, ["c"], 21)).run(None, inputs)
    return int(sums.item()) != 2 * 255 * 127


def compared(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    constants: Sequence[str] = (),
    results: Sequence[str] = (),
    opset: int = 21,
    by_reference: bool = False,
) -> None:
    """Runs nodes as one model, and compares with ONNX Runtime, or with ONNX's reference evaluator if `by_reference`.

    Without `results`, all outputs are compared. The inputs that `constants` names are constants when the model is
    compiled.
    """
    names = list(results) or [name for node in nodes for name in node.output]
    model = model_of(nodes, inputs, names, opset)
    runner = ReferenceEvaluator(model) if by_reference else prepare_inference_session(model)
    expected = runner.run(None, dict(inputs))
    known = {name: torch.from_numpy(inputs[name]) for name in constants}
    given = [torch.from_numpy(x) for name, x in inputs.items() if name not in known]
    got = in_a_list(compile_onnx(model, constants=known)(*given))
    for name, value, want in zip(names, got, expected, strict=True):
        kind = torch.from_numpy(want.view(want.dtype.str)).dtype  # NumPy has several uint64, of which PyTorch takes one
        assert (value.dtype, value.shape) == (kind, want.shape), name
        exact = want.dtype.kind in "iub"
        np.testing.assert_allclose(value.numpy(), want, *((0, 0) if exact else (1e-5, 1e-6)), err_msg=name)

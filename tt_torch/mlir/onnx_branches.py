"""An `If` of an ONNX model whose condition depends on values becomes two loops, of which one takes a step.

    y = If(c, then, else)

is `z = Loop(1, c, zeros, then)` and `y = Loop(1, not c, z, else)`. So the host decides, and only one branch runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tt_torch.mlir.onnx_corrections import known_values, refill
from tt_torch.mlir.onnx_folding import constant, first_result
from tt_torch.mlir.onnx_loops import of_nodes

if TYPE_CHECKING:
    import onnx

Kinds = list[tuple[int, list[int]]]  # types and shapes of results


def branches_as_loops(model: onnx.ModelProto) -> None:
    """Replaces each `If` of the graph whose branches give the same types and shapes."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        nodes += _loops(node, model, nodes) if node.op_type == "If" else [node]
    refill(model.graph.node, nodes)


def _loops(node: onnx.NodeProto, model: onnx.ModelProto, before: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes that replace an `If`. It stays if a shape of a result is not known, or differs between the branches."""
    from onnx.helper import make_node, make_tensor, tensor_dtype_to_np_dtype

    graphs = {attribute.name: attribute.g for attribute in node.attribute}
    both = [_plain(graphs[name]) for name in ("then_branch", "else_branch")]
    kinds, other = (_kinds(model, before, graph) for graph in both)
    if kinds is None or kinds != other:
        return [node]
    own = f"{first_result(node)}/own"
    made = [
        constant(f"{own} one", np.array(1), node.name),
        make_node("Not", [node.input[0]], [f"{own} not"], node.name),
    ]
    values = [f"{own} zero {i}" for i in range(len(kinds))]
    for name, (kind, shape) in zip(values, kinds, strict=True):
        size = constant(f"{name} size", np.array(shape, np.int64), node.name)
        fill = make_tensor("zero", kind, [1], np.zeros(1, tensor_dtype_to_np_dtype(kind)))
        made += [size, make_node("ConstantOfShape", [size.output[0]], [name], node.name, value=fill)]
    names = [name or f"{own} unread {i}" for i, name in enumerate(node.output)]
    steps = [(both[0], node.input[0], [f"{own} then {i}" for i in range(len(names))]), (both[1], f"{own} not", names)]
    for number, (graph, condition, results) in enumerate(steps):
        body = _body(graph, kinds, f"{own} {number}")
        made.append(make_node("Loop", [f"{own} one", condition, *values], results, node.name, body=body))
        values = results
    return made


def _plain(graph: onnx.GraphProto) -> onnx.GraphProto:
    """A branch whose initializers are nodes."""
    from onnx.numpy_helper import to_array

    copy = type(graph)()
    copy.CopyFrom(graph)
    constants = [constant(value.name, to_array(value), graph.name) for value in graph.initializer]
    refill(copy.node, [*constants, *graph.node])
    del copy.initializer[:]
    return copy


def _kinds(model: onnx.ModelProto, before: Sequence[onnx.NodeProto], branch: onnx.GraphProto) -> Kinds | None:
    """The types and shapes of the results of a branch; None if one is not known. What ONNX cannot infer, such as the
    results of a loop, is as the branch declares it. If that is wrong, the loop is refused later."""
    from onnx.shape_inference import infer_shapes

    known = known_values(infer_shapes(of_nodes(model, [*before, *branch.node]), data_prop=True).graph)
    known = known_values(type(branch)(output=branch.output)) | known
    names = [value.name for value in branch.output]
    return [known[name] for name in names] if all(name in known for name in names) else None


def _body(branch: onnx.GraphProto, kinds: Kinds, own: str) -> onnx.GraphProto:
    """The branch as the body of a loop, which does not read its carried values."""
    from onnx import TensorProto
    from onnx.helper import make_graph, make_node, make_tensor_value_info

    forms: list[tuple[str, int, list[int]]] = [(f"{own} going", TensorProto.BOOL, [])]
    forms += [(f"{own} {i}", kind, shape) for i, (kind, shape) in enumerate(kinds)]
    inputs = [(f"{own} step", TensorProto.INT64, []), *forms]
    sources = [f"{own} going", *(value.name for value in branch.output)]
    nodes = [make_node("Identity", [x], [f"{name} new"]) for x, (name, *_) in zip(sources, forms, strict=True)]
    results = [make_tensor_value_info(f"{name} new", kind, shape) for name, kind, shape in forms]
    taken = [make_tensor_value_info(*form) for form in inputs]
    return make_graph([*branch.node, *nodes], branch.name or "branch", taken, results)

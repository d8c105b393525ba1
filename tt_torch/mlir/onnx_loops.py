"""Loops of ONNX models whose steps depend on values. The body is a model of its own, and becomes a function.

The node crosses torch-mlir as a call, and becomes a `stablehlo.while` that calls the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, call, main, returned
from tt_torch.mlir.graph_calls import add_function
from tt_torch.mlir.onnx_casts import outline_node
from tt_torch.mlir.onnx_corrections import Known, known_values, refill, refused
from tt_torch.mlir.onnx_folding import constant, first_result, graphs, reads
from tt_torch.mlir.stablehlo.build import compared, make, reshaped
from tt_torch.mlir.stablehlo.build import constant as constant_of
from tt_torch.mlir.user_ops import CustomCall, is_call

if TYPE_CHECKING:
    import onnx

DOMAIN, OP, TARGET = "tt_torch", "LoopOnValues", "tt_torch.loop"
ENDLESS = 2**31 - 1  # the steps of a loop that has no limit


@dataclass(frozen=True)
class Loop:
    """A loop, and the model of its body. The body takes the number of the step, whether to go on, the carried values
    and the values from outside. It gives whether to go on, and the carried values."""

    node: onnx.NodeProto
    body: onnx.ModelProto
    carried: int


def is_on_values(node: onnx.NodeProto) -> bool:
    """Whether a loop gives only carried values, so that the shapes of its results do not depend on its steps."""
    return node.op_type == "Loop" and len(node.output) <= len(node.input) - 2


def take_loops_out(model: onnx.ModelProto) -> list[Loop]:
    """Replaces the loops of a graph by nodes of our domain. The graph must have no other loops than those on values."""
    from onnx.helper import make_operatorsetid
    from onnx.shape_inference import infer_shapes

    if not any(map(is_on_values, model.graph.node)):
        return []
    model.opset_import.append(make_operatorsetid(DOMAIN, 1))
    nodes: list[onnx.NodeProto] = []
    loops: list[Loop] = []
    for old in model.graph.node:
        if is_on_values(old):
            known = known_values(infer_shapes(of_nodes(model, nodes), data_prop=True).graph)
            loops.append(_loop(old, model, known))
            nodes += _call(loops[-1], len(loops) - 1)
            _declare(model, loops[-1], known)
        else:
            nodes.append(old)
    refill(model.graph.node, nodes)
    return loops


def of_nodes(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    """A copy of the model with these nodes only, and without results, which it may lack."""
    copy = type(model)()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    refill(copy.graph.node, nodes)
    return copy


def _loop(node: onnx.NodeProto, model: onnx.ModelProto, known: Known) -> Loop:
    """The loop with the model of its body. Constants from outside are constants of the body, too."""
    from onnx import TensorProto
    from onnx.helper import make_graph, make_model, make_tensor_value_info

    (graph,) = graphs(node)
    carried = list(node.input[2:])
    outside = [name for name in sorted(read_outside(graph)) if name]
    constants = {one.output[0]: one for one in model.graph.node if one.op_type == "Constant"}
    stored = {value.name: value for value in model.graph.initializer}
    own = [name for name in outside if name not in constants and name not in stored]
    for name in [*carried, *own]:
        if name not in known:
            raise refused(node, f"the shape of {name!r}, which it reads, is not known")
    kinds = [(TensorProto.INT64, []), (TensorProto.BOOL, []), *(known[name] for name in (*carried, *own))]
    names = [*(value.name for value in graph.input), *own]
    inputs = [make_tensor_value_info(name, *kind) for name, kind in zip(names, kinds, strict=True)]
    inner = [*(constants[name] for name in outside if name in constants), *graph.node]
    given = [*(stored[name] for name in outside if name in stored), *graph.initializer]
    body = make_graph(inner, graph.name or "body", inputs, graph.output, given)
    opsets = [one for one in model.opset_import if one.domain != DOMAIN]
    made = make_model(body, opset_imports=opsets, ir_version=model.ir_version)
    copy = type(node)()
    copy.CopyFrom(node)
    copy.input.extend(own)  # after the carried values
    return Loop(copy, made, len(carried))


def read_outside(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph reads and does not define."""
    inside = {value.name for value in (*graph.input, *graph.initializer)}
    found: set[str] = set()
    for node in graph.node:
        found |= reads(node) - inside - _defined(node)
        inside.update(node.output)
    return found | ({value.name for value in graph.output} - inside)


def _defined(node: onnx.NodeProto) -> set[str]:
    """The names that the graphs of a node define."""
    found: set[str] = set()
    for graph in graphs(node):
        found.update(value.name for value in (*graph.input, *graph.initializer))
        for inner in graph.node:
            found |= {*inner.output, *_defined(inner)}
    return found


def _call(loop: Loop, number: int) -> list[onnx.NodeProto]:
    """The nodes that replace a loop. Its limit and its first condition may be left out. The results get their names by
    an Identity, because ONNX does not read the type of a result of the model."""
    from onnx.helper import make_node

    node, made = loop.node, []
    operands = list(node.input)
    for i, default in enumerate((ENDLESS, True)):
        if not operands[i]:
            operands[i] = f"{first_result(node)}/default {i}"
            made.append(constant(operands[i], np.array(default), node.name))
    made.append(make_node(OP, operands, _results(loop), node.name, domain=DOMAIN, number=number))
    named = [(inner, name) for inner, name in zip(_results(loop), node.output, strict=False) if name]
    return [*made, *(make_node("Identity", [inner], [name], node.name) for inner, name in named)]


def _results(loop: Loop) -> list[str]:
    return [f"{first_result(loop.node)}/carried {i}" for i in range(loop.carried)]


def _declare(model: onnx.ModelProto, loop: Loop, known: Known) -> None:
    """Says which types the results have: those of the carried values."""
    from onnx.helper import make_tensor_value_info

    results = zip(_results(loop), loop.node.input[2:], strict=False)
    model.graph.value_info.extend(make_tensor_value_info(name, *known[x]) for name, x in results)


def outline_loops(module: ir.Module) -> None:
    """Makes calls of the loops of an imported model."""
    for op in [op.operation for op in block(main(module)).operations]:
        if op.name == "torch.operator" and ods.attr(op, "name") == f"onnx.{OP}":
            number = op.attributes["torch.onnx.number"].value
            outline_node(op, CustomCall(TARGET, {"backend_config": str(number)}), f"loop{number}", module)


def write_loops(module: ir.Module, loops: Sequence[Loop], bodies: Sequence[ir.Module]) -> None:
    """Replaces the calls by loops of StableHLO, whose steps call the functions of the bodies.

    Raises UnsupportedOpError for a carried value that changes its shape or type.
    """
    for op in [op.operation for op in block(main(module)).operations]:
        if is_call(op, TARGET):
            number = int(ods.attr(op, "backend_config"))
            loop, body = loops[number], bodies[number]
            carried = [x.type for x in op.operands][2 : 2 + loop.carried]
            changed = [str(x.type) for x in returned(body)[1:]]
            if changed != [str(kind) for kind in carried]:
                what = f"its body makes {', '.join(changed)} of {', '.join(map(str, carried))}"
                raise refused(loop.node, f"{what}; the carried values must keep their shapes and types")
            with ir.InsertionPoint(op), op.location:
                _write_loop(op, add_function(module, body, f"loop{number}"), carried)


def _write_loop(op: ir.Operation, function: str, carried: Sequence[ir.Type]) -> None:
    """Replaces the call, whose operands are the limit, the first condition, the carried values and the others."""
    limit, going = (reshaped(x, []) for x in list(op.operands)[:2])
    values, count = list(op.operands)[2:], len(carried)
    step = ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
    kinds = [step, going.type, *carried]
    operands = [constant_of(step, np.array(0)), going, *values[:count]]
    made = ir.Operation.create("stablehlo.while", kinds, operands, regions=2)
    condition, body = (ir.Block.create_at_start(region, kinds) for region in made.regions)
    with ir.InsertionPoint(condition):
        both = make("and", going.type, condition.arguments[1], compared("LT", condition.arguments[0], limit))
        ir.Operation.create("stablehlo.return", [], [both])
    with ir.InsertionPoint(body):
        given = list(body.arguments)[: 2 + count]
        new = list(call(function, [*given, *values[count:]], kinds[1:]).results)
        ir.Operation.create("stablehlo.return", [], [make("add", step, given[0], constant_of(step, np.array(1))), *new])
    for old, result in zip(op.results, list(made.results)[2:], strict=False):
        old.replace_all_uses_with(result)
    op.erase()

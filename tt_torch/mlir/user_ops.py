"""Ops that cross torch-mlir as custom calls: registered ops of the user, those of `torch.ops.tt`, and collectives.

torch-mlir knows none of these ops, so each op crosses it as a call of a function without a body. In StableHLO, an op of
the user is a `custom_call` of `TARGET`. Its `backend_config` has the op and its arguments in the wire's form. An op of
`torch.ops.tt` is the custom call that tt-mlir knows. A collective becomes an op of StableHLO: stablehlo/collectives.py.
So does an op that calls graphs: graph_calls.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch_mlir import ir

from tt_torch.dynamo import graph_calls, mesh_ops
from tt_torch.dynamo.passes.rewriting import arguments, user_line
from tt_torch.errors import UnsupportedOpError
from tt_torch.extending import registry
from tt_torch.extending.arguments import UnknownArgument, encoded
from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main, replace
from tt_torch.mlir.types import Attrs
from tt_torch.torch_private.ops import schema
from tt_torch.tt_ops import CALLS
from tt_torch.wire import custom_ops

TARGET = "tt_torch.custom_op"
ATTRIBUTE = "tt.custom_op"  # this attribute of a function without a body has the attributes of the custom call


@dataclass(frozen=True)
class CustomCall:
    """Target and other attributes of a custom call. `operands` are positions of parameters; None means all."""

    target: str
    attributes: Attrs
    operands: tuple[int, ...] | None = None


def calls(graph: Graph) -> list[CustomCall]:
    """The custom call of each op that becomes one, in the order of the graph."""
    return [_call(node) for node in graph.nodes if _is_custom(node)]


def _is_custom(node: Node) -> bool:
    ours = node.target in CALLS or node.target in mesh_ops.OPS or graph_calls.is_call(node.target)
    return ours or registry.is_registered(node.target)


def _call(node: Node) -> CustomCall:
    if graph_calls.is_call(node.target):
        return CustomCall(graph_calls.TARGET, {"backend_config": str(node.kwargs["number"])})
    if node.target in mesh_ops.OPS:
        target = schema(node.target).name.replace("::", ".")
        return CustomCall(target, {"mhlo.frontend_attributes": dict(node.kwargs)}, (0,))
    if node.target not in CALLS:
        return CustomCall(TARGET, {"backend_config": _text(node)})
    call, parameters = CALLS[node.target], [p.name for p in schema(node.target).arguments]
    attributes = {"mhlo.frontend_attributes": call.attributes(arguments(node))}
    return CustomCall(call.target, attributes, tuple(parameters.index(name) for name in call.operands))


def _text(node: Node) -> str:
    given = map_arg(arguments(node), lambda n: n.meta["val"])
    parameters = schema(node.target).arguments
    positional = [given[p.name] for p in parameters if not p.kwarg_only]
    keywords = {p.name: given[p.name] for p in parameters if p.kwarg_only}
    found = node.meta["val"]
    results = [v.dtype for v in (found if isinstance(found, (list, tuple)) else [found])]
    try:
        return custom_ops.text_of(registry.name_of(node.target), encoded(positional, keywords, results))
    except UnknownArgument as kind:
        raise UnsupportedOpError(
            str(node.target), "import-fx", user_line(node), f"an argument is a {kind}, which no registered op takes"
        ) from None


def names(graph: Graph) -> set[str]:
    """The names that torch-mlir gives to the ops of a graph that become custom calls."""
    forms = [schema(node.target) for node in graph.nodes if _is_custom(node)]
    return {".".join(filter(None, ["torch", *f.name.split("::"), f.overload_name])) for f in forms}


def outline(op: ir.Operation, call: CustomCall, symbol: str, module: ir.Module) -> None:
    """Replaces an operator of the torch dialect by a call of a new function without a body."""
    chosen = range(len(op.operands)) if call.operands is None else call.operands
    tensors = [v for i in chosen for v in _tensors(op.operands[i])]
    kinds = [r.type for r in op.results]
    signature = ir.FunctionType.get([v.type for v in tensors], kinds)
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(signature),
        ATTRIBUTE: ods.to_attr("dict", {"call_target_name": call.target, **call.attributes}),
    }
    with ir.InsertionPoint(module.body), op.location:
        ir.Operation.create("func.func", attributes=attributes, regions=1)
    with ir.InsertionPoint(op), op.location:
        callee = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
        replace(op, ir.Operation.create("func.call", kinds, tensors, callee))


def _tensors(value: ir.Value) -> Iterator[ir.Value]:
    """The tensors of an operand, also those in a list or behind a cast to an optional tensor."""
    if str(value.type).startswith("!torch.vtensor"):
        yield value
    elif not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name in ("torch.prim.ListConstruct", "torch.derefine"):
            for part in op.operands:
                yield from _tensors(part)


def to_custom_calls(module: ir.Module) -> None:
    """Replaces the calls of functions without a body by custom calls, and removes these functions."""
    declared = {f.name.value: f for f in module.body.operations if ATTRIBUTE in f.attributes}
    for op in [op.operation for op in block(main(module)).operations]:
        callee = ods.attr(op, "callee") if op.name == "func.call" else None
        if callee in declared:
            found = ir.DictAttr(declared[callee].attributes[ATTRIBUTE])
            attributes = {part.name: part.attr for part in found} | {"has_side_effect": ir.BoolAttr.get(False)}
            with ir.InsertionPoint(op), op.location:
                kinds = [r.type for r in op.results]
                replace(op, ir.Operation.create("stablehlo.custom_call", kinds, list(op.operands), attributes))
    for function in declared.values():
        function.operation.erase()


def is_call(op: ir.Operation, target: str = TARGET) -> bool:
    """Whether an op is a custom call of this target, or of a registered op."""
    return op.name == "stablehlo.custom_call" and ods.attr(op, "call_target_name") == target


def has_lowerings(module: ir.Module) -> bool:
    """Whether a module of StableHLO has ops that functions of the user lower."""
    for op in (op.operation for op in block(main(module)).operations):
        found = custom_ops.parsed(ods.attr(op, "backend_config") or "") if is_call(op) else None
        registered = registry.of(found[0]) if found else None
        if registered and registered.lowering:
            return True
    return False

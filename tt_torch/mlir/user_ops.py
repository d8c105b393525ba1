"""Ops of the user: calls of registered ops, from the graph to StableHLO.

torch-mlir knows no such op, so it crosses it as a call of a function without a body. In StableHLO it is a `custom_call`
of `TARGET`, whose `backend_config` names the op and its arguments as on the wire.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch_mlir import ir

from tt_torch.dynamo.passes.rewriting import arguments, user_line
from tt_torch.errors import UnsupportedOpError
from tt_torch.extending import registry
from tt_torch.extending.arguments import UnknownArgument, encoded
from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main, replace
from tt_torch.torch_private.ops import schema
from tt_torch.wire import custom_ops

TARGET = "tt_torch.custom_op"
ATTRIBUTE = "tt.custom_op"  # of a function without a body: the text of the call


def texts(graph: Graph) -> list[str]:
    """The text of each call of a registered op, in the order of the graph."""
    return [_text(node) for node in graph.nodes if registry.is_registered(node.target)]


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
    """The names that torch-mlir gives to the registered ops of a graph."""
    forms = [schema(node.target) for node in graph.nodes if registry.is_registered(node.target)]
    return {".".join(filter(None, ["torch", *f.name.split("::"), f.overload_name])) for f in forms}


def outline(op: ir.Operation, text: str, symbol: str, module: ir.Module) -> None:
    """Replaces an operator of the torch dialect by a call of a new function without a body."""
    tensors = [v for operand in op.operands for v in _tensors(operand)]
    kinds = [r.type for r in op.results]
    signature = ir.FunctionType.get([v.type for v in tensors], kinds)
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(signature),
        ATTRIBUTE: ir.StringAttr.get(text),
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
            attributes = {
                "call_target_name": ir.StringAttr.get(TARGET),
                "backend_config": declared[callee].attributes[ATTRIBUTE],
                "has_side_effect": ir.BoolAttr.get(False),
            }
            with ir.InsertionPoint(op), op.location:
                kinds = [r.type for r in op.results]
                replace(op, ir.Operation.create("stablehlo.custom_call", kinds, list(op.operands), attributes))
    for function in declared.values():
        function.operation.erase()


def is_call(op: ir.Operation) -> bool:
    """Whether an op is a call of a registered op."""
    return op.name == "stablehlo.custom_call" and ods.attr(op, "call_target_name") == TARGET


def has_lowerings(module: ir.Module) -> bool:
    """Whether a module of StableHLO has ops that functions of the user lower."""
    for op in (op.operation for op in block(main(module)).operations):
        found = custom_ops.parsed(ods.attr(op, "backend_config") or "") if is_call(op) else None
        registered = registry.of(found[0]) if found else None
        if registered and registered.lowering:
            return True
    return False

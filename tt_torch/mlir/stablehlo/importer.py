"""Imports an FX graph into torch-mlir's torch dialect. Weights are arguments, and composites stay whole.

A composite op (`tt_torch.dynamo.composites`) becomes a call of a private function before torch-mlir lowers the graph,
and a `stablehlo.composite` afterwards (see lowering.py). The function is the decomposition of the composite, so the
module means the same to a consumer that does not know the name. An op of the user or of `torch.ops.tt`
becomes a call, too (see mlir/user_ops.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch_mlir import ir
from torch_mlir.extras.fx_importer import TORCH_DTYPE_TO_MLIR_TYPE_ASM, ContextCache, FxImporter

from tt_torch.dynamo import composites
from tt_torch.dynamo.passes.rewriting import user_line
from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir import ods, user_ops
from tt_torch.mlir.functions import block, main, mark_arguments, replace

# torch-mlir's lowering aborts for these types, which its importer knows.
_FATAL = frozenset({torch.float8_e8m0fnu, torch.float4_e2m1fn_x2})
_KNOWN = frozenset(TORCH_DTYPE_TO_MLIR_TYPE_ASM) - _FATAL


def import_graph(
    graph: torch.fx.Graph, context: ir.Context, kinds: Sequence[str], updates: Mapping[int, int] = MappingProxyType({})
) -> ir.Module:
    """The graph in the torch dialect: `@main` with one argument per placeholder, whose roles are `kinds`
    (input, state, parameter or constant), and one private function per form of each composite.

    `updates` maps the position of a result to the position of the state whose new value it is.
    """
    _refuse_unknown_types(graph)
    importer = FxImporter(context=context)
    importer._cc = _NamedLocations(context)
    try:
        importer.import_stateless_graph(graph, func_name="main")
    except (AssertionError, KeyError, NotImplementedError) as error:  # torch-mlir does not know a type or an argument
        node = importer._cc.last
        raise UnsupportedOpError(str(node.target), "import-fx", user_line(node), repr(error)) from error
    forms = composites.forms(graph)
    for form in {f.symbol: f for f in forms}.values():
        importer.import_stateless_graph(form.body.graph, func_name=form.symbol, func_visibility="private")
    module = importer.module
    with context, ir.Location.unknown():
        _keep_bodies(module)
        _outline(main(module), forms)
        _outline_custom_calls(module, graph)
        mark_arguments(main(module), kinds, updates)
        names = {f.symbol: _composite_attributes(f) for f in forms}
        module.operation.attributes["tt.composites"] = ir.DictAttr.get(names)
    return module


def _refuse_unknown_types(graph: torch.fx.Graph) -> None:
    """Raises UnsupportedOpError for an op that makes or takes a type that torch-mlir cannot import and lower."""
    for node in (node for node in graph.nodes if node.op == "call_function"):
        for value, verb in ((node, "make"), *((x, "take") for x in node.all_input_nodes)):
            dtype = getattr(value.meta.get("val"), "dtype", None)
            if dtype is not None and dtype not in _KNOWN:
                reason = f"torch-mlir cannot {verb} {dtype}"
                raise UnsupportedOpError(str(node.target), "import-fx", user_line(node), reason)


class _NamedLocations(ContextCache):
    """Wraps the source location with name and op of the FX node: `loc("add_1: aten.add.Tensor"(...))`."""

    __slots__ = ("last",)  # the node that is being imported, for errors

    def get_node_location(self, node: torch.fx.Node) -> ir.Location:
        self.last = node
        source = super().get_node_location(node) or ir.Location.unknown(self._c)
        return ir.Location.name(f"{node.name}: {node.target}", source, context=self._c)


def _composite_attributes(form: composites.Form) -> ir.DictAttr:
    return ods.to_attr("dict", {"name": form.name, "attributes": form.attributes})


def _keep_bodies(module: ir.Module) -> None:
    """Marks the decompositions as not to be inlined by torch-mlir."""
    for function in module.body.operations:
        if function.name.value != "main":
            function.attributes["no_inline"] = ir.UnitAttr.get()


def _outline(function: Any, forms: Sequence[composites.Form]) -> None:
    """Replaces each operator of our namespace by a call. The operators have the order of the graph's nodes."""
    remaining = iter(forms)
    for op in list(block(function).operations):
        op = op.operation
        if op.name != "torch.operator" or f".{composites.NAMESPACE}." not in str(op.attributes["name"]):
            continue
        tensors = [v for v in op.operands if str(v.type).startswith("!torch.vtensor")]
        callee = ir.FlatSymbolRefAttr.get(next(remaining).symbol)
        with ir.InsertionPoint(op), op.location:
            call = ir.Operation.create("func.call", [r.type for r in op.results], tensors, {"callee": callee})
        replace(op, call)


def _outline_custom_calls(module: ir.Module, graph: torch.fx.Graph) -> None:
    """Replaces each operator that becomes a custom call by a call, in the order of the graph's nodes."""
    names, calls = user_ops.names(graph), enumerate(user_ops.calls(graph))
    for op in [op.operation for op in block(main(module)).operations]:
        if op.name == "torch.operator" and op.attributes["name"].value in names:
            number, call = next(calls)
            user_ops.outline(op, call, f"custom_op_{number}", module)

"""FX graph to StableHLO through torch-mlir, weights as arguments and composites kept whole.

A composite op (`tt_torch.dynamo.composites`) becomes a call of a private function before torch-mlir lowers
anything, and a `stablehlo.composite` afterwards. The function is the composite's decomposition, so the module
means the same to a consumer that does not know the name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch_mlir import ir
from torch_mlir.extras.fx_importer import ContextCache, FxImporter

from tt_torch.dynamo import composites
from tt_torch.dynamo.passes.rewriting import user_line
from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir import ods
from tt_torch.mlir.context import describe, node_of, run_native
from tt_torch.mlir.stablehlo.blame import first_failing

TO_TORCH_BACKEND = "torchdynamo-export-to-torch-backend-pipeline"
# torch-mlir's own backend pipeline without its two last concerns: it would expand CHLO ops such as erf into
# polynomials, and its contract check knows no calls.
TO_STABLEHLO = (
    "func.func(convert-torch-to-stablehlo)",
    "func.func(convert-torch-to-arith)",
    "func.func(canonicalize,cse)",
    "torch-func-backend-type-conversion-for-stablehlo",
    "func.func(canonicalize)",
    "func.func(torch-finalizing-backend-type-conversion-for-stablehlo)",
    # Static shapes come as dynamic_iota, dynamic_reshape and the like of constants.
    "func.func(stablehlo-canonicalize-dynamism,canonicalize)",
)
_ILLEGAL = re.compile(r"failed to legalize operation '(torch\.[\w.]+)'")
# torch-mlir would decompose these; StableHLO has them whole.
KEPT = "aten.batch_norm"


def import_graph(graph: torch.fx.Graph, context: ir.Context, kinds: Sequence[str]) -> ir.Module:
    """The graph in the torch dialect: `@main` with one argument per placeholder, whose roles are `kinds`
    (input, parameter or constant), and one private function per form of each composite."""
    importer = FxImporter(context=context)
    importer._cc = _NamedLocations(context, py_attr_tracker=importer._py_attr_tracker)
    try:
        importer.import_stateless_graph(graph, func_name="main")
    except (AssertionError, KeyError, NotImplementedError) as error:  # a type or argument that torch-mlir has not
        node = importer._cc.last
        raise UnsupportedOpError(str(node.target), "import-fx", user_line(node), repr(error)) from error
    forms = composites.forms(graph)
    for form in {f.symbol: f for f in forms}.values():
        importer.import_stateless_graph(form.body.graph, func_name=form.symbol, func_visibility="private")
    module = importer.module
    with context, ir.Location.unknown():
        _keep_bodies(module)
        _outline(main(module), forms)
        mark_arguments(main(module), kinds)
        names = {f.symbol: _composite_attributes(f) for f in forms}
        module.operation.attributes["tt.composites"] = ir.DictAttr.get(names)
    return module


class _NamedLocations(ContextCache):
    """Puts the FX node's name and op over its source location: `loc("add_1: aten.add.Tensor"(...))`."""

    __slots__ = ("last",)  # the node that is being imported, for errors

    def get_node_location(self, node: torch.fx.Node) -> ir.Location:
        self.last = node
        source = super().get_node_location(node) or ir.Location.unknown(self._c)
        return ir.Location.name(f"{node.name}: {node.target}", source, context=self._c)


def main(module: ir.Module) -> Any:
    """The program's entry function."""
    return next(f for f in module.body.operations if f.name.value == "main")


def mark_arguments(function: Any, kinds: Sequence[str]) -> None:
    """Writes each argument's role where tt-mlir keeps it, as `ttcore.argument_type`."""
    roles = [ir.DictAttr.get({"ttcore.argument_type": ir.StringAttr.get(kind)}) for kind in kinds]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(roles)


def argument_kind(function: Any, number: int) -> str:
    """Role of one argument; arguments of a module without roles are inputs."""
    if "arg_attrs" not in function.attributes:
        return "input"
    roles = function.attributes["arg_attrs"][number]
    return roles["ttcore.argument_type"].value if "ttcore.argument_type" in roles else "input"


def argument_kinds(function: Any) -> list[str]:
    return [argument_kind(function, i) for i in range(len(function.arguments))]


def to_torch_backend(module: ir.Module) -> None:
    _lower(module, "torch-backend", f"{TO_TORCH_BACKEND}{{backend-legal-ops={KEPT}}}")


def to_stablehlo(module: ir.Module) -> None:
    _lower(module, "stablehlo", *TO_STABLEHLO)
    with module.context, ir.Location.unknown():
        _name_composites(module)


def _lower(module: ir.Module, stage: str, *passes: str) -> None:
    """Runs torch-mlir's passes. What they cannot legalize is an ATen op that the program should not use."""
    try:
        run_native(module, *passes)
    except ir.MLIRError as error:
        for diagnostic in error.error_diagnostics:
            if found := _ILLEGAL.search(diagnostic.message):
                location = diagnostic.location
                if not node_of(location)[1]:
                    location = first_failing(main(module), lambda m: run_native(m, *passes)) or location
                op = node_of(location)[1] or found[1]
                raise UnsupportedOpError(op, stage, describe(location), found[0]) from error
        raise


def _composite_attributes(form: composites.Form) -> ir.DictAttr:
    return ods.to_attr("dict", {"name": form.name, "attributes": form.attributes})


def _block(function: Any) -> Any:
    return function.regions[0].blocks[0]


def _keep_bodies(module: ir.Module) -> None:
    """torch-mlir's pipeline inlines what it may."""
    for function in module.body.operations:
        if function.name.value != "main":
            function.attributes["no_inline"] = ir.UnitAttr.get()


def _outline(function: Any, forms: Sequence[composites.Form]) -> None:
    """Each operator of our namespace becomes a call; operators come in the order of the graph's nodes."""
    remaining = iter(forms)
    for op in list(_block(function).operations):
        op = op.operation
        if op.name != "torch.operator" or f".{composites.NAMESPACE}." not in str(op.attributes["name"]):
            continue
        tensors = [v for v in op.operands if str(v.type).startswith("!torch.vtensor")]
        callee = ir.FlatSymbolRefAttr.get(next(remaining).symbol)
        with ir.InsertionPoint(op), op.location:
            call = ir.Operation.create("func.call", [r.type for r in op.results], tensors, {"callee": callee})
        _replace(op, call)


def _name_composites(module: ir.Module) -> None:
    """Calls of decompositions become `stablehlo.composite`, as the table on the module says."""
    table = module.operation.attributes["tt.composites"]
    for op in list(_block(main(module)).operations):
        op = op.operation
        if op.name != "func.call":
            continue
        callee = op.attributes["callee"]
        attributes = {
            "name": table[callee.value]["name"],
            "composite_attributes": table[callee.value]["attributes"],
            "decomposition": callee,
        }
        with ir.InsertionPoint(op), op.location:
            new = ir.Operation.create("stablehlo.composite", [r.type for r in op.results], list(op.operands), attributes)
        _replace(op, new)
    del module.operation.attributes["tt.composites"]


def _replace(op: ir.Operation, new: ir.Operation) -> None:
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()

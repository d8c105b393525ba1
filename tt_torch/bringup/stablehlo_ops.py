"""Takes a StableHLO module apart into its unique ops; each becomes a module of its own, with inputs of the real run.

Eager PyTorch gives the values that are results of FX nodes. Other values, such as a broadcast or an intermediate sum,
are computed by `interpret`: the file of the op has the ops that lead there from known values.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node
from torch_mlir import ir

from tt_torch.bringup.intermediates import Values
from tt_torch.bringup.records import OpRecords, Work, file_of
from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.driver.compile import compile_graph
from tt_torch.driver.partition import computing, form, probe
from tt_torch.driver.stablehlo import tensor_type
from tt_torch.dynamo.passes.rewriting import copied, user_line
from tt_torch.dynamo.types import Result
from tt_torch.errors import CompileError
from tt_torch.mlir.context import describe, node_of
from tt_torch.mlir.functions import block, main, program_of
from tt_torch.mlir.repro import snapshot
from tt_torch.mlir.types import Function, Value

CONSTANTS = ("stablehlo.constant", "arith.constant")
# These ops are copied together with the op that reads them, because some rules, such as argmax's, look at them.
COPIED = (*CONSTANTS, "stablehlo.iota")

Known: TypeAlias = dict[int | str, Result]  # values: of arguments by number, of FX nodes by name


def cut_stablehlo(
    gm: GraphModule, roles: Sequence[str], inputs: Sequence[torch.Tensor], records: OpRecords, folder: Path
) -> None:
    """Writes a file per unique op of the graph's StableHLO.

    ATen ops without a lowering get a record that says so, and their results become inputs of the other ops. If the
    other ops cannot be lowered either, the error is saved with the records, and raised.
    """
    config = dataclasses.replace(records.config, compile_depth=CompileDepth.STABLEHLO)
    try:
        module, values = _lower(gm, roles, inputs, config)
    except CompileError:
        missing = probe(computing(gm.graph), lambda piece, roles: compile_graph(piece, roles, config))
        for node, reason in missing.items():
            record = records.add(form(node), str(node.target), user_line(node))
            if record is not None:
                record |= {"verdict": "unsupported", "error": "UnsupportedOpError", "message": reason}
        known = Values(gm)
        known.run(*inputs)
        rest, names = without(gm, missing)
        roles, inputs = [*roles, *["input"] * len(names)], [*inputs, *(known.values[name] for name in names)]
        try:
            module, values = _lower(rest, roles, inputs, config)
        except CompileError as error:
            records.error = records.config.outputs.graph_error = str(error)
            records.save()
            raise
    cut_module(module, values, records, folder)


def without(gm: GraphModule, missing: Collection[Node]) -> tuple[GraphModule, list[str]]:
    """A copy of a graph that takes the results of some ops as inputs, after its own; and the names of these nodes.

    If an op has several results, these are the nodes that pick one of them. The operands of the ops become outputs, so
    that the ops before them stay in the graph.
    """
    rest, gone = copied(gm), {node.name for node in missing}
    placeholders = rest.graph.find_nodes(op="placeholder")
    names: list[str] = []
    read: dict[Node, None] = {}
    for node in [n for n in rest.graph.nodes if n.name in gone]:
        arguments = list(node.all_input_nodes)
        results = [node] if isinstance(node.meta["val"], torch.Tensor) else list(node.users)
        for result in results:
            with rest.graph.inserting_after(placeholders[-1]) if placeholders else rest.graph.inserting_before(None):
                stand_in = rest.graph.placeholder(f"result_{len(names)}")
            stand_in.meta = dict(result.meta)
            placeholders.append(stand_in)
            names.append(result.name)
            result.replace_all_uses_with(stand_in)
            rest.graph.erase_node(result)
        if node not in results:
            rest.graph.erase_node(node)
        read.update(dict.fromkeys(arguments))
    (output,) = rest.graph.find_nodes(op="output")
    output.args = ((*output.args[0], *(n for n in read if n.op == "call_function" and n not in output.args[0])),)
    rest.recompile()
    return rest, names


def cut_module(module: ir.Module, values: Known, records: OpRecords, folder: Path) -> None:
    """Writes a file per unique op of `main`. `values` has at least the arguments."""
    cutter = _Cutter(module, values)
    for op in block(main(module)).operations:
        if op.operation.name not in (*CONSTANTS, "func.return"):
            cutter.cut(op.operation, records, folder)


def _lower(
    gm: GraphModule, roles: Sequence[str], inputs: Sequence[torch.Tensor], config: CompilerConfig
) -> tuple[ir.Module, Known]:
    """The StableHLO of the graph, and its known values: arguments by number, FX nodes by name."""
    forms: dict[str, Any] = {}
    compiled = compile_graph(gm, roles, config, forms.__setitem__)
    arguments = [*inputs, *compiled.constants]
    nodes = Values(GraphModule(gm, forms["FX"]))
    nodes.run(*arguments)
    return forms["STABLEHLO"], nodes.values | dict(enumerate(arguments))


class _Cutter:
    def __init__(self, module: ir.Module, values: Known) -> None:
        self.module = module
        body = block(main(module))
        self.known = {argument: values[i] for i, argument in enumerate(body.arguments)}
        last = {node_of(op.location)[0]: op.operation for op in body.operations}
        for name, op in last.items():
            if len(op.results) == 1 and _fits(values.get(name), op.results[0]):
                self.known[op.results[0]] = values[name]

    def cut(self, op: ir.Operation, records: OpRecords, folder: Path) -> None:
        constants = _constants(op)
        tensors = list(dict.fromkeys(v for v in op.operands if not _is_constant(v)))
        module = program_of([*constants, op], tensors, list(op.results), self._functions(op))
        key = _key(op, module)
        record = records.add(key, op.name, describe(op.location))
        if record is None:
            return
        results = list(op.results)
        inputs, golden = ([self.known.get(v) for v in values] for values in (tensors, results))
        work = {
            "key": key,
            "record": record,
            "op": snapshot(module),
            "inputs": inputs,
            "golden": golden,
            "input_types": [tensor_type(v) for v in tensors],
            "dtypes": [tensor_type(v)[1] for v in results],
            "slice": self._slice(op, tensors, results),
        }
        record["input_shapes"] = [str(tensor_type(v)[0]) for v in tensors]
        record["output_shapes"] = [str(tensor_type(v)[0]) for v in results]
        torch.save(work, file_of(folder, record))

    def _slice(self, op: ir.Operation, tensors: list[Value], results: list[Value]) -> Work | None:
        """A program that computes the op's unknown values from known ones, with its inputs; None if all are known."""
        wanted = [v for v in [*tensors, *results] if v not in self.known]
        if not wanted:
            return None
        needed: set[Value] = set()
        pending = list(wanted)
        while pending:
            value = pending.pop()
            if value in needed:
                continue
            needed.add(value)
            if value not in self.known or value in results:
                pending += value.owner.operation.operands
        return self._program(needed, wanted, results)

    def _program(self, needed: set[Value], wanted: list[Value], results: list[Value]) -> Work:
        computed = {v for v in needed if v not in self.known or v in results}
        arguments = [v for v in needed if v not in computed]
        ops = [
            o.operation for o in block(main(self.module)).operations if any(r in computed for r in o.operation.results)
        ]
        functions = [f for o in ops for f in self._functions(o)]
        module = program_of(ops, arguments, wanted, list(dict.fromkeys(functions)))
        return {"module": snapshot(module), "inputs": [self.known[v] for v in arguments]}

    def _functions(self, op: ir.Operation) -> list[Function]:
        """The decomposition of a composite."""
        if op.name != "stablehlo.composite":
            return []
        name = op.attributes["decomposition"].value
        return [f for f in self.module.body.operations if f.name.value == name]


def _key(op: ir.Operation, module: ir.Module) -> str:
    """A name that is equal for equal ops: the op and its types, for people, and a digest of the module's text."""
    digest = hashlib.sha256(str(module).encode()).hexdigest()[:12]
    types = [", ".join(str(v.type) for v in values) for values in (op.operands, op.results)]
    return f"{op.name} ({types[0]}) -> ({types[1]}) #{digest}"


def _is_constant(value: Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name in COPIED


def _constants(op: ir.Operation) -> list[ir.Operation]:
    return list(dict.fromkeys(v.owner.operation for v in op.operands if _is_constant(v)))


def _fits(known: object, value: Value) -> bool:
    return isinstance(known, torch.Tensor) and (tuple(known.shape), known.dtype) == tensor_type(value)

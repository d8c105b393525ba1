"""Writes ops of PyTorch that call graphs as StableHLO: `while_loop` becomes a `while`, and `cond` an `if`.

Each graph was lowered as a program of its own, and becomes a private function of the module. If a call is flagged, its
last result is false if a float did not fit into an integer, or an index was out of range. A loop then ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import torch
from torch_mlir import ir

from tt_torch.dynamo.graph_calls import TARGET, GraphCall
from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, call, main, returned
from tt_torch.mlir.stablehlo.build import constant, make, reshaped
from tt_torch.mlir.stablehlo.flatten import ONE_BRANCH
from tt_torch.mlir.types import Value
from tt_torch.mlir.user_ops import is_call
from tt_torch.torch_private.tensors import unset_fake_temporarily


def write_constants(module: ir.Module, tensors: Sequence[torch.Tensor]) -> None:
    """Replaces the last arguments of the program by constants."""
    function, body = main(module), block(main(module))
    first = len(body.arguments) - len(tensors)
    where = ir.InsertionPoint.at_block_begin(body), ir.Location.unknown(module.context)
    with where[0], where[1], unset_fake_temporarily():
        for argument, tensor in zip(list(body.arguments)[first:], tensors, strict=True):
            argument.replace_all_uses_with(_constant(argument.type, tensor))
        for number in reversed(range(first, len(body.arguments))):
            body.erase_argument(number)
        kinds = [x.type for x in body.arguments], [x.type for x in returned(module)]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(list(function.attributes["arg_attrs"])[:first])


def _constant(kind: ir.RankedTensorType, tensor: torch.Tensor) -> Value:
    if not tensor.numel():  # it may be fake
        tensor = torch.empty(tensor.shape, dtype=tensor.dtype)
    if tensor.dtype is torch.bfloat16:  # NumPy lacks it
        wide = ir.RankedTensorType.get(kind.shape, ir.F32Type.get())
        return make("convert", kind, constant(wide, tensor.float().numpy()))
    return constant(kind, tensor.numpy())


def add_function(module: ir.Module, body: ir.Module, name: str) -> str:
    """The name of a new private function of the module, which computes what the program of another module does.
    Functions of the other module come along, with names that begin with this name."""
    text = body.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    copy = ir.Module.parse(text, module.context)
    names = {f.name.value: f"{name}.{f.name.value}" for f in copy.body.operations} | {"main": name}
    with module.context:
        _rename(copy, names)
    with ir.InsertionPoint(module.body):
        for function in copy.body.operations:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)
            function.operation.clone()
    return name


def _rename(module: ir.Module, names: Mapping[str, str]) -> None:
    """Gives the functions of a module other names."""

    def rename(op: ir.Operation) -> ir.WalkResult:
        for attribute in ("callee", "decomposition"):
            if attribute in op.attributes:
                op.attributes[attribute] = ir.FlatSymbolRefAttr.get(names[ods.attr(op, attribute)])
        return ir.WalkResult.ADVANCE

    module.operation.walk(rename)
    for function in module.body.operations:
        function.attributes["sym_name"] = ir.StringAttr.get(names[function.name.value])


def write_calls(module: ir.Module, calls: Sequence[GraphCall], bodies: Sequence[Sequence[ir.Module]]) -> None:
    """Replaces the calls by loops and branches of the functions in `bodies`. A loop has those of the condition and of
    the body; a branch those for true and for false."""
    for op in [op.operation for op in block(main(module)).operations]:
        if is_call(op, TARGET):
            number = int(ods.attr(op, "backend_config"))
            with ir.InsertionPoint(op), op.location:
                names = [add_function(module, each, f"graph{number}_{i}") for i, each in enumerate(bodies[number])]
                counts = [len(returned(each)) for each in bodies[number]]
                write = _loop if calls[number].is_loop else _branch
                results = write(op, calls[number].results, names, counts)
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _loop(op: ir.Operation, count: int, names: Sequence[str], counts: Sequence[int]) -> list[Value]:
    """The results of a loop that carries `count` values. A flag is carried after them. The body and the condition may
    give a flag as their last result, of `counts`."""
    values, flagged, scalar = list(op.operands), len(op.results) > count, _boolean()
    kinds, others = [x.type for x in values[:count]], values[count:]

    def decided(given: Sequence[Value]) -> list[Value]:
        going, *flag = _called(names[0], [*given[:count], *others], [scalar] * counts[0])
        return [reshaped(going, []), *flag]

    start = [*values[:count], *([_true()] if flagged else [])]
    made = ir.Operation.create("stablehlo.while", [x.type for x in start], start, regions=2)
    condition, body = (ir.Block.create_at_start(region, [x.type for x in start]) for region in made.regions)
    with ir.InsertionPoint(condition):
        given = list(condition.arguments)
        ir.Operation.create("stablehlo.return", [], _all([decided(given)[0], *given[count:]]))
    with ir.InsertionPoint(body):
        given = list(body.arguments)
        new = _called(names[1], [*given[:count], *others], [*kinds, scalar][: counts[1]])
        flags = [*given[count:], *new[count:], *(decided(given)[1:] if counts[0] > 1 else [])]
        ir.Operation.create("stablehlo.return", [], [*new[:count], *_all(flags)])
    results = list(made.results)
    if counts[0] > 1:  # the flag of the condition that ended the loop
        results[count:] = _all([results[count], *decided(results)[1:]])
    return results


def _branch(op: ir.Operation, count: int, names: Sequence[str], counts: Sequence[int]) -> list[Value]:
    """The results of a branch, which has `count` results and perhaps a flag. Each graph has as many results as `counts`
    says."""
    predicate, *operands = op.operands
    kinds = [x.type for x in op.results]
    mark = {ONE_BRANCH: ir.UnitAttr.get()}
    made = ir.Operation.create("stablehlo.if", kinds, [reshaped(predicate, [])], mark, regions=2)
    for region, name, own in zip(made.regions, names, counts, strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            results = _called(name, operands, kinds[:own])
            results += [_true() for _ in kinds[own:]]
            ir.Operation.create("stablehlo.return", [], results)
    return list(made.results)


def _called(name: str, operands: Sequence[Value], kinds: Sequence[ir.Type]) -> list[Value]:
    return list(call(name, list(operands), list(kinds)).results)


def _boolean() -> ir.RankedTensorType:
    return ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))


def _true() -> Value:
    return make("constant", _boolean(), value=ir.DenseElementsAttr.get_splat(_boolean(), ir.BoolAttr.get(True)))


def _all(flags: Sequence[Value]) -> list[Value]:
    """One flag that is true if all are; none if there are none."""
    return [reduce(lambda x, y: make("and", x.type, x, y), flags)] if flags else []

"""Turns StableHLO from any front-end into one function of plain ops.

Calls and branches are inlined, composites without a rule are replaced by their decomposition, tuples become their
elements, complex numbers become two values, and quantized numbers become integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import count

import numpy as np
from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir import ods
from tt_torch.mlir.context import describe, run_native, unsupported
from tt_torch.mlir.functions import block, main, nested, replace
from tt_torch.mlir.stablehlo.approximate import sort_instead
from tt_torch.mlir.stablehlo.build import again, broadcast, compared, constant, make
from tt_torch.mlir.stablehlo.by_pytorch import compute_by_pytorch
from tt_torch.mlir.stablehlo.complex_angles import angles_to_logarithms
from tt_torch.mlir.stablehlo.complex_parts import has_complex, is_complex, split_complex
from tt_torch.mlir.stablehlo.general_reductions import reduce_by_slices
from tt_torch.mlir.stablehlo.general_scatters import scatter_results
from tt_torch.mlir.stablehlo.loops import take_loops_apart
from tt_torch.mlir.stablehlo.random_state import states_to_words
from tt_torch.mlir.stablehlo.subtractions import add_instead
from tt_torch.mlir.types import Op

MOST_OPS = 100_000  # the limit after inlining; or eight times the ops before it, if that is more
_READING_SIZES = "broadcast_in_dim conv gather iota pad reshape"
DYNAMIC = {f"stablehlo.dynamic_{name}" for name in _READING_SIZES.split()} | {"stablehlo.real_dynamic_slice"}
BRANCHES = ("stablehlo.case", "stablehlo.if")
ONE_BRANCH = "tt.one_branch"  # on a branch: the host decides which of its programs runs
# The specification defines a quantized op as a dequantize, the op on floats, and a quantize.
FROM_QUANTIZED = ("stablehlo-legalize-quantized-op-to-qdq", "stablehlo-legalize-quant-to-math")


def flatten(module: ir.Module, known: Callable[[Op], bool], ops: Container[str]) -> None:
    """Leaves only `main` in the module. `known` tells which composites stay, and `ops` which ops stay.

    Raises UnsupportedOpError if no function can be the program.
    """
    inline_calls(module, known)
    take_control_apart(module)
    # A native pass refuses a module with a composite whose decomposition is gone.
    if not any(op.name == "stablehlo.composite" for op in nested(main(module))):
        _erase_all_but_main(module)
    _make_static(module)
    body = block(main(module))
    with module.context:
        _take_tuples_apart(body)
        states_to_words(body)
    chlo = [op.operation for op in body.operations if op.operation.name.startswith("chlo.")]
    if any(op.name not in ops or any(map(is_complex, op.results)) for op in chlo):
        with module.context:
            _broadcast_selects(chlo)
        run_native(module, "func.func(chlo-legalize-to-stablehlo)")
    with module.context:
        reduce_by_slices(body)
        compute_by_pytorch(main(module), MOST_OPS)
    if has_complex(body):
        with module.context:
            angles_to_logarithms(main(module))
        run_native(module, "func.func(stablehlo-complex-math-expander)")
        with module.context:
            split_complex(main(module))
    if _has_quantized(body):
        run_native(module, *(f"func.func({name})" for name in FROM_QUANTIZED))
        with module.context:
            _mark_quantized(main(module))
    _erase_all_but_main(module)


def _broadcast_selects(chlo: Iterable[ir.Operation]) -> None:
    """Broadcasts the operands of CHLO's selects. The native pass would read their shapes from values of the program."""
    for op in [op for op in chlo if op.name == "chlo.broadcast_select"]:
        (kind,) = (result.type for result in op.results)
        with ir.InsertionPoint(op), op.location:
            ends = (range(kind.rank - x.type.rank, kind.rank) for x in op.operands)
            operands = [broadcast(x, kind.shape, dims) for x, dims in zip(op.operands, ends, strict=True)]
            replace(op, ir.Operation.create("stablehlo.select", [kind], operands))


def inline_calls(module: ir.Module, known: Callable[[Op], bool]) -> None:
    """Leaves no call in `main`, the program. For `known` and errors see `flatten`."""
    name_entry(module)
    _require_static_arguments(module)
    sort_instead(module)
    add_instead(module)
    for op in [op for op in nested(module) if op.name == "stablehlo.composite" and not known(op)]:
        with module.context, ir.InsertionPoint(op), op.location:
            callee = {"callee": op.attributes["decomposition"]}
            replace(op, ir.Operation.create("func.call", [r.type for r in op.results], list(op.operands), callee))
    _require_bounded(module)
    _inline(module)
    scatter_results(module)


def take_control_apart(module: ir.Module, stays: Callable[[Op], bool] = lambda op: False) -> None:
    """Unrolls the loops of `main`, and computes all branches. Ops for which `stays` is true are left as they are.

    Raises UnsupportedOpError for a loop whose number of steps is not known, or too large.
    """
    with module.context:
        for depth in count():  # each time round takes the outermost loops
            _take_branches_apart(block(main(module)), stays)  # a loop may be in a branch, and a branch in a loop
            if not take_loops_apart(main(module), f"tt.loop_{depth}", stays):
                return
            _require_bounded(module)
            _inline(module)


def _erase_all_but_main(module: ir.Module) -> None:
    for function in list(module.body.operations):
        if function.operation.name != "func.func" or function.name.value != "main":
            function.operation.erase()


def name_entry(module: ir.Module) -> None:
    """Renames the only public function to main, if there is no main."""
    functions = [f for f in module.body.operations if f.operation.name == "func.func"]
    if any(f.name.value == "main" for f in functions):
        return
    public = [f for f in functions if "private" not in str(f.attributes.get("sym_visibility", ""))]
    if len(public) != 1:
        names = ", ".join(f.name.value for f in public) or "none"
        detail = f"a program is the function main, or the only public one; public are: {names}"
        raise UnsupportedOpError("builtin.module", "stablehlo-to-ttir", describe(module.operation.location), detail)
    public[0].attributes["sym_name"] = ir.StringAttr.get("main", module.context)


def _require_static_arguments(module: ir.Module) -> None:
    """Raises UnsupportedOpError for an argument of the program with a size that is open."""
    for number, argument in enumerate(main(module).arguments):
        if _is_open(argument):
            where, detail = (
                argument.location,
                f"argument {number} of main has the type {argument.type}; give it fixed sizes",
            )
            raise UnsupportedOpError("func.func", "stablehlo-to-ttir", describe(where), detail)


def _is_open(value: ir.Value) -> bool:
    return isinstance(value.type, ir.ShapedType) and not value.type.has_static_shape


def _make_static(module: ir.Module) -> None:
    """Ops that read the sizes of their results from constants become ops with these sizes. Raises UnsupportedOpError
    if a size stays open."""
    if any(op.name in DYNAMIC or any(map(_is_open, op.results)) for op in nested(main(module))):
        run_native(module, "stablehlo-refine-shapes", "func.func(stablehlo-canonicalize-dynamism)")
    for op in nested(main(module)):
        if any(map(_is_open, op.results)):
            raise unsupported(op, "stablehlo-to-ttir", "results whose sizes are constants")


def _require_bounded(module: ir.Module) -> None:
    """Raises UnsupportedOpError for functions that call each other in a circle, and if there are too many ops when all
    calls are inlined. For example, 25 functions that each call the next function twice make 33 million ops."""
    ops = {f.name.value: list(nested(f)) for f in module.body.operations if f.operation.name == "func.func"}
    calls = {
        name: Counter(ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in its if op.name == "func.call")
        for name, its in ops.items()
    }
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError:
        raise _unbounded(module, "functions call each other in a circle") from None
    sizes: Counter[str] = Counter()
    for name in order:
        inlined = sum(count * sizes[callee] for callee, count in calls.get(name, {}).items())
        sizes[name] = len(ops.get(name, ())) + inlined
    most = max(MOST_OPS, 8 * sum(map(len, ops.values())))
    if sizes["main"] > most:
        raise _unbounded(module, f"with all calls inlined it has more than {most:,} ops")


def _inline(module: ir.Module) -> None:
    if any(op.name == "func.call" for op in nested(main(module))):
        run_native(module, "inline{default-pipeline=}")


def _unbounded(module: ir.Module, detail: str) -> UnsupportedOpError:
    return UnsupportedOpError("func.call", "stablehlo-to-ttir", describe(module.operation.location), detail)


def _has_quantized(body: ir.Block) -> bool:
    if any("!quant." in str(argument.type) for argument in body.arguments):
        return True
    return any(op.operation.name.startswith("stablehlo.uniform_") for op in body.operations)


def _mark_quantized(function: ir.Operation) -> None:
    """Notes that floats were clamped before they became integers. Integers of uint8 are in i8 now, but they do not
    wrap."""
    for op in nested(function):
        if op.name == "stablehlo.convert" and isinstance(op.operands[0].type.element_type, ir.FloatType):
            op.attributes["tt.clamped"] = ir.UnitAttr.get()


def _take_branches_apart(body: ir.Block, stays: Callable[[Op], bool]) -> None:
    """Computes all branches and selects a result by the index. StableHLO ops have no side effects, so this is safe."""
    while ops := [op for o in body.operations if (op := o.operation).name in BRANCHES and not stays(op)]:
        for op in ops:
            branches = [_moved(region.blocks[0], op) for region in op.regions]
            with ir.InsertionPoint(op), op.location:
                values = _selected(op.name, op.operands[0], branches)
            for old, new in zip(op.results, values, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _moved(body: ir.Block, before: ir.Operation) -> list[ir.Value]:
    """Moves the ops of a branch before the op with the branch; returns the values that the branch returns."""
    *ops, last = list(body.operations)
    for op in ops:
        op.operation.move_before(before)
    return list(last.operands)


def _selected(name: str, index: ir.Value, branches: list[list[ir.Value]]) -> list[ir.Value]:
    *others, values = branches  # an index out of range selects the last branch
    for number, branch in reversed(list(enumerate(others))):
        chosen = index if name == "stablehlo.if" else compared("EQ", index, _number(index.type, number))
        values = [make("select", b.type, chosen, b, v) for b, v in zip(branch, values, strict=True)]
    return values


def _number(kind: ir.RankedTensorType, value: int) -> ir.Value:
    return constant(kind, np.array(value, np.int32))


def _take_tuples_apart(body: ir.Block) -> None:
    """Replaces each element of a tuple by its value. A custom call returns the elements instead of a tuple."""
    tuples: dict[ir.Value, list[ir.Value]] = {}
    for op in [op.operation for op in body.operations]:
        if op.name == "stablehlo.tuple":
            tuples[op.results[0]] = list(op.operands)
        elif op.name == "stablehlo.custom_call" and len(op.results) and isinstance(op.results[0].type, ir.TupleType):
            tuples[op.results[0]] = _with_elements(op)
        elif op.name == "stablehlo.get_tuple_element" and op.operands[0] in tuples:
            op.results[0].replace_all_uses_with(tuples[op.operands[0]][ods.attr(op, "index")])
            op.erase()
    for value in tuples:
        if not any(True for _ in value.uses):
            value.owner.erase()


def _with_elements(call: ir.Operation) -> list[ir.Value]:
    kind = call.results[0].type
    with ir.InsertionPoint(call), call.location:
        return again(call, list(call.operands), [kind.get_type(i) for i in range(kind.num_types)])

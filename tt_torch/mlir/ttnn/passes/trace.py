"""Puts the ops of a program into a recording, which the device replays without the host.

The functions are those of tt-mlir. `trace_0_main` has the ops. Its arguments are all the memory that the recording
uses: values that stay on the device between calls, the inputs of a call, and the results, which the last ops copy
there. `allocate_slots_trace_0_main` allocates the inputs and results, and passes the resident values through.
`run_and_capture_trace_0_main` writes the inputs of the first call to their memory and records the ops, and
`execute_trace_0_main` replays them. The program takes its inputs on the host, and calls `capture_or_execute_trace_0`, a
function without a body. Its attributes name these three functions. In the binary, it is a CaptureOrExecuteTraceOp. It
is no op of the dialect, because IRDL cannot declare a variable number of operands of different types.

The first call runs the ops twice. This is allowed with states, too: ops that write to one in place read nothing of its
old value (see ttir/passes/update_states.py), and all other new values are results, which have memory of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from torch_mlir import ir

from tt_torch import user_code
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import argument_kinds, block, call, main, private_function
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.types import Function, Value

RECORDED = "trace_0_main"
ALLOCATE, CAPTURE, EXECUTE = (f"{part}_{RECORDED}" for part in ("allocate_slots", "run_and_capture", "execute"))
CALLED = "capture_or_execute_trace_0"
QUEUE = {"cq_id": 0}


def record(module: ir.Module) -> None:
    """Records the ops of a program, whose temporary values are freed already. A program that cannot be recorded stays
    as it is, and a UserWarning says why."""
    function = main(module)
    with module.context:
        ops = [op.operation for op in block(function).operations]
        ops = [op for op in ops if op.name not in ("func.call", "func.return")]
        if obstacle := ops and _obstacle(module, ops):
            message = f"enable_trace has no effect on this program, because {obstacle}"
            user_code.warn(UserWarning(message))
        elif ops:
            with ops[-1].location:
                _record(module, _Recording.of(function, ops))


def _obstacle(module: ir.Module, ops: Sequence[ir.Operation]) -> str:
    """The reason why ops cannot be recorded; empty if they can."""
    if mesh_of(module) != (1, 1):
        return "it is for several chips"
    for op in ops:
        # The host fills new tensors, and nobody knows what the user's ops read.
        places = [layout_of(v).on_device for v in (*op.operands, *op.results)]
        if not len(op.operands) or not all(places) or op.name.startswith("ttnn.custom_"):
            return f"it needs the host in each call: {op.name} at {describe(op.location)}"
    return ""


@dataclass
class _Recording:
    ops: list[ir.Operation]
    resident: list[Value]  # what stays on the device between calls: the results of const-eval, and states
    inputs: list[Value]
    outputs: list[Value]

    @classmethod
    def of(cls, function: Function, ops: Sequence[ir.Operation]) -> _Recording:
        made = {r for op in ops for r in op.results}
        given = {a for a, kind in zip(function.arguments, argument_kinds(function), strict=True) if kind == "input"}
        # The memory of the inputs stays for the next call.
        kept = [op for op in ops if op.name != "ttnn.deallocate" or op.operands[0] not in given]
        read = dict.fromkeys(v for op in kept for v in op.operands if v not in made)
        inputs = [v for v in read if v in given]
        *_, last = block(function).operations
        outputs = dict.fromkeys(v for v in last.operands if v in made)
        return cls(kept, [v for v in read if v not in given], inputs, list(outputs))

    def places(self) -> list[ir.Location]:
        """For each input, the location of the first op that reads it, and for each result, of the op that makes it."""
        readers = {v: op for op in reversed(self.ops) for v in op.operands}
        return [readers[v].location for v in self.inputs] + [v.owner.location for v in self.outputs]

    def hosts(self) -> list[ir.Type]:
        """The types of the inputs on the host."""
        return [with_layout(list(v.type.shape), layout_of(v).with_(buffer="SystemMemory")) for v in self.inputs]


def _record(module: ir.Module, found: _Recording) -> None:
    hosts, resident = found.hosts(), [v.type for v in found.resident]
    own = [v.type for v in (*found.inputs, *found.outputs)]
    number = with_layout([], Layout("UInt32", tiled=False, buffer="SystemMemory"))
    b, places = Builder(), [Builder(location=at) for at in found.places()]
    with _function(module, RECORDED, [*resident, *own]) as (arguments, _):
        _copy_ops(found, arguments)
    with _function(module, ALLOCATE, resident, [*resident, *own]) as (arguments, results):
        results += [*arguments, *(at("ttnn.empty", type=kind) for at, kind in zip(places, own, strict=True))]
    with _function(module, CAPTURE, [*hosts, *resident, *own], [number]) as (arguments, results):
        memory = arguments[len(hosts) :]
        for at, host, slot in zip(places, arguments[: len(hosts)], memory[len(resident) :], strict=False):
            at("ttnn.write_tensor", host, slot, type=[], blocking=False, **QUEUE)
        results.append(_capture(b, memory, number))
    with _function(module, EXECUTE, [number]) as (arguments, _):
        b("ttnn.execute_trace", *arguments, type=[], blocking=False, **QUEUE)
    named = {"allocate_slots_callee": ALLOCATE, "capture_callee": CAPTURE, "execute_callee": EXECUTE}
    symbols = {part: ir.FlatSymbolRefAttr.get(name) for part, name in named.items()}
    private_function(module, CALLED, [*resident, *hosts], [v.type for v in found.outputs], symbols)
    _replace(module, found, hosts)


@contextmanager
def _function(
    module: ir.Module, name: str, arguments: Sequence[ir.Type], results: Sequence[ir.Type] = ()
) -> Iterator[tuple[list[Value], list[Value]]]:
    """Makes a function. Ops that are made in this context go into it. Yields its arguments, and a list for results."""
    body = private_function(module, name, arguments, results).regions[0].blocks.append(*arguments)
    returned: list[Value] = []
    with ir.InsertionPoint(body):
        yield list(body.arguments), returned
        ir.Operation.create("func.return", [], returned)


def _copy_ops(found: _Recording, memory: Sequence[Value]) -> None:
    """Copies the recorded ops, and copies their results to the memory of the results, which is the last of `memory`."""
    values = dict(zip((*found.resident, *found.inputs), memory, strict=False))
    for op in found.ops:
        clone = op.clone().operation
        for i, v in enumerate(op.operands):
            clone.operands[i] = values[v]
        values.update(zip(op.results, clone.results, strict=True))
    for v, slot in zip(found.outputs, memory[len(memory) - len(found.outputs) :], strict=True):
        b = Builder(location=v.owner.location)
        b("ttnn.copy", values[v], slot, type=[])
        b("ttnn.deallocate", values[v], type=[], force=False)


def _capture(b: Builder, memory: Sequence[Value], number: ir.Type) -> Value:
    """Runs the ops, which loads their kernels, then records and replays them. Returns the number of the recording."""
    call(RECORDED, memory, [])
    recording = b("ttnn.begin_trace_capture", type=number, **QUEUE)
    call(RECORDED, memory, [])
    b("ttnn.end_trace_capture", recording, type=[], **QUEUE)
    b("ttnn.execute_trace", recording, type=[], blocking=False, **QUEUE)
    assert isinstance(recording, ir.Value)
    return recording


def _replace(module: ir.Module, found: _Recording, hosts: Sequence[ir.Type]) -> None:
    """Replaces the ops of the program by the recording, and its inputs by those on the host."""
    function = main(module)
    *before, last = [op.operation for op in block(function).operations]
    for v, kind in zip(found.inputs, hosts, strict=True):
        v.set_type(kind)
    with ir.InsertionPoint(last):
        results = call(CALLED, [*found.resident, *found.inputs], [v.type for v in found.outputs]).results
    new = dict(zip(found.outputs, results, strict=True))
    for i, v in enumerate(last.operands):
        last.operands[i] = new.get(v, v)
    for op in reversed(before):
        if op.name != "func.call":
            op.erase()
    kinds = ir.FunctionType.get([v.type for v in function.arguments], [v.type for v in last.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(kinds)

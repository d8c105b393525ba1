"""Reads recordings (CaptureOrExecuteTraceOp). Finds the programs that a recording calls, for the function `recorded` of
generated programs, and makes the same program without recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.wire import calls, facts
from tt_torch.wire.messages import File, Operation, Program, TensorRef, Value

TABLE = "CaptureOrExecuteTraceOp"
PARTS = ("allocate_slots_program_id", "capture_program_id", "execute_program_id")  # in the order of `recorded`


def called(programs: Sequence[Program], op: facts.Op) -> list[Program]:
    """The program of a FuncCallOp, or the three of a recording.

    Raises BinaryFormatError if one does not exist, and UnsupportedBinaryError if a recording writes its inputs in
    another order than `recorded` does.
    """
    indices = [op.record[part] for part in PARTS] if op.name == TABLE else [op.record["program_id"]]
    for index in indices:
        if index >= len(programs):
            raise BinaryFormatError(f"the binary has no program {index}")
    found = [programs[index] for index in indices]
    if op.name == TABLE:
        _check_writes(op, found[1])
    return found


def operands(op: facts.Op) -> list[list[facts.Tensor]]:
    """The operands of a call. The operands of a recording are in two groups: on the device, and on the host."""
    if op.name != TABLE:
        return [list(op.operands)]
    return [[t for t in op.operands if t.on_device == on_device] for on_device in (True, False)]


def written(program: Program) -> set[int]:
    """The ids of the tensors on the host that recordings write to the device in each call."""
    return {tensor.id for op in facts.ops(program) if op.name == TABLE for tensor in operands(op)[1]}


def _check_writes(op: facts.Op, capture: Program) -> None:
    """Checks that the memory of a recording is in the order of its operands, with operands on the device first.

    Raises UnsupportedBinaryError if it is not.
    """
    resident, hosts = operands(op)
    ids = [tensor.id for tensor in facts.inputs(capture)]
    writes = [each for each in facts.ops(capture) if each.name == "WriteTensorOp"]
    found = [(each.tensor("host_tensor").id, each.tensor("device_tensor").id) for each in writes]
    first = len(hosts) + len(resident)
    expected = list(zip(ids, ids[first : first + len(hosts)], strict=False))
    if list(op.operands) != [*resident, *hosts] or found != expected:
        raise UnsupportedBinaryError(f"program {capture['name']} writes the inputs of a recording in another order")


def unrecorded(message: File) -> File:
    """The message without recordings: its public programs take all inputs of calls on the device, and run the ops.

    Raises UnsupportedBinaryError if an op outside of a recording reads an input that the recording writes.
    """
    programs = message.get("programs", [])
    if not calls.recorded(message):
        return message
    kept = calls.cached(message)
    private = [program for program in programs if program.get("private") and program["name"] in kept]
    return {**message, "programs": [*map(_without_slots, calls.public(message)), *private]}


def _without_slots(program: Program) -> Program:
    """An expanded program without the memory of its recording, in which inputs are written and results are copied."""
    slots = _slots(program)
    operations = list(_without_writes(program["operations"], slots, {t.id for t in facts.inputs(program)}))
    outputs = [_renamed(ref, slots) for ref in program.get("outputs") or ()]
    returned = {ref["global_id"] for ref in outputs}
    operations = [op for op in operations if _freed(op) not in returned]
    inputs = [_renamed(ref, slots) for ref in program.get("inputs") or ()]
    return {**program, "inputs": inputs, "operations": operations, "outputs": outputs}


def _slots(program: Program) -> dict[int, TensorRef]:
    """The memory of each input of a recording, by the input's id."""
    ops = [op for op in facts.ops(program) if op.name != "DeallocateOp"]
    writes = {op.record["host_tensor"]["global_id"]: op.record for op in ops if op.name == "WriteTensorOp"}
    readers = [t.id for op in ops for t in op.operands]
    inputs = {t.id for t in facts.inputs(program)}
    if any(host not in inputs or readers.count(host) > 1 for host in writes):
        raise UnsupportedBinaryError(f"program {program['name']} reads an input of a recording outside of it, too")
    return {host: record["device_tensor"] for host, record in writes.items()}


def _without_writes(
    operations: Sequence[Operation], slots: dict[int, TensorRef], inputs: set[int]
) -> Iterator[Operation]:
    """The ops without those that write inputs to the memory of a recording, or copy results to it. `slots` gets the
    source of each copy, by the id of its target. Ops that free the source of a copy are left out, too."""
    known = inputs | {ref["global_id"] for ref in slots.values()}
    copied = set[int]()
    for operation in operations:
        ((name, record),) = operation["type"].items()
        record = _renamed(record, slots)
        if name == "CopyOp" and record["dst"]["global_id"] not in known:
            slots[record["dst"]["global_id"]] = record["src"]
            copied.add(record["src"]["global_id"])
        elif name != "WriteTensorOp" and not (name == "DeallocateOp" and record["in"]["global_id"] in copied):
            known.update(tensor.id for tensor in facts.tensors(record))
            yield {**operation, "type": {name: record}}


def _freed(operation: Operation) -> int | None:
    freed = operation["type"].get("DeallocateOp")
    return freed["in"]["global_id"] if freed else None


def _renamed(part: Value, names: dict[int, TensorRef]) -> Value:
    """A part of a message, in which tensors whose id is in `names` are replaced."""
    if facts.is_tensor(part):
        return names.get(part["global_id"], part)
    if isinstance(part, dict):
        return {name: _renamed(value, names) for name, value in part.items()}
    return [_renamed(value, names) for value in part] if isinstance(part, list) else part

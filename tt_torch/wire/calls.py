"""What a call of a binary runs: the ops of its public programs and of the programs that these call, and their cost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tt_torch.errors import BinaryFormatError
from tt_torch.wire import facts
from tt_torch.wire.messages import File, Operation, Program, Record, TensorRef, Value

CALLS = frozenset({"FuncCallOp", "CaptureOrExecuteTraceOp"})
_MOST_DEEP = 8  # as in the runtime
_MOST_PARTS = 1 << 20  # ops, fields and elements of lists


@dataclass(frozen=True, slots=True)
class Cost:
    """The device work of one call of a binary's public programs."""

    device_ops: int
    data_movement: int
    bytes_moved: int


def public(message: File) -> list[Program]:
    """The programs that a call runs. In them, called programs replace their calls. All other programs only compute
    values that are cached."""
    return [expanded(message, program) for program in message.get("programs", ()) if not program.get("private")]


def recorded(message: File) -> bool:
    """Whether a call replays a recording, so that the host does not start ops one by one."""
    return any("CaptureOrExecuteTraceOp" in record for record in _records(message))


def _records(message: File) -> Iterator[Record]:
    """The table of each op of all programs, by its name."""
    return (op.get("type", {}) for program in message.get("programs", ()) for op in program.get("operations") or ())


def device_ops(message: File) -> Iterator[facts.Op]:
    """Each op that a call of a binary runs on the device.

    Const-eval programs, whose results are cached, are not part of a call. Ops that only do bookkeeping, such as
    deallocate, get_device and load_cached, are left out.
    """
    for program in public(message):
        yield from (op for op in facts.ops(program) if op.on_device)


def op_histogram(message: File) -> Counter[str]:
    """How often each op runs on the device per call, by `Op.key`."""
    return Counter(op.key for op in device_ops(message))


def cost(message: File) -> Cost:
    """The number of device ops, of data-movement ops, and of bytes moved per call.

    An op moves each of its operands and results once, at its physical size (`physical_bytes`). An operand that is given
    twice is moved twice. An op that updates a cache in place moves only the new rows. A lookup
    reads only the elements of its result, not its whole table. A view moves nothing.
    """
    found = list(device_ops(message))
    moved = sum(t.bytes for op in found for t in (*op.read, *op.written))
    return Cost(len(found), sum(op.name in facts.DATA_MOVEMENT for op in found), moved)


def cached(message: File) -> set[str]:
    """The names of the programs whose results are cached: calls do not run them."""
    return {record["LoadCachedOp"]["callee_name"] for record in _records(message) if "LoadCachedOp" in record}


def expanded(message: File, program: Program) -> Program:
    """The program, in which called programs replace their calls; the same object if it has no calls.

    Const-eval programs stay calls, because their results are cached. A recording (CaptureOrExecuteTraceOp) becomes what
    every call after the first one does: it writes the inputs from the host into their tensors and runs the recorded
    ops. Raises BinaryFormatError if a called program does not exist or does not fit its call, and if calls are too deep
    or too many.
    """
    if not any(name in CALLS for op in program.get("operations") or () for name in op.get("type", {})):
        return program
    expansion, frame = _Expansion(message), _Frame({}, 0)
    operations = list(expansion.operations(program["operations"], frame))
    outputs = [expansion.tensor(ref, frame) for ref in program.get("outputs") or ()]
    return {**program, "operations": operations, "outputs": outputs}


@dataclass
class _Frame:
    """A call. `tensors` maps an id in the called program to the tensor of the expanded program that stands for it."""

    tensors: dict[int, TensorRef]
    depth: int  # 0 for the program itself, whose tensors keep their ids


class _Expansion:
    def __init__(self, message: File) -> None:
        self.programs = message.get("programs", [])
        self.free_ids = itertools.count(1 + max((ref.id for ref in facts.tensors(self.programs)), default=0))
        self.parts_left = _MOST_PARTS

    def operations(self, operations: Iterable[Operation], frame: _Frame) -> Iterator[Operation]:
        for operation in operations:
            for name, record in operation.get("type", {}).items():
                self._count(record)
                if name == "FuncCallOp":
                    yield from self._call(record, frame)
                elif name == "CaptureOrExecuteTraceOp":
                    yield from self._replay(record, frame)
                else:
                    yield {**operation, "type": {name: self._renamed(record, frame)}}

    def _count(self, part: Sequence[Value] | Record) -> None:
        self.parts_left -= 1 + len(part)
        if self.parts_left < 0:
            raise BinaryFormatError(f"a program has more than {_MOST_PARTS} parts when its calls are expanded")

    def _call(self, record: Record, frame: _Frame) -> Iterator[Operation]:
        callee = self._program(record["program_id"])
        inner = self._frame(callee, self._given(record, frame), frame.depth)
        yield from self.operations(callee.get("operations") or (), inner)
        self._return(record, [self.tensor(ref, inner) for ref in callee.get("outputs") or ()], frame)

    def _replay(self, record: Record, frame: _Frame) -> Iterator[Operation]:
        """The program that allocates the recording's tensors takes the first inputs that are on the device. These stay
        where they are, and all other inputs are written. The results are the last tensors of the recording. See
        recording.cpp in the runtime."""
        allocate, capture = (self._program(record[f"{part}_program_id"]) for part in ("allocate_slots", "capture"))
        given = self._given(record, frame)
        on_device = [i for i, ref in enumerate(record.get("inputs") or ()) if facts.tensor(ref).on_device]
        stay = set(on_device[: len(allocate.get("inputs") or ())])
        resident, written = ([ref for i, ref in enumerate(given) if (i in stay) == stays] for stays in (True, False))
        memory = self._frame(allocate, resident, frame.depth)
        tensors = [self.tensor(ref, memory) for ref in allocate.get("outputs") or ()]
        inner = self._frame(capture, [*written, *tensors], frame.depth)
        captured = capture.get("operations") or ()
        before = itertools.takewhile(lambda op: "BeginTraceCaptureOp" not in op.get("type", {}), captured)
        yield from self.operations(before, inner)
        self._return(record, tensors[len(given) :], frame)

    def _program(self, index: int) -> Program:
        if index >= len(self.programs):
            raise BinaryFormatError(f"the binary has no program {index}")
        return self.programs[index]

    def _given(self, record: Record, frame: _Frame) -> list[TensorRef]:
        return [self.tensor(ref, frame) for ref in record.get("inputs") or ()]

    def _frame(self, callee: Program, given: Sequence[TensorRef], depth: int) -> _Frame:
        inputs = callee.get("inputs") or ()
        if len(inputs) != len(given):
            raise BinaryFormatError(f"program {callee['name']} takes {len(inputs)} inputs, and a call has {len(given)}")
        if depth == _MOST_DEEP:
            raise BinaryFormatError(f"calls between programs are more than {_MOST_DEEP} deep: {callee['name']}")
        return _Frame({ref["global_id"]: tensor for ref, tensor in zip(inputs, given, strict=True)}, depth + 1)

    def _return(self, record: Record, results: Sequence[TensorRef], frame: _Frame) -> None:
        """Makes the results of a call stand for its outputs."""
        outputs = record.get("outputs") or ()
        if len(outputs) != len(results):
            raise BinaryFormatError(f"a call has {len(outputs)} results, and its program gives {len(results)}")
        frame.tensors.update({ref["global_id"]: result for ref, result in zip(outputs, results, strict=True)})

    def tensor(self, ref: TensorRef, frame: _Frame) -> TensorRef:
        """The tensor that stands for a tensor of a called program. It is new if an op of the program defines it."""
        if frame.depth == 0:
            return frame.tensors.get(ref["global_id"], ref)
        if ref["global_id"] not in frame.tensors:
            frame.tensors[ref["global_id"]] = {**ref, "global_id": next(self.free_ids)}
        return frame.tensors[ref["global_id"]]

    def _renamed(self, part: Value, frame: _Frame) -> Value:
        if facts.is_tensor(part):
            return self.tensor(part, frame)
        if not isinstance(part, dict | list):
            return part
        self._count(part)
        if isinstance(part, dict):
            return {name: self._renamed(value, frame) for name, value in part.items()}
        return [self._renamed(value, frame) for value in part]

"""Recordings (CaptureOrExecuteTraceOp): every call writes its inputs and runs the recorded ops once."""

from pathlib import Path

import pytest
import torch
from programs import Maker

from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.runtime import Binary, Executable
from tt_torch.wire.calls import public
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import DEFAULT

FILE = Path(__file__).parents[1] / "data" / "plugin" / "trace.ttnn"
MAIN, RECORDED, ALLOCATE, CAPTURE, EXECUTE = 0, 3, 4, 5, 6  # the programs of the file


def test_each_call_uses_its_own_inputs():
    torch.manual_seed(0)
    executable = Executable(Binary.load(FILE))
    weight, results = torch.randn(8, 4), []
    for _ in range(3):
        x, i = torch.randn(2, 8), torch.randint(-9, 9, (3,), dtype=torch.int32)
        got = executable([weight, x, i], [0], [torch.float32, torch.int32])
        torch.testing.assert_close(got, [torch.relu(x @ weight), i + 1])
        results.append((got, [tensor.clone() for tensor in got]))
    for got, kept in results:
        torch.testing.assert_close(got, kept, rtol=0, atol=0)  # later calls write to other memory


def test_a_constant_of_the_device_is_written_as_inputs_of_the_host_are():
    """The constant is on the device, but it does not count as an input that stays there. The program that allocates the
    tensors does not take it."""
    path = FILE.with_name("trace_constant.ttnn")
    torch.manual_seed(0)
    first, second, executable = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32), Executable(Binary.load(path))
    weights = [p.detach() for layer in (first, second) for p in (layer.weight, layer.bias)]
    for _ in range(3):
        x = torch.randn(4, 32)
        (got,) = executable([*weights[:2], x, *weights[2:]], [0, 1, 3, 4], [torch.float32])
        torch.testing.assert_close(got, second(first(x).relu()).detach(), rtol=1e-5, atol=1e-5)
    (program,) = public(decode(path.read_bytes()))
    names = [name for op in program["operations"] for name in op["type"]]
    assert names.count("LinearOp") == 2 and names.count("WriteTensorOp") == 2


def test_each_call_runs_the_recorded_ops_once():
    executable, seen = Executable(Binary.load(FILE)), []
    executable.set_callback(lambda op, location, text, program, outputs: seen.append((program, op)))
    arguments = [torch.ones(8, 4), torch.ones(2, 8), torch.ones(3, dtype=torch.int32)]
    for _ in range(2):
        seen.clear()
        executable(arguments, (), [torch.float32, torch.int32])
        recorded = [op for program, op in seen if program == "trace_0_main"]
        assert recorded == ["MatmulOp", "EltwiseUnaryOp", "EltwiseBinaryOp", "CopyOp", "CopyOp"]


class File:
    """The message of the file, with methods that change its programs."""

    def __init__(self):
        self.message = decode(FILE.read_bytes())
        programs = [{**p, "operations": list(p["operations"])} for p in self.message["programs"]]
        self.programs = self.message["programs"] = programs

    def at(self, program, name, which=0):
        ops = self.programs[program]["operations"]
        return [i for i, op in enumerate(ops) if name in op["type"]][which]

    def change(self, program, name, which=0, **fields):
        i = self.at(program, name, which)
        op = self.programs[program]["operations"][i]
        record = op["type"][name]
        new = {field: value(record[field]) if callable(value) else value for field, value in fields.items()}
        self.programs[program]["operations"][i] = {**op, "type": {name: record | new}}

    def calls(self, **fields):
        self.change(MAIN, "CaptureOrExecuteTraceOp", **fields)

    def reorder(self, program, *names):
        """Keeps the ops of these names, in this order."""
        ops = self.programs[program]["operations"]
        self.programs[program]["operations"] = [op for name in names for op in ops if name in op["type"]]

    def set(self, program, **fields):
        self.programs[program] |= fields


def swapped(items):
    return [items[1], items[0], *items[2:]]


def renumbered(ref):
    return {**ref, "global_id": 999}


END, NO_PROGRAM = "call each other without end", "the binary has no program"
OTHER = "another shape or type than in the called program"
HOSTILE = {
    "main records itself": (lambda f: f.calls(capture_program_id=MAIN), END),
    "main replays itself": (lambda f: f.calls(execute_program_id=MAIN), END),
    "main allocates by itself": (lambda f: f.calls(allocate_slots_program_id=MAIN), END),
    "the recorded call is of the recorder": (lambda f: f.change(CAPTURE, "FuncCallOp", program_id=CAPTURE), END),
    "the recorded call is of main": (lambda f: f.change(CAPTURE, "FuncCallOp", program_id=MAIN), END),
    **{f"no program: {part}": (lambda f, part=part: f.calls(**{f"{part}_program_id": 2**32 - 1}), NO_PROGRAM)
       for part in ("capture", "execute", "allocate_slots")},
    "an input is missing": (lambda f: f.calls(inputs=lambda i: i[:3]), "one tensor for each input and result"),
    "inputs on the device are missing": (lambda f: f.calls(inputs=lambda i: i[:1]), "device_resident_input_count"),
    "a count of other inputs": (lambda f: f.calls(device_resident_input_count=1), "device_resident_input_count"),
    "no count, and an input on the device is missing": (
        lambda f: f.calls(device_resident_input_count=0, inputs=lambda i: i[1:]), "the number of inputs",
    ),
    "an input too many": (lambda f: f.calls(inputs=lambda i: [*i, i[3]]), "one tensor for each input and result"),
    "inputs of other shapes": (lambda f: f.calls(inputs=swapped), OTHER),
    "inputs from the host of other shapes": (lambda f: f.calls(inputs=lambda i: [i[0], i[1], i[3], i[2]]), OTHER),
    "a result is missing": (lambda f: f.calls(outputs=lambda o: o[:1]), "one tensor for each input and result"),
    "results of other shapes": (lambda f: f.calls(outputs=swapped), "a result has another shape"),
    "tensors of other shapes": (lambda f: f.set(ALLOCATE, outputs=swapped(f.programs[ALLOCATE]["outputs"])), OTHER),
    "the recorder takes less": (
        lambda f: f.set(CAPTURE, inputs=f.programs[CAPTURE]["inputs"][:-1]), "the number of inputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_programs_that_do_not_fit(name):
    change, message = HOSTILE[name]
    file = File()
    change(file)
    with pytest.raises(BinaryFormatError, match=message):
        Executable(Binary(encode(file.message)))


WRITE, CALL = "WriteTensorOp", "FuncCallOp"
BEGIN, STOP, REPLAY = "BeginTraceCaptureOp", "EndTraceCaptureOp", "ExecuteTraceOp"
UNKNOWN = {
    "recorder and replayer": (
        lambda f: f.calls(capture_program_id=EXECUTE, execute_program_id=CAPTURE), "in program run_and_capture",
    ),
    "the recorder is short": (lambda f: f.calls(capture_program_id=EXECUTE), "the number of ops in program execute"),
    "nothing is recorded": (lambda f: f.reorder(CAPTURE, WRITE, CALL, STOP, REPLAY), "the order of ops"),
    "a call comes before a write": (lambda f: f.reorder(CAPTURE, CALL, WRITE, BEGIN, STOP, REPLAY), "an op before"),
    "it ends before it begins": (lambda f: f.reorder(CAPTURE, WRITE, CALL, STOP, BEGIN, REPLAY), "the order of ops"),
    "calls of other operands": (lambda f: f.change(CAPTURE, CALL, 1, inputs=swapped), "the order of ops"),
    "calls of other programs": (lambda f: f.change(CAPTURE, CALL, 1, program_id=1), "the order of ops"),
    "calls with results": (lambda f: f.change(CAPTURE, CALL, outputs=f.programs[CAPTURE]["outputs"]), "the order"),
    "no number": (lambda f: f.set(CAPTURE, outputs=[]), "the number of results"),
    **{f"another number: {op}": (lambda f, op=op: f.change(CAPTURE, op, trace_id=renumbered), "the recording's number")
       for op in (BEGIN, STOP, REPLAY)},
    "another number: replay": (lambda f: f.change(EXECUTE, REPLAY, trace_id=renumbered), "in program execute_trace"),
    "nothing is replayed": (lambda f: f.reorder(EXECUTE, "GetDeviceOp"), "in program execute_trace"),
    "a replay has a result": (lambda f: f.set(EXECUTE, outputs=f.programs[EXECUTE]["inputs"]), "in program execute"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_forms_are_refused_by_name(name):
    change, message = UNKNOWN[name]
    file = File()
    change(file)
    with pytest.raises(UnsupportedBinaryError, match=f"a form that the runtime does not know: .*{message}"):
        Executable(Binary(encode(file.message)))


@pytest.mark.parametrize("op", [BEGIN, STOP, REPLAY])
def test_parts_of_recordings_outside_of_them(op):
    maker = Maker()
    maker.op(op, trace_id=maker.input((), "UInt32", "host", False))
    with pytest.raises(UnsupportedBinaryError, match=f"{op} is supported only in the programs"):
        Executable(Binary(maker.binary()))


def recording(*places):
    """Programs that record a + 2 b. `places` has the places of a and b: "DRAM" for the device's memory, or "host"."""
    maker = Maker()
    out, shape = maker.tensor((2, 2)), (2, 2)
    operands = [maker.input(shape, buffer=place) for place in places]
    ids = {"allocate_slots_program_id": 1, "capture_program_id": 2, "execute_program_id": 3}
    maker.op("CaptureOrExecuteTraceOp", **ids, inputs=operands, outputs=[out])
    maker.program["outputs"] = [out]
    maker.begin("allocate", private=True)
    own = [maker.input(shape) if place == "DRAM" else None for place in places]
    slots = [slot or maker.op("EmptyOp", shape=[2, 2], out=maker.tensor(shape)) for slot in [*own, None]]
    maker.program["outputs"] = slots
    maker.begin("capture", private=True)
    of_host = [maker.input(shape, buffer="host") if place == "host" else None for place in places]
    memory = [maker.input(shape) for _ in slots]
    for host, device in zip(of_host, memory[:2], strict=True):
        if host:
            maker.op(WRITE, host_tensor=host, device_tensor=device)
    number = maker.tensor((), "UInt32", "host", False)
    maker.op(CALL, program_id=4, inputs=memory, outputs=[])
    maker.op(BEGIN, trace_id=number)
    maker.op(CALL, program_id=4, inputs=memory, outputs=[])
    for name in (STOP, REPLAY):
        maker.op(name, trace_id=number)
    maker.program["outputs"] = [number]
    maker.begin("execute", private=True)
    maker.op(REPLAY, trace_id=maker.input((), "UInt32", "host", False))
    maker.begin("recorded", private=True)
    a, b, out = (maker.input(shape) for _ in range(3))
    twice = maker.binary_op("Add", b, b, maker.tensor(shape))
    maker.op("CopyOp", src=maker.binary_op("Add", a, twice, maker.tensor(shape)), dst=out)
    return maker.binary(schema=DEFAULT)


@pytest.mark.parametrize("a", ["DRAM", "host"])
@pytest.mark.parametrize("b", ["DRAM", "host"])
def test_descriptions_say_which_inputs_are_on_the_device(a, b):
    binary = recording(a, b)
    executable = Executable(Binary(binary))
    for x, y in torch.randn(2, 2, 2, 2):
        torch.testing.assert_close(executable([x, y])[0], x + 2 * y)
    (program,) = public(decode(binary))
    writes = [op for op in program["operations"] if WRITE in op["type"]]
    assert len(writes) == (a, b).count("host")

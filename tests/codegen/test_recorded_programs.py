"""Binaries with recordings as Python programs, in the conformance check, and on a ttnn device."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
from torch_mlir import ir
from ttnn_devices import network

import tt_torch
from tt_torch.codegen import to_python
from tt_torch.codegen.device import TtnnDevice
from tt_torch.codegen.recordings import unrecorded
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.mlir.context import context_to_compile
from tt_torch.wire import facts
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

FILE = Path(__file__).parents[1] / "data" / "plugin" / "trace.ttnn"
TRACE = "CaptureOrExecuteTraceOp"
BEGIN, END, RUN, WRITE = (("begin", 0), ("end", 0), ("execute", 0), ("copy", 0))


@pytest.fixture
def model():
    return network()


@pytest.fixture
def made(model):
    return tt_torch.compile_model(model, (torch.randn(3, 16),), CompilerConfig(enable_trace=True))


@pytest.fixture
def ttnn(importable):
    package = importlib.import_module("ttnn")
    package.LOG.clear()
    return package


class Generated:
    """A generated program on the stand-in, with the weights of a model in their order."""

    def __init__(self, ttnn, binary, model):
        self.ttnn, self.device, self.scope = ttnn, ttnn.Device(), {"__name__": "generated"}
        exec(to_python(binary), self.scope)
        self.names = list(self.scope["WEIGHTS"])
        self.give(model)

    def give(self, model):
        tensors = [self.host(p.detach()) for p in model.parameters()]
        self.weights = dict(zip(self.names, tensors, strict=True))

    def host(self, x):
        return self.scope["to_host_tensor"](x.numpy().copy(), self.ttnn.float32)

    def __call__(self, x):
        self.ttnn.LOG.clear()
        (result,) = self.scope["forward"]([self.host(x)], self.weights, self.device)
        return torch.from_numpy(result.array.copy())


def test_a_generated_program_records_once_and_replays(ttnn, made, model):
    run, asked = Generated(ttnn, made.binary, model), []
    assert run.scope["INPUTS"] == [([3, 16], ttnn.float32, ttnn.ROW_MAJOR_LAYOUT, None)]
    for _ in range(3):
        x = torch.randn(3, 16)
        torch.testing.assert_close(run(x), model(x).detach())
        asked.append([entry for entry in ttnn.LOG if entry != "to_device"])
    assert asked == [["empty", "empty", WRITE, BEGIN, END, RUN], [WRITE, RUN], [WRITE, RUN]]


def test_a_generated_program_records_again_for_other_weights(ttnn, made, model):
    run, x = Generated(ttnn, made.binary, model), torch.randn(3, 16)
    run(x)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    run.give(model)
    for asked in (["release", "empty", "empty", WRITE, BEGIN, END, RUN], [WRITE, RUN]):
        torch.testing.assert_close(run(x), model(x).detach())
        assert [entry for entry in ttnn.LOG if entry != "to_device"] == asked
    assert len(run.device.traces) == 1


def test_generated_programs_of_tt_mlir_record():
    text = to_python(FILE.read_bytes())
    assert "recorded(" in text.partition("def forward")[2]
    assert "ttnn.copy_host_to_device_tensor(input_0, input_4, cq_id=ttnn.QueueId(0))" in text
    assert "ttnn.deallocate(const_eval" not in text  # `cached` has the same tensor object
    assert "recorded(" not in to_python(tt_torch.compile_model(torch.exp, (torch.ones(2),)).binary)


def test_a_device_makes_its_own_recording(ttnn, made, model):
    with TtnnDevice(enable_trace=True) as device:
        run = device.load(made.binary)
        for _ in range(3):
            x = torch.randn(3, 16)
            torch.testing.assert_close(run(made.arguments(x), (0, 1, 3, 4))[0], model(x).detach())
        assert device.statistics()["traces"] == 1
    assert ttnn.LOG.count(BEGIN) == 1


@pytest.mark.needs_ttnn
@pytest.mark.parametrize("ours", [True, False])
def test_the_library_accepts_the_recorded_ops(checkers, made, ours):
    report = checkers().check(made.binary if ours else FILE.read_bytes())
    assert report.failures == []
    assert {"LinearOp" if ours else "MatmulOp", "ToLayoutOp"} <= {verdict.op for verdict in report.verdicts}


@pytest.mark.parametrize("ours", [True, False])
def test_without_its_recording_a_program_is_the_plain_one(made, model, ours):
    message = unrecorded(decode(made.binary if ours else FILE.read_bytes()))
    names = [op.name for program in message["programs"] for op in facts.ops(program)]
    assert not {TRACE, "FuncCallOp", "WriteTensorOp", "CopyOp", "EmptyOp"} & {*names}
    main = message["programs"][0]
    assert all(place.on_device for place in facts.outputs(main))
    if ours:
        plain = decode(tt_torch.compile_model(model, (torch.randn(3, 16),)).binary)
        ops = [op.name for op in facts.ops(plain["programs"][0])]
        ops.remove("DeallocateOp")  # of the input, whose memory a recording keeps
        assert [op.name for op in facts.ops(main) if op.name != "GetDeviceOp"] == ops[1:]
    else:
        executable = tt_torch.runtime.Executable(tt_torch.runtime.Binary(encode(message)))
        weight, x, i = torch.randn(8, 4), torch.randn(2, 8), torch.arange(3, dtype=torch.int32)
        got = executable([weight, x, i], (), [torch.float32, torch.int32])
        torch.testing.assert_close(got, [torch.relu(x @ weight), i + 1])


def test_inputs_that_are_returned_are_those_of_the_plain_program():
    result = "tensor<4xf32>"
    text = f"""func.func @main(%x: {result}, %unread: {result}) -> ({", ".join([result] * 4)}) {{
      %0 = "stablehlo.exponential"(%x) : ({result}) -> {result}
      return %0, %x, %unread, %0 : {", ".join([result] * 4)}
    }}"""
    with context_to_compile():
        binary = compile_module(ir.Module.parse(text), CompilerConfig(enable_trace=True))
    x, unread = torch.randn(2, 4)
    for each in (binary, encode(unrecorded(decode(binary)))):
        got = tt_torch.runtime.Executable(tt_torch.runtime.Binary(each))([x, unread])
        torch.testing.assert_close(got, [x.exp(), x, unread, x.exp()])


def test_messages_without_recordings_stay_as_they_are():
    message = decode(tt_torch.compile_model(torch.exp, (torch.ones(2),)).binary)
    assert unrecorded(message) is message


def changed(change):
    message = decode(FILE.read_bytes())
    programs = [{**p, "operations": [{**op, "type": dict(op["type"])} for op in p["operations"]]}
                for p in message["programs"]]  # fmt: skip
    found = next(op["type"] for op in programs[0]["operations"] if TRACE in op["type"])
    found[TRACE] = dict(found[TRACE])
    change(programs, found[TRACE])
    return encode({**message, "programs": programs})


def other_order(programs, record):
    record["inputs"] = [record["inputs"][i] for i in (2, 0, 1, 3)]


def other_memory(programs, record):
    writes = [op for op in programs[5]["operations"] if "WriteTensorOp" in op["type"]]
    places = [op["type"]["WriteTensorOp"]["device_tensor"] for op in writes]
    for op, place in zip(writes, reversed(places), strict=True):
        op["type"]["WriteTensorOp"] = op["type"]["WriteTensorOp"] | {"device_tensor": place}


def no_program(programs, record):
    record["capture_program_id"] = 99


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (other_order, UnsupportedBinaryError, "in another order"),
        (other_memory, UnsupportedBinaryError, "in another order"),
        (no_program, BinaryFormatError, "has no program 99"),
    ],
)
def test_recordings_of_another_form_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        to_python(changed(change))


def read_outside(programs, record):
    host = record["inputs"][2]
    copy = {**host, "global_id": 900}
    programs[0]["operations"].append({"type": {"ToLayoutOp": {"in": host, "layout": "RowMajor", "out": copy}}})


def test_inputs_that_are_also_read_on_the_host_are_refused():
    with pytest.raises(UnsupportedBinaryError, match="reads an input of a recording outside of it, too"):
        unrecorded(decode(changed(read_outside)))

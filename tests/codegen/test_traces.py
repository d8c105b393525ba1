"""enable_trace: the order of calls to the library. The traces of the stand-in compute their results when they run."""

from __future__ import annotations

import importlib

import pytest
import torch
from ttnn_devices import network, on

import tt_torch
from tt_torch.codegen import device as ttnn_device
from tt_torch.codegen.device import TtnnDevice
from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import default_device
from tt_torch.errors import DeviceError, WorkerError

WEIGHTS = (0, 1, 3, 4)  # the positions of the weights among the arguments of `compiled`
ONE_QUEUE = [("copy", 0), ("execute", 0), "from_device"]
TWO_QUEUES = [
    # Queue 1 writes the inputs when the last replay has read them. Queue 0 waits for the inputs before it replays.
    *(("wait", 1, 0), ("copy", 1), ("record", 1)),
    *(("wait", 0, 1), ("execute", 0), ("record", 0), "from_device"),
]


@pytest.fixture
def log(importable):
    """A function that returns the calls to the stand-in since the function was last called."""
    package = importlib.import_module("ttnn")

    def since():
        seen = [entry for entry in package.LOG if entry[0] != "open"]
        package.LOG.clear()
        return seen

    return since


@pytest.fixture
def traced(log):
    with TtnnDevice(enable_trace=True) as device:
        yield device


@pytest.mark.parametrize(("queues", "replay"), [(1, ONE_QUEUE), (2, TWO_QUEUES)])
def test_the_second_call_records_and_later_ones_replay(log, queues, replay):
    model, start = network(), [("record", 0)] * (queues - 1)
    with TtnnDevice(enable_trace=True, num_hw_cqs=queues) as device:
        run = on(device, model)
        asked = []
        with torch.no_grad():
            for _ in range(4):
                torch.testing.assert_close(run(x := torch.randn(3, 16)), model(x))
                asked.append(log())
        assert device.statistics() | {"cached": 0} == {"programs": 1, "traces": 1, "kept": 4, "cached": 0}
    assert asked[0].count("from_device") == 1 and "empty" not in asked[0]
    assert asked[1] == ["empty", ("begin", 0), ("end", 0), *start, *replay]
    assert asked[2] == asked[3] == replay
    assert log() == ["release", "close"]


def test_traces_are_recorded_again_when_resident_tensors_change(traced, log, compiled):
    """Memory that a trace writes to is free after the recording, so a weight that is sent later might lie there."""
    binary, arguments, expected = compiled
    run = traced.load(binary)
    for _ in range(2):
        torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
    log()
    torch.testing.assert_close(on(traced, lambda x: x + x)(x := torch.ones(2)), x + x)
    assert log()[0] == "release"
    torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
    assert log()[:2] == ["empty", ("begin", 0)]
    arguments = list(arguments)
    arguments[4] = arguments[4] + 1
    for asked in (["release", "from_device"], ["empty", ("begin", 0), ("end", 0), *ONE_QUEUE]):
        torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected + 1)
        assert [entry for entry in log() if entry != "to_device"] == asked
    del run
    traced.statistics()
    torch.testing.assert_close(on(traced, lambda x: x + x)(x), x + x)
    assert traced.statistics()["traces"] == 0


def test_weights_are_prepared_in_the_first_call_only(traced, log, compiled):
    binary, arguments, expected = compiled
    run = traced.load(binary)
    with_weights, without = [], []
    for _ in range(3):
        torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
        with_weights.append(log().count("to_device"))
    for _ in range(3):  # a program that gets its weights with each call cannot be recorded
        torch.testing.assert_close(run(arguments)[0], expected)
        without.append(log())
    assert with_weights == [5, 0, 0]
    assert [asked.count("to_device") for asked in without] == [5, 5, 5]
    assert not any(("begin", 0) in asked for asked in without)


def test_an_error_while_recording_ends_it(traced, log, compiled, monkeypatch):
    binary, arguments, expected = compiled
    run = traced.load(binary)
    run(arguments, WEIGHTS)
    package = importlib.import_module("ttnn")
    with monkeypatch.context() as patched:
        patched.setattr(package, "linear", lambda *a, **k: (_ for _ in ()).throw(RuntimeError("TT_FATAL: no")))
        log()
        with pytest.raises(WorkerError, match=r"TT_FATAL: no\n  in forward: "):
            run(arguments, WEIGHTS)
    assert log() == ["empty", ("begin", 0), ("end", 0), "release"]
    torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
    assert log()[-3:] == ONE_QUEUE


def test_programs_that_need_the_host_are_not_recorded(traced, log):
    model, x = network(), torch.randn(3, 16)
    made = tt_torch.compile_model(model, (x,), CompilerConfig(enable_consteval=False))
    with pytest.warns(UserWarning, match=r"because it needs the host in each call: ToDeviceOp \w+$"):
        run = traced.load(made.binary)
    for _ in range(3):
        torch.testing.assert_close(run(made.arguments(x), WEIGHTS)[0], model(x).detach())
    assert ("begin", 0) not in log()


def test_options_reach_the_package(importable, monkeypatch):
    for name, value in {"DEVICE": "ttnn", "ENABLE_TRACE": "1", "TRACE_REGION_SIZE": "4096"}.items():
        monkeypatch.setenv(f"TT_TORCH_{name}", value)
    config = CompilerConfig.from_env()
    with default_device(config) as device:
        device.statistics()
        package = importlib.import_module("ttnn")
        ((_, options),) = (entry for entry in package.LOG if entry[0] == "open")
        assert options["trace_region_size"] == 4096
        assert device.enable_trace and default_device(config) is device


def test_devices_without_traces_refuse_the_option(monkeypatch):
    with pytest.raises(DeviceError, match="needs enable_program_cache"):
        TtnnDevice(enable_trace=True, enable_program_cache=False)
    monkeypatch.setenv(ttnn_device.MOCK, "n150.yaml")
    with pytest.raises(DeviceError, match=r"enable_trace needs hardware: .* mock device"):
        TtnnDevice(enable_trace=True).statistics()

"""device="ttnn" in a worker and in this process: values, transport, errors, closing.

A stand-in for Tenstorrent's library computes here, because the library's mock devices give zeros.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_mlir import ir
from ttnn_devices import STAND_IN, asked, network, on

import tt_torch
from tt_torch.codegen import environment, links
from tt_torch.codegen.client import Client
from tt_torch.codegen.device import TtnnDevice
from tt_torch.config import CompilerConfig
from tt_torch.driver import devices
from tt_torch.driver.compile import compile_module
from tt_torch.errors import (
    ConfigError,
    DeviceError,
    DeviceMemoryError,
    EnvironmentMissingError,
    InputCountError,
    InputDtypeError,
    InputShapeError,
    WorkerError,
)
from tt_torch.mlir.context import make_context
from tt_torch.tools.device_manager import DeviceManager


@pytest.fixture
def stand_in(monkeypatch):
    """A function that opens devices whose workers run the stand-in."""
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    opened = []

    def make(**options) -> TtnnDevice:
        opened.append(TtnnDevice(python=sys.executable, **options))
        return opened[-1]

    yield make
    for device in opened:
        device.close()


WEIGHTS = (0, 1, 3, 4)  # the positions of the weights among the arguments of `compiled`


def pid(device: TtnnDevice) -> int:
    with device.session() as session:
        return session.link.pid


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_weights_are_sent_once_and_again_when_they_change(stand_in, monkeypatch):
    device, model = stand_in(), network()
    run = on(device, model)
    with torch.no_grad():
        torch.testing.assert_close(run(x := torch.randn(3, 16)), model(x))
        commands = asked(device, monkeypatch)
        for _ in range(2):
            torch.testing.assert_close(run(x := torch.randn(3, 16)), model(x))
        assert commands == ["run", "run"]
        model[0].weight.mul_(2)
        torch.testing.assert_close(run(x), model(x))
        assert commands[2:] == ["keep", "forget", "run"]
        run(x)
    assert device.statistics() == {"programs": 1, "traces": 0, "kept": 4, "cached": 1}
    del run, model
    torch._dynamo.reset()
    torch.testing.assert_close(on(device, lambda x: x + x)(x), x + x)
    assert device.statistics() == {"programs": 1, "traces": 0, "kept": 0, "cached": 2}


def test_values_of_all_types(stand_in):
    def sums(f, b, i, j):
        return f + f, b + b, i + 1, j + j, (f + f).bool()

    inputs = torch.randn(2, 3), torch.randn(2, 3, dtype=torch.bfloat16), torch.tensor([2**31 - 2, -(2**31)]).int()
    results = on(stand_in(), sums)(*inputs, torch.tensor(3, dtype=torch.uint8))
    for result, expected in zip(results, sums(*inputs, torch.tensor(3, dtype=torch.uint8)), strict=True):
        torch.testing.assert_close(result, expected, rtol=0, atol=0)


ADDED = """
func.func public @main(%x: tensor<3xf32>, %y: tensor<3xbf16>) -> (tensor<3xf32>, tensor<3xbf16>) {
  %a = stablehlo.constant dense<[1.5, -2.0, 0.25]> : tensor<3xf32>
  %b = stablehlo.constant dense<[4.0, 8.0, -1.0]> : tensor<3xbf16>
  %0 = stablehlo.add %x, %a : tensor<3xf32>
  %1 = stablehlo.add %y, %b : tensor<3xbf16>
  return %0, %1 : tensor<3xf32>, tensor<3xbf16>
}
"""


def test_constants_of_a_binary_are_sent_with_it(stand_in):
    with make_context():
        binary = compile_module(ir.Module.parse(ADDED), CompilerConfig())
    added = stand_in().load(binary)([torch.zeros(3), torch.zeros(3, dtype=torch.bfloat16)])
    assert [tensor.tolist() for tensor in added] == [[1.5, -2.0, 0.25], [4.0, 8.0, -1.0]]


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    with Client(sys.executable, os.environ, timeout=60) as client:
        yield client


def test_arrays_pass_byte_by_byte(worker):
    noise = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)  # as floats, many different NaNs
    arrays = [noise.view(kind) for kind in ("f4", "f8", "i8", "u2", "?", "u1")]
    arrays += [noise.reshape(16, -1)[::3, ::-5], np.zeros((0, 3), "f4"), np.array(7, "i4"), np.zeros((), "f4")]
    for _ in range(2):
        echoed = worker.ask("echo", {"value": {"arrays": arrays[::-1], "text": "x" * 500_000}})["arrays"][::-1]
        for array, back in zip(arrays, echoed, strict=True):
            assert (back.shape, back.dtype, back.tobytes()) == (array.shape, array.dtype, array.tobytes())
        # Three times the size needs more shared memory.
        arrays = [np.concatenate([array] * 3) if array.ndim else array for array in arrays]


def test_shared_memory_has_no_name_and_ends_with_the_worker(worker):
    worker.ask("echo", {"value": np.zeros(1000)})
    mapped = Path(f"/proc/{worker.pid}/maps").read_text()
    assert "/memfd:tt_torch_questions (deleted)" in mapped
    folder = Path(worker._folder.name)
    assert folder.exists()
    worker.close()
    assert not is_alive(worker.pid) and not folder.exists()


def test_a_killed_worker_is_an_error_and_is_replaced(stand_in, compiled):
    binary, arguments, expected = compiled
    device = stand_in()
    run = device.load(binary)
    first = pid(device)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"died during \w+ \(exit code -9\); tt-smi"):
        run(arguments)
    (result,) = run(arguments, WEIGHTS)
    torch.testing.assert_close(result, expected)
    assert pid(device) != first and device.statistics()["kept"] == 4


def test_a_silent_device_is_an_error_and_its_worker_is_replaced(stand_in, compiled):
    binary, arguments, expected = compiled
    device = stand_in()
    run = device.load(binary)
    os.kill(first := pid(device), signal.SIGSTOP)
    with device.session() as session:
        session.link.timeout = 0.2
    with pytest.raises(WorkerError, match=r"no answer to run in 0.2 s: the device hangs; tt-smi .* tt-smi -r"):
        run(arguments)
    assert not is_alive(first)
    torch.testing.assert_close(run(arguments)[0], expected)


def test_a_hang_that_the_library_notices_ends_the_worker(stand_in, compiled):
    binary, arguments, expected = compiled
    device = stand_in()
    run, first = device.load(binary), pid(device)
    with pytest.raises(WorkerError, match=r"^the device hangs; tt-smi .*\n.* device timeout.*\n  in forward: "):
        run([torch.full_like(a, torch.nan) for a in arguments])  # at a NaN, the stand-in reports a hang
    assert not is_alive(first)
    torch.testing.assert_close(run(arguments)[0], expected)


def test_an_interrupted_call_leaves_no_answer_behind(stand_in, compiled, monkeypatch):
    binary, arguments, expected = compiled
    device = stand_in()
    run = device.load(binary)
    with device.session() as session:
        interrupted = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # noqa: E731
        monkeypatch.setattr(session.link._connection, "poll", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        run(arguments)
    torch.testing.assert_close(run(arguments)[0], expected)


def test_refusals_are_short_and_name_the_line(stand_in):
    with pytest.raises(WorkerError) as raised:
        on(stand_in(), lambda x: torch.cos(x))(torch.randn(3))
    first, second = str(raised.value).splitlines()
    assert first == "run failed: AttributeError: module 'ttnn' has no attribute 'cos'"
    assert second.startswith("  in forward: cos = ttnn.cos(")


def test_exhausted_memory_is_an_error_of_its_own(stand_in):
    run = on(stand_in(), lambda x: x + x)
    with pytest.raises(DeviceMemoryError, match=r"^run failed: RuntimeError: Out of Memory: Not enough space$"):
        run(torch.ones(1025, 1024))
    assert run(torch.ones(2, 2)).sum() == 8


def test_wrong_inputs_are_refused(stand_in, compiled):
    binary, arguments, _ = compiled
    device = stand_in()
    run = device.load(binary)
    for error, wrong in (
        (InputCountError, arguments[:-1]),
        (InputShapeError, [torch.randn(3, 15), *arguments[1:]]),
        (InputDtypeError, [arguments[0].int(), *arguments[1:]]),
        (InputDtypeError, [None, *arguments[1:]]),
    ):
        with pytest.raises(error):
            run(wrong)
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        run(arguments)


def test_kept_inputs_survive_the_program(stand_in, compiled):
    """A program deallocates its inputs on the device, so it must get copies of kept ones."""
    binary, arguments, expected = compiled
    run = stand_in().load(binary)
    for _ in range(2):
        torch.testing.assert_close(run(arguments, range(5))[0], expected)


def test_parts_of_a_mesh_are_devices(stand_in, compiled):
    binary, arguments, expected = compiled
    mesh = stand_in()
    assert mesh.mesh_shape == (1, 1)
    part = mesh.submesh((1, 1), (0, 0))
    run, first = part.load(binary), pid(mesh)
    torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
    assert (mesh.statistics()["kept"], part.statistics()["kept"]) == (0, 4)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(WorkerError, match="died"):
        part.statistics()
    torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
    assert part.statistics()["kept"] == 4 and pid(mesh) != first
    part.close()
    assert mesh.statistics()["programs"] == 0
    mesh.close()


def test_a_device_of_another_kind_is_refused(stand_in, compiled):
    with pytest.raises(DeviceError, match="is a wormhole_b0, but the program is for blackhole"):
        stand_in(arch="blackhole").load(compiled[0])


def test_freed_weights_are_sent_again(stand_in, compiled):
    binary, arguments, expected = compiled
    device = stand_in()
    device.free_weights()  # nothing is there yet
    run = device.load(binary)
    for _ in range(2):
        torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
        kept = device.statistics()["kept"]
        device.free_weights()
        assert (kept, device.statistics()["kept"]) == (4, 0)


def test_a_dictionary_keeps_weights(stand_in, compiled):
    binary, arguments, expected = compiled
    device, constants = stand_in(), {}
    run, other = device.load(binary), device.load(binary)
    run.caches = constants, {}
    for _ in range(2):
        torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)
        assert len(constants[device]) == device.statistics()["kept"] == 4
        constants.clear()  # the device frees the tensors before its next run
    other(arguments)
    assert device.statistics()["kept"] == 0
    for each in (run, other):
        each(arguments, WEIGHTS)
    constants.clear()
    other(arguments)
    assert device.statistics()["kept"] == 4  # the device keeps those of `other`


@pytest.mark.usefixtures("importable")
def test_a_package_that_can_be_imported_runs_in_this_process(compiled):
    binary, arguments, expected = compiled
    with TtnnDevice() as device:
        (result,) = device.load(binary)(arguments, WEIGHTS)
        assert device.statistics() == {"programs": 1, "traces": 0, "kept": 4, "cached": 1}
        assert isinstance(device._session.link, links.InProcess)
        del sys.modules["ttnn"].linear
        with pytest.raises(
            WorkerError, match=r"run failed: AttributeError: .*\n  in forward: relu_linear = ttnn.linear"
        ):
            device.load(binary)(arguments)
    torch.testing.assert_close(result, expected)


@pytest.mark.usefixtures("importable")
def test_a_hang_in_this_process_closes_the_device_until_the_next_call(compiled):
    binary, arguments, expected = compiled
    with TtnnDevice() as device:
        run = device.load(binary)
        with pytest.raises(WorkerError, match=r"^the device hangs; tt-smi .*\n.* device timeout"):
            run([torch.full_like(a, torch.nan) for a in arguments])
        assert device._session is None
        torch.testing.assert_close(run(arguments, WEIGHTS)[0], expected)


def test_errors_name_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.delenv(links.MOCK, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match=r"TT_TORCH_TTNN_PYTHON .* tt-torch check --setup"):
        links.connect()
    (environment.default_folder()).mkdir(parents=True)
    (environment.default_folder() / environment.READY).touch()
    (tmp_path / "ttnn").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EnvironmentMissingError, match="opens only mock devices"):
        links.connect()
    with pytest.raises(EnvironmentMissingError, match=r"^/no/python cannot be started: No such file"):
        links.connect("/no/python")


def test_the_variable_chooses_for_loading_and_the_device_manager(compiled, tmp_path, monkeypatch):
    binary, arguments, expected = compiled
    (tmp_path / "net.ttnn").write_bytes(binary)
    for name, value in {
        "TT_TORCH_DEVICE": "ttnn",
        "TT_TORCH_TTNN_PYTHON": sys.executable,
        "PYTHONPATH": STAND_IN,
    }.items():
        monkeypatch.setenv(name, value)
    loaded = tt_torch.load(tmp_path / "net.ttnn")
    torch.testing.assert_close(loaded(*arguments)[0], expected)
    shared = devices.default_device(CompilerConfig.from_env())
    assert shared.statistics()["kept"] == 4
    shared.close()
    assert DeviceManager.get_num_available_devices() == 1
    mesh = DeviceManager.create_parent_mesh_device([1, 1], num_hw_cqs=1)
    assert isinstance(mesh, TtnnDevice) and mesh.statistics()["programs"] == 0
    DeviceManager.release_parent_device(mesh)
    assert not mesh.is_open


def test_options_that_observe_single_ops_need_the_emulated_device():
    with pytest.raises(ConfigError, match="emulated"):
        CompilerConfig(device="ttnn", profile="folder")


LEFT_OPEN = """
import atexit, ttnn
atexit.register(lambda: print(*ttnn.LOG))  # this runs after all that is registered later
from tt_torch.codegen.device import TtnnDevice
device = TtnnDevice()
with device.session(): ttnn.LOG[:] = ["opened"]
"""


def test_a_device_of_this_process_is_closed_at_exit(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    done = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["opened", "close"], done.stderr


STARTED = """
import os, signal, sys
from tt_torch.codegen.client import Client
link = Client(sys.executable, os.environ)
link.ask("open")
print(link.pid, link._folder.name, flush=True)
"""


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)"], ids=["exit", "kill"])
def test_nothing_is_left_of_a_process_that_ends(end, monkeypatch, forks):
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    process, folder = forks.run("-c", STARTED + end).stdout.split()
    for _ in range(100):
        if not is_alive(int(process)):
            break
        time.sleep(0.05)
    assert not is_alive(int(process))
    assert not Path(folder).exists()

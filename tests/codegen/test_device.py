"""device="ttnn": programs on Tenstorrent's library, in a worker and in this process.

Values are proven on a stand-in for the package that computes; what the real one takes, on its mock devices.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tt_torch
from tt_torch import devices
from tt_torch.codegen import environment, write_program
from tt_torch.codegen import device as ttnn_device
from tt_torch.codegen.client import Client
from tt_torch.codegen.device import TtnnDevice
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.errors import (
    ConfigError,
    DeviceError,
    EnvironmentMissingError,
    InputCountError,
    InputDtypeError,
    InputShapeError,
    WorkerError,
)
from tt_torch.tools.device_manager import DeviceManager

STAND_IN = str(Path(__file__).with_name("stand_in"))


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).eval()


@pytest.fixture
def stand_in(monkeypatch):
    """Makes devices whose workers run the stand-in."""
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    opened = []

    def make(**options) -> TtnnDevice:
        opened.append(TtnnDevice(python=sys.executable, **options))
        return opened[-1]

    yield make
    for device in opened:
        device.close()


@pytest.fixture(scope="module")
def compiled():
    """What a model was compiled to, arguments of its program, and what it computes."""
    model, x = network(), torch.randn(3, 16)
    made = tt_torch.compile_model(model, (x,))
    return made.binary, made.arguments(x), model(x).detach()


WEIGHTS = (0, 1, 3, 4)  # among these arguments


def on(device: TtnnDevice, function):
    options = BackendOptions(devices=[device], compiler_config=CompilerConfig(fallback="error"))
    return torch.compile(function, backend="tt", options=options)


def pid(device: TtnnDevice) -> int:
    with device.session() as session:
        return session._link.pid


def asked(device: TtnnDevice, monkeypatch) -> list[str]:
    """The commands that a device's worker gets from now on."""
    commands = []
    with device.session() as session:
        ask = session._link.ask
        monkeypatch.setattr(session._link, "ask", lambda c, a=None: (commands.append(c), ask(c, a))[1])
    return commands


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
    assert device.statistics() == {"programs": 1, "kept": 4, "cached": 1}
    del run, model
    torch._dynamo.reset()
    torch.testing.assert_close(on(device, lambda x: x + x)(x), x + x)
    assert device.statistics() == {"programs": 1, "kept": 0, "cached": 2}


def test_values_of_all_types(stand_in):
    def sums(f, b, i, j):
        return f + f, b + b, i + 1, j + j, (f + f).bool()

    inputs = torch.randn(2, 3), torch.randn(2, 3, dtype=torch.bfloat16), torch.tensor([2**31 - 2, -(2**31)]).int()
    results = on(stand_in(), sums)(*inputs, torch.tensor(3, dtype=torch.uint8))
    for result, expected in zip(results, sums(*inputs, torch.tensor(3, dtype=torch.uint8)), strict=True):
        torch.testing.assert_close(result, expected, rtol=0, atol=0)


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    with Client(sys.executable, os.environ, timeout=60) as client:
        yield client


def test_arrays_pass_byte_by_byte(worker):
    noise = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)  # NaNs of all kinds among the floats
    arrays = [noise.view(kind) for kind in ("f4", "f8", "i8", "u2", "?", "u1")]
    arrays += [noise.reshape(16, -1)[::3, ::-5], np.zeros((0, 3), "f4"), np.array(7, "i4"), np.zeros((), "f4")]
    for _ in range(2):
        echoed = worker.ask("echo", {"value": {"arrays": arrays[::-1], "text": "x" * 500_000}})["arrays"][::-1]
        for array, back in zip(arrays, echoed, strict=True):
            assert (back.shape, back.dtype, back.tobytes()) == (array.shape, array.dtype, array.tobytes())
        arrays = [np.concatenate([array] * 3) if array.ndim else array for array in arrays]  # the memory has to grow


def test_memory_has_no_name_and_goes_with_the_worker(worker):
    worker.ask("echo", {"value": np.zeros(1000)})
    mapped = Path(f"/proc/{worker.pid}/maps").read_text()
    assert "/memfd:tt_torch_questions (deleted)" in mapped
    folder = Path(worker._folder.name)
    assert folder.exists()
    worker.close()
    assert not is_alive(worker.pid) and not folder.exists()


def test_a_killed_worker_is_an_error_and_then_another_one(stand_in, compiled):
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


def test_a_silent_device_is_an_error_and_then_another_one(stand_in, compiled):
    binary, arguments, expected = compiled
    device = stand_in()
    run = device.load(binary)
    os.kill(first := pid(device), signal.SIGSTOP)
    with device.session() as session:
        session._link.timeout = 0.2
    with pytest.raises(WorkerError, match=r"no answer to run in 0.2 s: the device hangs; tt-smi .* tt-smi -r"):
        run(arguments)
    assert not is_alive(first)
    torch.testing.assert_close(run(arguments)[0], expected)


def test_a_hang_that_the_library_notices_ends_the_session(stand_in, compiled, monkeypatch):
    binary, arguments, _ = compiled
    device = stand_in()
    run, first = device.load(binary), pid(device)
    with device.session() as session:
        text = "run failed: RuntimeError: TIMEOUT: device timeout, potential hang detected"
        monkeypatch.setattr(session._link, "ask", lambda *_: (_ for _ in ()).throw(WorkerError(text)))
    with pytest.raises(WorkerError, match="the device hangs; tt-smi"):
        run(arguments)
    run(arguments)
    assert not is_alive(first)


def test_an_interrupted_call_leaves_no_answer_behind(stand_in, compiled, monkeypatch):
    binary, arguments, expected = compiled
    device = stand_in()
    run = device.load(binary)
    with device.session() as session:
        interrupted = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # noqa: E731
        monkeypatch.setattr(session._link._connection, "poll", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        run(arguments)
    torch.testing.assert_close(run(arguments)[0], expected)


def test_refusals_are_short_and_name_the_line(stand_in):
    with pytest.raises(WorkerError) as raised:
        on(stand_in(), lambda x: torch.cos(x))(torch.randn(3))
    first, second = str(raised.value).splitlines()
    assert first == "run failed: AttributeError: module 'ttnn' has no attribute 'cos'"
    assert second.startswith("  in forward: cos = ttnn.cos(")


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
    """Programs deallocate their inputs on the device."""
    binary, arguments, expected = compiled
    run = stand_in().load(binary)
    for _ in range(2):
        torch.testing.assert_close(run(arguments, range(5))[0], expected)


def test_a_device_of_another_kind_is_refused(stand_in, compiled):
    with pytest.raises(DeviceError, match="is a wormhole_b0, the program is for blackhole"):
        stand_in(arch="blackhole").load(compiled[0])


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.syspath_prepend(STAND_IN)
    yield
    for name in [n for n in sys.modules if n == "ttnn" or n.startswith("tt_torch.codegen.ttnn_worker.")]:
        del sys.modules[name]


@pytest.mark.usefixtures("importable")
def test_in_this_process_where_the_package_is(compiled):
    binary, arguments, expected = compiled
    with TtnnDevice() as device:
        (result,) = device.load(binary)(arguments, WEIGHTS)
        assert device.statistics() == {"programs": 1, "kept": 4, "cached": 1}
        assert isinstance(device._session._link, ttnn_device.InProcess)
        del sys.modules["ttnn"].linear
        with pytest.raises(WorkerError, match=r"run failed: AttributeError: .*\n  in forward: relu_linear = ttnn.linear"):
            device.load(binary)(arguments)
    torch.testing.assert_close(result, expected)


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv(ttnn_device.MOCK, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match="TT_TORCH_TTNN_PYTHON .* tt-torch check --setup"):
        ttnn_device.connect()
    (environment.default_folder()).mkdir(parents=True)
    (environment.default_folder() / environment.READY).touch()
    with pytest.raises(EnvironmentMissingError, match="opens mock devices only"):
        ttnn_device.connect()


def test_the_variable_chooses_for_loading_and_the_device_manager(compiled, tmp_path, monkeypatch):
    binary, arguments, expected = compiled
    (tmp_path / "net.ttnn").write_bytes(binary)
    for name, value in {"TT_TORCH_DEVICE": "ttnn", "TT_TORCH_TTNN_PYTHON": sys.executable, "PYTHONPATH": STAND_IN}.items():
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


def test_what_watches_single_ops_needs_the_emulated_device():
    with pytest.raises(ConfigError, match="emulated"):
        CompilerConfig(device="ttnn", profile="folder")


# Two chips with the same row of cores switched off.
TWO_CHIPS = """
arch: {0: wormhole_b0, 1: wormhole_b0}
chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0]}
chip_unique_ids: {0: 1, 1: 2}
ethernet_connections: [[{chip: 0, chan: 8}, {chip: 1, chan: 0}], [{chip: 0, chan: 9}, {chip: 1, chan: 1}]]
ethernet_connections_to_remote_devices: []
chips_with_mmio: [0: 0]
harvesting:
  0: &cores {noc_translation: true, harvest_mask: 32, dram_harvesting_mask: 0, eth_harvesting_mask: 0,
             pcie_harvesting_mask: 0, l2cpu_harvesting_mask: 0}
  1: *cores
boards: [[board_id: 72058994491072686, board_type: n300, chips: [0, 1]]]
"""


@pytest.fixture
def mock(monkeypatch, tmp_path):
    """Makes devices of the real package, as the environment's variables for mock devices describe them."""
    if not environment.is_ready():
        pytest.skip(f"no ttnn package in {environment.default_folder()}: tt-torch check --setup makes it")
    opened = []

    def make(cluster: str = "n150", **options) -> TtnnDevice:
        described = environment.variables(environment.default_folder(), "n150")[ttnn_device.MOCK]
        if cluster == "two chips":
            (tmp_path / "two_chips.yaml").write_text(TWO_CHIPS)
            described = str(tmp_path / "two_chips.yaml")
        monkeypatch.setenv(ttnn_device.MOCK, described)
        opened.append(TtnnDevice(**options))
        return opened[-1]

    yield make
    for device in opened:
        device.close()


@pytest.mark.needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_the_package_takes_a_whole_program(mock, monkeypatch):
    def model(x, weight, bias):
        pooled = nn.functional.max_pool2d(torch.relu(nn.functional.conv2d(x, weight, bias)), 2)
        return pooled, pooled.mean((2, 3)) > 0, pooled.flatten(1).argmax(1)

    device = mock()
    inputs = [torch.randn(shape, dtype=torch.bfloat16) for shape in ((2, 3, 10, 10), (8, 3, 3, 3), (8,))]
    run = on(device, model)
    results, expected = run(*inputs), model(*inputs)
    assert [(r.shape, r.dtype) for r in results] == [(e.shape, e.dtype) for e in expected]
    cached = device.statistics()["cached"]
    assert cached > 5
    run(*inputs)
    assert device.statistics()["cached"] == cached


@pytest.mark.needs_ttnn
def test_the_package_keeps_weights_and_warns_of_mock_devices(mock, compiled, monkeypatch):
    binary, arguments, expected = compiled
    device = mock()
    with pytest.warns(UserWarning, match="mock device: it computes nothing"):
        run = device.load(binary)
    commands = asked(device, monkeypatch)
    for _ in range(2):
        (result,) = run(arguments, range(5))  # the last one on the device, where the program deallocates it
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert commands == ["keep"] * 5 + ["run"] * 2


@pytest.mark.needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_options_of_opening_reach_the_package(mock, compiled):
    binary, arguments, expected = compiled
    device = mock("two chips", mesh_shape=(1, 2), num_hw_cqs=2, enable_program_cache=False)
    (result,) = device.load(binary)(arguments)  # every chip has the same
    assert result.shape == expected.shape
    assert device.statistics()["cached"] == 0
    with pytest.raises(WorkerError, match="Requested mesh shape .* requires 4 devices"):
        mock("two chips", mesh_shape=(2, 2)).statistics()


@pytest.mark.needs_ttnn
def test_a_written_program_runs_by_itself(compiled, tmp_path):
    if not environment.is_ready():
        pytest.skip(f"no ttnn package in {environment.default_folder()}: tt-torch check --setup makes it")
    write_program(compiled[0], tmp_path / "net.py")
    folder = environment.default_folder()
    done = subprocess.run(
        [environment.python_in(folder), "net.py", "--calls", "2"],
        env=environment.variables(folder, "n150"), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.sub(r"[\d.]+ ms", "ms", done.stdout) == "call 0: ms\ncall 1: ms\noutput 0: FLOAT32 [3, 4]\n"


OPENED = """
import sys, torch
from tt_torch.codegen.device import TtnnDevice
device = TtnnDevice(python=sys.executable)
with device.session() as session:
    link = session._link
"""
STARTED = """
import os, signal, sys
from tt_torch.codegen.client import Client
link = Client(sys.executable, os.environ)
link.ask("open")
"""
SHOW = "print(link.pid, link._folder.name, flush=True)\n"


@pytest.mark.parametrize(("begin", "end"), [(OPENED, ""), (STARTED, "os.kill(os.getpid(), signal.SIGKILL)")])
def test_nothing_is_left_of_a_process_that_ends(begin, end, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    command = [sys.executable, "-c", begin + SHOW + end]
    process, folder = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.split()
    for _ in range(100):
        if not is_alive(int(process)):
            break
        time.sleep(0.05)
    assert not is_alive(int(process))
    assert Path(folder).exists() == bool(end)  # nobody is there to remove it

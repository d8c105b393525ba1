"""Each kind of wrong use raises an exception of its own, and process and device go on working afterwards."""

import itertools
import struct
import threading
import time

import pytest
import torch
from programs import Maker, chain_of_adds

from tt_torch import errors
from tt_torch.runtime import Binary, Device, Executable, default_device
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

DATA = chain_of_adds(3)
X, Y = torch.rand(32, 32), torch.rand(32, 32)


@pytest.fixture
def executable():
    executable = Executable(Binary(DATA))
    yield executable
    assert torch.allclose(executable([X, Y])[0], X + 3 * Y)  # still usable


def test_truncated_file():
    with pytest.raises(errors.BinaryFormatError, match="length prefix"):
        Binary(DATA[:-8])


@pytest.mark.parametrize("read", [Binary, decode])
def test_every_part_of_a_file_is_needed(read):
    """The length prefix of each shorter file is right. The file itself may end with up to 3 bytes of padding."""
    for length in range(4, len(DATA) - 3):
        with pytest.raises(errors.BinaryFormatError):
            read((length - 4).to_bytes(4, "little") + DATA[4:length])


def test_foreign_file():
    with pytest.raises(errors.BinaryFormatError, match="not a valid TTNN binary"):
        Binary(b"\x7fELF" + bytes(300))


def test_flipped_offset():
    data = bytearray(DATA)
    data[4] ^= 0x40
    with pytest.raises(errors.BinaryFormatError):
        Binary(bytes(data))


def test_overlapping_vectors():
    """If vectors may begin inside one another, each of them is walked, and a small file can cost hours."""
    chips = [{"supported_data_types": ["Float32", "Float16"] * 40_000}, {"supported_data_types": ["Bool"]}]
    data = encode({**decode(DATA), "system_desc": {"chip_descs": chips}})
    assert Binary(data).programs
    numbers = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
    # "Float32", "Float16" are 0 and 1 in 16 bits. Read as one number of 32 bits, this is the length of a vector, 65536.
    inside = 4 * (numbers.index(80_000) + 1)
    second = next(i for i, (n, m) in enumerate(itertools.pairwise(numbers)) if n == 1 and m & 0xFFFF == 18)
    (field,) = (4 * i for i, n in enumerate(numbers) if i + n / 4 == second)
    damaged = data[:field] + (inside - field).to_bytes(4, "little") + data[field + 4 :]
    with pytest.raises(errors.BinaryFormatError, match="overlapping vectors at supported_data_types"):
        Binary(damaged)


def test_unknown_schema_names_the_known_ones():
    known = Binary(DATA).schema_hash
    data = encode({**decode(DATA), "version": {"major": 1, "minor": 22, "patch": 333}})
    assert Binary(data).version == "1.22.333"
    message = rf"for schema 0{{64}} by tt-mlir 1\.22\.333 \(commit 19c86fca\w{{32}}\); (?s:.*){known}"
    with pytest.raises(errors.SchemaError, match=message):
        Binary(data.replace(known.encode(), b"0" * 64))


def test_ops_without_kernel_are_all_named():
    maker = Maker()
    x = maker.input((32, 32))
    y = maker.op("AllReduceAsyncOp", **{"in": x}, out=maker.tensor((32, 32)))
    z = maker.op("LayerNormPreAllGatherOp", input=y, out=maker.tensor((32, 32)))
    with pytest.raises(errors.UnsupportedBinaryError, match="AllReduceAsyncOp, LayerNormPreAllGatherOp"):
        Executable(Binary(maker.binary(z)))


def test_input_count(executable):
    with pytest.raises(errors.InputCountError, match="takes 2 inputs, got 1"):
        executable([X])


def test_input_shape(executable):
    with pytest.raises(errors.InputShapeError, match="input 1: got shape 32x31, expected 32x32"):
        executable([X, Y[:, 1:]])


@pytest.mark.parametrize("resident", [(), (1,)])
def test_input_dtype(executable, resident):
    with pytest.raises(errors.InputDtypeError, match="input 1: got Int32, expected Float32"):
        executable([X, Y.int()], resident)


def test_complex_input(executable):
    with pytest.raises(errors.InputDtypeError, match="complex64"):
        executable([X, Y.to(torch.complex64)])


def test_exhausted_device_lists_buffers_and_recovers():
    device = Device(dram_bank_size=4 * 4096)
    big = Executable(Binary(chain_of_adds(3, (1024, 1024))), device=device)
    with pytest.raises(errors.DeviceMemoryError, match=r"DRAM of the device is exhausted: input 0 1024x1024") as caught:
        big([torch.rand(1024, 1024)] * 2)
    assert isinstance(caught.value, torch.OutOfMemoryError)  # code that reduces its batch size catches this class
    assert isinstance(caught.value, MemoryError)
    assert device.memory_stats()["dram"]["allocated"] == 0
    small = Executable(Binary(DATA), device=device)
    assert torch.allclose(small([X, Y])[0], X + 3 * Y)


def test_exhausted_by_intermediates_names_the_op():
    device = Device(l1_bank_size=3 * 4096)
    chain = Executable(Binary(chain_of_adds(3, (256, 256), buffer="L1")), device=device)
    device_error = pytest.raises(errors.DeviceMemoryError, match=r"EltwiseBinaryOp .* at model.py:\d")
    with device_error as caught:
        chain([torch.rand(256, 256)] * 2)
    assert "largest live buffers" in str(caught.value) and "262144 bytes" in str(caught.value)


def test_closed_device():
    device = Device()
    executable = Executable(Binary(DATA), device=device)
    device.close()
    with pytest.raises(errors.DeviceError, match="closed"):
        executable([X, Y])
    with pytest.raises(errors.DeviceError, match="closed"):
        Executable(Binary(DATA), device=device)
    assert default_device().is_open


def test_bad_device_options():
    with pytest.raises(errors.ConfigError, match="wormhole_b0 or blackhole"):
        Device(arch="grayskull")
    with pytest.raises(errors.DeviceError, match="mesh_shape has 2 chips, but the number of device_ids is 1"):
        Device(mesh_shape=(1, 2), device_ids=(0,))


def test_failing_op_names_itself():
    maker = Maker()
    x = maker.input((4, 8))
    index = maker.input((4, 8), "UInt32")
    out = maker.op("GatherOp", input=x, index=index, dim=1, out=maker.tensor((4, 8)))
    executable = Executable(Binary(maker.binary(out)))
    with pytest.raises(errors.KernelError, match=r"GatherOp at model.py:1 failed: index 99 is out of bounds"):
        executable([torch.rand(4, 8), torch.full((4, 8), 99)])
    assert executable([X[:4, :8], torch.zeros(4, 8, dtype=torch.int64)])[0].shape == (4, 8)


def test_results_have_the_described_shape():
    maker = Maker()
    x, index = maker.input((4, 8)), maker.input((4, 8), "UInt32")
    out = maker.op("GatherOp", input=x, index=index, dim=1, out=maker.tensor((8, 4)))
    executable = Executable(Binary(maker.binary(out)))
    message = "GatherOp at model.py:1 failed: the result has shape 4x8, but the program describes it as 8x4"
    with pytest.raises(errors.KernelError, match=message):
        executable([torch.rand(4, 8), torch.zeros(4, 8, dtype=torch.int64)])


def failing(location):
    """A program whose only op fails when its index is out of range."""
    maker = Maker()
    x, index = maker.input((4, 8)), maker.input((4, 8), "UInt32")
    out = maker.op("GatherOp", input=x, index=index, dim=1, out=maker.tensor((4, 8)))
    maker.program["operations"][-1]["loc_info"] = location
    return Executable(Binary(maker.binary(out)))


LIBRARY = '"/v/lib/python3.11/site-packages/transformers/m.py":7:2'
TORCH = '"/v/lib/python3.11/site-packages/torch/nn/linear.py":9:1'
LOCATIONS = [
    ('loc("add_3: aten.add.Tensor"("/home/me/model.py":12:4))', "/home/me/model.py:12 (add_3)"),
    (f'loc("mm: aten.mm"(callsite({TORCH} at callsite({LIBRARY} at "run.py":5:0))))', "run.py:5 (mm)"),
    (f"loc(callsite({TORCH} at {LIBRARY}))", "/v/lib/python3.11/site-packages/transformers/m.py:7"),
    ('loc("relu: aten.relu.default")', "relu"),
    ("loc(unknown)", "loc(unknown)"),
    ('loc(fused["kind": "model.py":4:2])', "model.py:4"),
    ('loc("model.py":3:1 "kind: of")', "model.py:3"),
    ('loc("model.py"', 'loc("model.py"'),
    ("x" * 5000, "x" * 200 + "..."),
    ("x" * 200, "x" * 200),
    ('loc("', 'loc("'),
    ('loc("add', 'loc("add'),
]


@pytest.mark.parametrize("location, shown", LOCATIONS)
def test_errors_show_the_users_line(location, shown):
    with pytest.raises(errors.KernelError) as caught:
        failing(location)([torch.rand(4, 8), torch.full((4, 8), 99)])
    assert str(caught.value).startswith(f"GatherOp at {shown} failed: ") and "\n" not in str(caught.value)


def test_results_that_do_not_fit_the_host():
    maker = Maker()
    x = maker.input((1, 1), tile=False)
    huge = maker.op("RepeatOp", **{"in": x}, repeat_dims=[1 << 18, 1 << 18], out=maker.tensor((1 << 18, 1 << 18)))
    executable = Executable(Binary(maker.binary(huge)))
    with pytest.raises(errors.DeviceMemoryError):
        executable([torch.ones(1, 1)])


def test_host_memory_of_a_run_is_bounded():
    maker = Maker()
    x = maker.input((64, 64), buffer="host", tile=False)
    y = maker.binary_op("Add", x, x, maker.tensor((64, 64), buffer="host", tile=False))
    executable = Executable(Binary(maker.binary(y)), device=Device(host_memory_size=20000))
    with pytest.raises(errors.DeviceMemoryError, match="host memory for the device is exhausted"):
        executable([X.repeat(2, 2)])
    assert torch.equal(Executable(Binary(maker.binary(y)))([X.repeat(2, 2)])[0], 2 * X.repeat(2, 2))


def test_programs_that_call_each_other():
    maker = Maker()
    x = maker.input((32, 32))
    y = maker.tensor((32, 32))
    maker.op("FuncCallOp", program_id=0, inputs=[x], outputs=[y])
    with pytest.raises(errors.BinaryFormatError, match="call each other without end: main"):
        Executable(Binary(maker.binary(y)))


@pytest.mark.parametrize("value", [None, 3.0, [1.0], torch.rand(32, 32, device="meta"), torch.eye(32).to_sparse()])
def test_inputs_that_are_no_cpu_tensors(executable, value):
    for resident in ((), (0,)):
        with pytest.raises(errors.InputDtypeError, match="input 0: got "):
            executable([value, Y], resident)


def test_calls_from_inside_a_callback(executable):
    seen = []

    def callback(*event):
        with pytest.raises(errors.ExecutableBusyError, match="from inside its own callback"):
            executable([X, Y])
        seen.append(executable.memory_stats()["dram_peak"])
        executable.set_callback(None)  # has an effect from the next call on
        assert torch.allclose(Executable(Binary(DATA))([X, Y])[0], X + 3 * Y)

    executable.set_callback(callback)
    executable([X, Y])
    executable([X, Y])
    assert len(seen) == 3 and min(seen) > 0


def test_other_threads_ask_while_a_callback_runs(executable):
    """Both threads wait for the run to end. If they held the GIL while they wait, the run could not end."""
    threads = [
        threading.Thread(target=executable.memory_stats, daemon=True),
        threading.Thread(target=executable.set_callback, args=(None,), daemon=True),
    ]

    def callback(*event):
        for thread in threads:
            if not thread.ident:
                thread.start()
        time.sleep(0.05)

    executable.set_callback(callback)
    run = threading.Thread(target=executable, args=([X, Y],), daemon=True)
    for thread in (run, *threads):
        thread.start() if thread is run else time.sleep(0.05)
    for thread in (run, *threads):
        thread.join(20)
        assert not thread.is_alive()


def test_meta_tensors_are_refused_in_one_line(executable):
    with pytest.raises(errors.InputDtypeError, match=r"^input 1: got Tensor on meta, which has no values, expected a"):
        executable([X, Y.to("meta")])

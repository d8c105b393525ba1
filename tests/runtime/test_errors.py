"""Every way to be wrong has its own exception, and process and device go on working afterwards."""

import pytest
import torch
from programs import Maker, chain_of_adds

from tt_torch import errors
from tt_torch.runtime import Binary, Device, Executable, default_device

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


def test_foreign_file():
    with pytest.raises(errors.BinaryFormatError, match="not a valid TTNN binary"):
        Binary(b"\x7fELF" + bytes(300))


def test_flipped_offset():
    data = bytearray(DATA)
    data[4] ^= 0x40
    with pytest.raises(errors.BinaryFormatError):
        Binary(bytes(data))


def test_unknown_schema_names_the_known_ones():
    known = Binary(DATA).schema_hash
    with pytest.raises(errors.SchemaError, match=known):
        Binary(DATA.replace(known.encode(), b"0" * 64))


def test_ops_without_kernel_are_all_named():
    maker = Maker()
    x = maker.input((32, 32))
    y = maker.op("AllReduceOp", **{"in": x}, out=maker.tensor((32, 32)))
    z = maker.op("MeshPartitionOp", **{"in": y}, out=maker.tensor((32, 32)))
    with pytest.raises(errors.UnsupportedBinaryError, match="AllReduceOp, MeshPartitionOp"):
        Executable(Binary(maker.binary(z)))


def test_input_count(executable):
    with pytest.raises(errors.InputCountError, match="takes 2 inputs, got 1"):
        executable([X])


def test_input_shape(executable):
    with pytest.raises(errors.InputShapeError, match=r"input 1: got shape \(32, 31\), accepted"):
        executable([X, Y[:, 1:]])


@pytest.mark.parametrize("resident", [(), (1,)])
def test_input_dtype(executable, resident):
    with pytest.raises(errors.InputDtypeError, match="input 1: got Int32, accepted is Float32"):
        executable([X, Y.int()], resident)


def test_complex_input(executable):
    with pytest.raises(errors.InputDtypeError, match="complex64"):
        executable([X, Y.to(torch.complex64)])


def test_exhausted_device_lists_buffers_and_recovers():
    device = Device(dram_bank_size=4 * 4096)
    big = Executable(Binary(chain_of_adds(3, (1024, 1024))), device=device)
    with pytest.raises(errors.DeviceMemoryError, match=r"DRAM of the device is exhausted: input 0 1024x1024"):
        big([torch.rand(1024, 1024)] * 2)
    assert device.memory_stats()["dram"]["allocated"] == 0
    small = Executable(Binary(DATA), device=device)
    assert torch.allclose(small([X, Y])[0], X + 3 * Y)


def test_exhausted_by_intermediates_names_the_op():
    device = Device(l1_bank_size=3 * 4096)
    chain = Executable(Binary(chain_of_adds(3, (256, 256), buffer="L1")), device=device)
    device_error = pytest.raises(errors.DeviceMemoryError, match=r'EltwiseBinaryOp .* at loc\("model.py":\d')
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
    with pytest.raises(errors.DeviceError, match="mesh of 2 chips"):
        Device(mesh_shape=(1, 2), device_ids=(0,))


def test_failing_op_names_itself():
    maker = Maker()
    x = maker.input((4, 8))
    index = maker.input((4, 8), "UInt32")
    out = maker.op("GatherOp", input=x, index=index, dim=1, out=maker.tensor((4, 8)))
    executable = Executable(Binary(maker.binary(out)))
    with pytest.raises(errors.KernelError, match=r'GatherOp at loc\("model.py":1:0\) failed'):
        executable([torch.rand(4, 8), torch.full((4, 8), 99)])
    assert executable([X[:4, :8], torch.zeros(4, 8, dtype=torch.int64)])[0].shape == (4, 8)

"""The C++ classes refuse wrong arguments themselves, because a C++ program has no Python that checks them first."""

import os
import resource

import pytest
import test_reference
import torch
from programs import chain_of_adds

from tt_torch import errors
from tt_torch.runtime import Binary, DataType, Device, Executable, _runtime

X, Y = torch.rand(32, 32), torch.rand(32, 32)


def plain(shape=(32, 32), dtype="Float32"):
    """A program x + y of tensors of one shape and type, without the Python around it."""
    return Executable(Binary(chain_of_adds(1, shape, dtype)), device=Device())._impl


def test_inputs_and_outputs_are_counted():
    with pytest.raises(errors.InputCountError, match="takes 2 inputs, got 1"):
        plain().run([X], None, [torch.empty(32, 32)])
    with pytest.raises(errors.InputCountError, match="has 1 outputs, got memory for 0"):
        plain().run([X, Y], None, [])
    with pytest.raises(errors.InputCountError, match="has 1 outputs, got memory for 2"):
        plain().run([X, Y], None, [torch.empty(32, 32), torch.empty(32, 32)])


def test_outputs_have_the_shape_of_the_results():
    with pytest.raises(errors.InputShapeError, match="output 0: got memory of shape 32x31, expected 32x32"):
        plain().run([X, Y], None, [torch.empty(32, 31)])


STRIDED = {
    "transposed": lambda: torch.zeros(32, 32).t(),
    "columns": lambda: torch.zeros(32, 64)[:, ::2],
    "rows": lambda: torch.zeros(64, 32)[1::2],
    "other type": lambda: torch.zeros(32, 32, dtype=torch.bfloat16),
}


@pytest.mark.parametrize("memory", STRIDED)
def test_results_are_written_to_the_memory_that_is_given(memory):
    out = STRIDED[memory]()
    plain().run([X.round(), Y.round()], None, [out])
    assert torch.equal(out.float(), X.round() + Y.round())


def test_a_dimension_of_one_element_may_have_any_stride():
    out, x = torch.zeros(64).as_strided((1, 32), (7, 1)), torch.rand(1, 32)
    plain((1, 32)).run([x, x], None, [out])
    assert torch.equal(out, 2 * x)


@pytest.mark.parametrize("shape, dtype", [((32, 31), "Float32"), ((32, 32), "BFloat16")])
def test_a_resident_tensor_of_another_program(shape, dtype):
    device, source = Device(), torch.rand(shape)
    spec = plain(shape, dtype).info.inputs[1]
    resident = _runtime.Tensor(device._impl, spec, source, source.untyped_storage(), "y")
    kept = _runtime.Residents(2, [(1, resident, _runtime.Fingerprint(source, "y"), source)])
    with pytest.raises(errors.InputShapeError, match=r"got resident .*, expected 32x32 Float32 tile dram$"):
        Executable(Binary(chain_of_adds(1)), device=device)._impl.run([X, source], kept, [torch.empty(32, 32)])


def test_a_resident_tensor_has_the_described_shape_and_type():
    device, spec = Device()._impl, plain().info.inputs[0]
    for source, error in ((torch.rand(32, 31), errors.InputShapeError), (Y.int(), errors.InputDtypeError)):
        with pytest.raises(error, match="y: got"):
            _runtime.Tensor(device, spec, source, source.untyped_storage(), "y")


@pytest.mark.parametrize("program", [1, 2**40])
def test_a_program_that_is_not_there(program):
    with pytest.raises(errors.BinaryFormatError, match=f"the binary has no program {program}"):
        Executable(Binary(chain_of_adds(1)), program)


def test_tiles_of_block_floats():
    tile, narrow = bytearray(4096), bytearray(4 * 1023)
    for dtype in (DataType.Float32, DataType.BFP_BFloat2):
        for call in (_runtime.pack_tile, lambda t, d: _runtime.round_to_blocks(t, 32, d)):
            with pytest.raises(errors.InputDtypeError, match="is not a block-float type"):
                call(memoryview(tile).cast("f"), dtype)
        with pytest.raises(errors.InputDtypeError, match="is not a block-float type"):
            _runtime.unpack_tile(bytes(1088), dtype)
    with pytest.raises(errors.InputShapeError, match="a tile has 1024 values"):
        _runtime.pack_tile(memoryview(narrow).cast("f"), DataType.BFP_BFloat8)
    for dtype, size in ((DataType.BFP_BFloat8, 576), (DataType.BFP_BFloat4, 1088), (DataType.BFP_BFloat8, 1089)):
        with pytest.raises(errors.InputShapeError, match=r"a tile of BFP_BFloat\d has \d+ bytes, got "):
            _runtime.unpack_tile(bytes(size), dtype)
    for columns in (0, -32, 33):
        with pytest.raises(errors.InputShapeError, match="cannot be divided into rows of"):
            _runtime.round_to_blocks(memoryview(tile).cast("f"), columns, DataType.BFP_BFloat8)


REFUSED = [
    {"l1_bank_size": 4096, "l1_small_size": 4096},  # nothing would be left
    *({name: -1} for name in ("dram_bank_size", "l1_bank_size", "l1_small_size", "host_memory_size")),
    *({"num_hw_cqs": number} for number in (0, 3)),
    *({"mesh_shape": shape} for shape in [(), (1,), (1, 1, 1), (0, 1), (-1, 2), (5, 13), (65, 1), (2**40, 1)]),
    *({"mesh_shape": shape} for shape in ["24", ("2", "4"), (2.0, 4), 8, None]),
    {"mesh_shape": (2, 2), "device_ids": (0, 1, 2)},
]


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_device_options(options):
    with pytest.raises(errors.DeviceError):
        Device(**options)


@pytest.mark.parametrize("first, own", [(-1, 1), (2, 1), (1, 2), (0, 3), (0, 0), (0, -1)])
def test_the_chips_of_a_process_are_chips_of_its_mesh(first, own):
    options = _runtime.DeviceOptions()
    options.mesh_shape = [1, 2]
    options.share(first, own, lambda op, own, every: None)
    with pytest.raises(errors.DeviceError, match="the chips of this process must be chips of the mesh"):
        _runtime.Device(options)


def test_the_largest_device_options():
    device = Device(l1_bank_size=4096, l1_small_size=4095, mesh_shape=(8, 8), num_hw_cqs=2)
    assert device.device_ids == tuple(range(64))
    assert device._impl.memory(_runtime.BufferType.l1)["total"] == 64
    with pytest.raises(errors.DeviceError, match="only dram and l1 have memory statistics"):
        device._impl.memory(_runtime.BufferType.host)


@pytest.mark.parametrize("shape, offset", [((1,), (0, 0)), ((1, 1), (0,)), ((0, 1), (0, 0)), ((1, 1), (-1, 0)),
                                           ((2, 1), (1, 0)), ((1, 4), (0, 0)), ((2**63 - 1, 1), (1, 0)),
                                           ("11", (0, 0)), ((1, 1), None), ((1.0, 1), (0, 0))])  # fmt: skip
def test_a_submesh_lies_in_its_mesh(shape, offset):
    mesh = Device(mesh_shape=(2, 3), device_ids=(10, 11, 12, 20, 21, 22))
    with pytest.raises(errors.DeviceError):
        mesh.submesh(shape, offset)
    assert mesh.submesh((2, 2), (0, 1)).device_ids == (11, 12, 21, 22)
    assert mesh.submesh((1, 3), (1, 0)).device_ids == (20, 21, 22)


def libraries():
    """The number of open files of host code."""
    paths = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum("tt_host_code" in os.readlink(path) for path in paths if os.path.islink(path))


def test_host_code_that_does_not_fit_into_memory():
    """The system writes only a part of the library, because of its limit for the size of a file."""
    opened = libraries()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(errors.BinaryFormatError, match="the host library cannot be written to memory"):
            test_reference.load("gather")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert libraries() == opened
    loaded = test_reference.load("gather")
    assert loaded and libraries() == opened + 1
    del loaded
    assert libraries() == opened

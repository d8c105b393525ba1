"""A stand-in for the `ttnn` package, which computes the few ops of the tests here with NumPy.

It exists because mock devices of the real package give zeros. As in the real package, deallocated memory cannot
be read, and the results of a trace have values only after the trace was run. On a mesh, the memory of a tensor is a
list with the array of each chip.
"""

from __future__ import annotations

import functools
import math
from enum import Enum
from types import SimpleNamespace

import numpy as np

Dtype = Enum("Dtype", "float32 bfloat16 bfloat8_b bfloat4_b int32 uint32 uint16 uint8")
float32, bfloat16, bfloat8_b, bfloat4_b, int32, uint32, uint16, uint8 = Dtype
Layout = Enum("Layout", "ROW_MAJOR TILE")
ROW_MAJOR_LAYOUT, TILE_LAYOUT = Layout
DRAM_MEMORY_CONFIG = "DRAM"
TILE_SIZE = 32
_ttnn = SimpleNamespace(graph=None)
MathFidelity = SimpleNamespace(LoFi=0, HiFi2=2, HiFi3=3, HiFi4=4)
WormholeComputeKernelConfig = SimpleNamespace
QueueId = int
FabricConfig = Enum("FabricConfig", "DISABLED FABRIC_1D")
set_fabric_config = lambda config: LOG.append(config.name)  # noqa: E731
LOG = []  # calls, for tests to read


class Buffer:
    def __init__(self, array):
        self.array, self.users = array, 0


class Tensor:
    def __init__(self, source, dtype=None, layout=ROW_MAJOR_LAYOUT, device=None):
        if isinstance(source, Tensor):  # a second tensor with the same memory
            self.buffer, self.dtype, self.layout, self.device = (
                source.buffer,
                source.dtype,
                source.layout,
                source.device,
            )
        else:
            each = source if isinstance(source, list) else [source]
            assert all(np.ndim(array) == 0 or array.flags.writeable for array in each)  # the package requires this
            self.buffer, self.dtype, self.layout, self.device = Buffer(_rounded(source, dtype)), dtype, layout, device
        self.buffer.users += 1

    def __del__(self):
        self.buffer.users -= 1

    @property
    def array(self):
        if self.buffer.array is None:
            raise RuntimeError("TT_FATAL: the buffer is deallocated")
        return self.buffer.array

    def to_numpy(self):
        assert self.device is None and self.dtype not in (bfloat16, bfloat8_b, bfloat4_b)
        return self.array

    def of_chip(self, chip):
        on_mesh = isinstance(self.array, list)
        return Tensor(self.array[chip], self.dtype, self.layout, self.device) if on_mesh else self


def _rounded(array, dtype):
    if isinstance(array, list):
        return [_rounded(one, dtype) for one in array]
    if dtype == bfloat16:
        bits = np.array(array, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)
    return np.array(array).astype(dtype.name)


def _same(tensor, **changes):
    fields = {"dtype": tensor.dtype, "layout": tensor.layout, "device": tensor.device} | changes
    array = tensor.array
    return Tensor([one.copy() for one in array] if isinstance(array, list) else array.copy(), **fields)


def op(function):
    """Makes an op that traces record, from a function that computes its result."""

    @functools.wraps(function)
    def call(*operands, **settings):
        result = _on_each_chip(function, operands, settings)
        if result.device is None:
            return result
        steps = result.device.traces.get(result.device.trace)
        if steps is not None:
            again = functools.partial(function, *operands, **settings)
            steps.append(lambda: setattr(result.buffer, "array", again().array))
            result.buffer.array = np.zeros_like(result.buffer.array)  # while it is recorded, an op computes nothing
        return result

    return call


def _on_each_chip(function, operands, settings):
    """The result of a function of tensors, computed chip by chip if a tensor has a value per chip."""
    given = [x for x in (*operands, *settings.values()) if isinstance(x, Tensor)]
    chips = {len(x.array) for x in given if isinstance(x.array, list)}
    if not chips:
        return function(*operands, **settings)
    (count,), made = chips, []
    for chip in range(count):
        part = lambda x: x.of_chip(chip) if isinstance(x, Tensor) else x  # noqa: B023, E731
        made.append(function(*map(part, operands), **{key: part(x) for key, x in settings.items()}))
    return Tensor([one.array for one in made], made[0].dtype, made[0].layout, made[0].device)


@op
def to_layout(tensor, layout, dtype=None, memory_config=None):
    return _same(tensor, layout=layout)


def to_device(tensor, device, memory_config=None):
    LOG.append("to_device")
    if device.trace is not None:
        raise RuntimeError("TT_FATAL: Writes are not supported during trace capture.")
    if np.size(tensor.of_chip(0).array) > 1 << 20:
        raise RuntimeError("TT_FATAL @ a.cpp:1: ok\ninfo:\nOut of Memory: Not enough space\nbacktrace:\n --- frames")
    if device.chips > 1 and not isinstance(tensor.array, list):
        tensor = Tensor([tensor.array] * device.chips, tensor.dtype, tensor.layout)
    return _same(tensor, device=device)


def from_host_shards(tensors, shape):
    assert len(tensors) == math.prod(shape) and all(tensor.device is None for tensor in tensors)
    return Tensor([tensor.array for tensor in tensors], tensors[0].dtype)


def MeshMapperConfig(rows, columns):
    return rows, columns


def create_mesh_mapper(device, dims):
    return device.shape, dims


def distribute_tensor(tensor, mapper):
    shape, dims = mapper
    arrays = [tensor.array]
    for count, dim in zip(shape, dims, strict=True):
        arrays = [part.copy() for a in arrays for part in ([a] * count if dim is None else np.split(a, count, dim))]
    return Tensor(arrays, tensor.dtype)


def from_device(tensor):
    LOG.append("from_device")
    return _same(tensor, device=None)


@op
def typecast(tensor, dtype, memory_config=None):
    return _same(tensor, dtype=dtype)


def to_dtype(tensor, dtype):
    return _same(tensor, dtype=dtype)


def is_tensor_storage_on_device(tensor):
    return tensor.device is not None


def get_device_tensors(tensor):
    arrays = tensor.array if isinstance(tensor.array, list) else [tensor.array]
    return [Tensor(array, tensor.dtype, tensor.layout) for array in arrays]


def deallocate(tensor, force):
    if force or tensor.buffer.users == 1:
        _record(tensor.device, lambda: setattr(tensor.buffer, "array", None))


def _record(device, step):
    if device is not None and device.trace is not None:
        device.traces[device.trace].append(step)
    step()


@op
def full(shape, value, dtype, layout, device, memory_config):
    return Tensor(np.full(shape, value, np.float32), dtype, layout, device)


@op
def ne(a, b, dtype, memory_config):
    return Tensor(a.array != b.array, dtype, a.layout, a.device)


@op
def bitwise_and(a, b, memory_config):
    return Tensor(a.array & b.array, a.dtype, a.layout, a.device)


@op
def reshape(a, shape, memory_config):
    return Tensor(a.array.reshape(shape), a.dtype, a.layout, a.device)


@op
def add(a, b, dtype=None, memory_config=None):
    device_of(a).programs.add("add")
    return Tensor(a.array + b.array, dtype or a.dtype, a.layout, a.device)


@op
def divide(a, b, dtype, memory_config):
    return Tensor(a.array / b.array, dtype, a.layout, a.device)


def all_reduce(x, cluster_axis, memory_config):
    return _exchanged(x, cluster_axis, sum)


def all_gather(x, dim, cluster_axis, memory_config):
    return _exchanged(x, cluster_axis, lambda arrays: np.concatenate(arrays, dim))


def _exchanged(x, axis, joined):
    """The chips of each row or column get what their arrays make together."""
    count, made = x.device.shape[1], []
    for chip in range(x.device.chips):
        row, column = divmod(chip, count)
        made.append(joined(x.array[row * count : (row + 1) * count] if axis else x.array[column::count]))
    return Tensor(made, x.dtype, x.layout, x.device)


@op
def linear(a, b, bias, transpose_a, transpose_b, memory_config, dtype, activation=None, **settings):
    device_of(a).programs.add("linear")
    if np.isnan(a.array).any():
        raise RuntimeError("TIMEOUT: device timeout, potential hang detected, the device is unrecoverable")
    result = a.array @ b.array.T + bias.array
    return Tensor(np.maximum(result, 0) if activation == "relu" else result, dtype, a.layout, a.device)


def device_of(tensor):
    assert tensor.device is not None and tensor.layout == TILE_LAYOUT
    return tensor.device


class Device:
    def __init__(self, shape=(1, 1)):
        self.shape, self.chips = shape, math.prod(shape)
        self.programs, self.traces, self.trace = set(), {}, None

    def arch(self):
        return SimpleNamespace(name="WORMHOLE_B0")

    def get_num_devices(self):
        return 1

    def num_program_cache_entries(self):
        return len(self.programs)

    def create_submesh(self, shape, offset):
        assert (shape, offset) == ((1, 1), (0, 0))
        return Device()


def MeshShape(*shape):
    return shape


def MeshCoordinate(*place):
    return place


def get_num_devices():
    return 1


def open_mesh_device(shape, **options):
    if math.prod(shape) > 1 and "FABRIC_1D" not in LOG:
        raise RuntimeError("Trying to get un-initialized fabric context")
    LOG.append(("open", options))
    return Device(shape)


def close_mesh_device(device):
    LOG.append("close")
    device.programs.clear()


def empty(shape, dtype, layout, device, memory_config):
    LOG.append("empty")
    return Tensor(np.zeros(shape), dtype, layout, device)


def begin_trace_capture(device, *, cq_id):
    LOG.append(("begin", cq_id))
    device.trace = len(LOG)
    device.traces[device.trace] = []
    return device.trace


def end_trace_capture(device, number, *, cq_id):
    assert device.trace == number
    LOG.append(("end", cq_id))
    device.trace = None


def execute_trace(device, number, *, cq_id, blocking):
    LOG.append(("execute", cq_id))
    for step in device.traces[number]:
        step()


def release_trace(device, number):
    LOG.append("release")
    del device.traces[number]


def copy(source, target):
    assert (source.dtype, source.layout, source.device) == (target.dtype, target.layout, target.device)
    steps = target.device.traces.get(target.device.trace)
    write = lambda: setattr(target.buffer, "array", source.array.copy())  # noqa: E731
    write() if steps is None else steps.append(write)


def copy_host_to_device_tensor(host, tensor, cq_id=0):
    assert (host.dtype, host.layout, host.device) == (tensor.dtype, tensor.layout, None)
    LOG.append(("copy", cq_id))
    tensor.buffer.array = host.array.copy()


def record_event(device, cq_id):
    LOG.append(("record", cq_id))
    return SimpleNamespace(of=cq_id)


def wait_for_event(cq_id, event):
    LOG.append(("wait", cq_id, event.of))

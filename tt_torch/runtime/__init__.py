"""Stage 7: running TTNN binaries on the emulated device.

The work is done by the C++ library `tt_runtime`, which reads tensors through DLPack; here results get their
memory, and tensors that stay on the device are found again. Importing this needs neither torch-mlir nor the
compiler.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import torch

from tt_torch.errors import ConfigError, DeviceMemoryError, InputCountError, InputDtypeError
from tt_torch.runtime import _runtime, fused_steps
from tt_torch.runtime._runtime import DataType, ProgramInfo, TensorSpec
from tt_torch.torch_private.tensors import version

__all__ = ["Binary", "DataType", "Device", "Executable", "ProgramInfo", "TensorSpec", "default_device"]

_TYPES = {
    torch.float32: DataType.Float32, torch.float16: DataType.Float16, torch.bfloat16: DataType.BFloat16,
    torch.float64: DataType.Float64, torch.int64: DataType.Int64, torch.int32: DataType.Int32,
    torch.int16: DataType.Int16, torch.int8: DataType.Int8, torch.uint8: DataType.UInt8,
    torch.uint16: DataType.UInt16, torch.uint32: DataType.UInt32, torch.uint64: DataType.UInt64,
    torch.bool: DataType.Bool,
}  # fmt: skip
_TORCH_TYPES = {wire: dtype for dtype, wire in _TYPES.items()}

# What a result is given as when the caller asks for nothing else. PyTorch hardly computes in unsigned types.
_RESULT_TYPES = _TORCH_TYPES | {
    DataType.BFP_BFloat8: torch.bfloat16, DataType.BFP_BFloat4: torch.bfloat16,
    DataType.UInt32: torch.int64, DataType.UInt16: torch.int32,
}  # fmt: skip


class Binary:
    """A verified TTNN binary: `programs`, `schema_hash`, `version`."""

    def __init__(self, data: bytes) -> None:
        self._impl = _runtime.Binary(data)
        self.programs: list[ProgramInfo] = self._impl.programs

    @classmethod
    def load(cls, path: str | Path) -> Binary:
        return cls(Path(path).read_bytes())

    @property
    def schema_hash(self) -> str:
        return self._impl.schema_hash

    @property
    def version(self) -> str:
        return self._impl.version


class Device:
    """An emulated device: a mesh of chips of one architecture ("wormhole_b0" or "blackhole").

    `dram_bank_size` and `l1_bank_size` (bytes per bank) override the architecture's memory, for tests;
    `host_memory_size` bounds what the host tensors of one run may take (0: all that is installed).
    `allow_host_code` lets binaries run the machine code they carry for the host: trust them first.
    """

    def __init__(
        self,
        arch: str = "wormhole_b0",
        mesh_shape: Sequence[int] = (1, 1),
        device_ids: Sequence[int] = (),
        num_hw_cqs: int = 1,
        l1_small_size: int = 0,
        dram_bank_size: int = 0,
        l1_bank_size: int = 0,
        allow_host_code: bool = False,
        host_memory_size: int = 0,
    ) -> None:
        options = _runtime.DeviceOptions()
        options.arch = _arch(arch)
        options.mesh_shape, options.device_ids = list(mesh_shape), list(device_ids)
        options.num_hw_cqs, options.l1_small_size = num_hw_cqs, l1_small_size
        options.dram_bank_size, options.l1_bank_size = dram_bank_size, l1_bank_size
        options.allow_host_code, options.host_memory_size = allow_host_code, host_memory_size
        self._adopt(_runtime.Device(options))

    @classmethod
    def shared(cls, arch: str = "wormhole_b0", chip: int = 0) -> Device:
        """The one device of this chip that the whole process shares; opened at first use, and anew after a close."""
        device = cls.__new__(cls)
        device._adopt(_runtime.Device.shared(_arch(arch), chip))
        return device

    def _adopt(self, impl: Any) -> None:
        self._impl = impl

        # The handle borrows the memory, not the tensor object: that must be free to die.
        def make(spec: TensorSpec, source: torch.Tensor, who: str) -> Any:
            return _runtime.Tensor(impl, spec, source, source.untyped_storage(), who)

        self._residents = Residents(make)

    @property
    def arch(self) -> str:
        return self._impl.options.arch.name

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        return tuple(self._impl.options.mesh_shape)

    @property
    def device_ids(self) -> tuple[int, ...]:
        return tuple(self._impl.options.device_ids)

    @property
    def is_open(self) -> bool:
        return self._impl.is_open

    def submesh(self, shape: Sequence[int], offset: Sequence[int] = (0, 0)) -> Device:
        """Part of this mesh as a device of its own."""
        part = Device.__new__(Device)
        part._adopt(self._impl.submesh(list(shape), list(offset)))
        return part

    def load(self, binary: bytes, program: int = 0) -> Executable:
        """A program of a binary, planned for this device."""
        return Executable(Binary(binary), program, self)

    def memory_stats(self) -> dict[str, dict[str, Any]]:
        """Per space ("dram", "l1"): total, allocated, peak, largest_free, banks, live [(name, bytes)]."""
        spaces = (_runtime.BufferType.dram, _runtime.BufferType.l1)
        return {space.name: self._impl.memory(space) for space in spaces}

    def close(self) -> None:
        """Free all device memory; executables of this device raise DeviceError from now on."""
        self._residents.clear()
        self._impl.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Residents:
    """Tensors kept on a device, found again by identity, memory, version and placement.

    `make(spec, tensor, who)` puts one there and returns its handle, which is dropped when the tensor dies or changes.
    """

    def __init__(self, make: Callable[[Any, torch.Tensor, str], Any]) -> None:
        self._make = make
        self._entries: dict[tuple[int, str], tuple[Any, int, int, Any]] = {}

    def get(self, tensor: torch.Tensor, spec: Any, placement: str, who: str) -> Any:
        key = (id(tensor), placement)
        entry = self._entries.get(key)
        if entry and entry[0]() is tensor and entry[1:3] == (tensor.data_ptr(), version(tensor)):
            return entry[3]
        source = tensor.resolve_neg() if tensor.is_neg() else tensor
        handle = self._make(spec, source, who)
        fused_steps.watch(tensor)
        dead = weakref.ref(tensor, lambda _: self._entries.pop(key, None))
        self._entries[key] = (dead, tensor.data_ptr(), version(tensor), handle)
        return handle

    def clear(self) -> None:
        self._entries.clear()


class _Bound:
    """The resident inputs of a call, to be passed again while the same tensors hold the same values."""

    def __init__(self, native: Any, tensors: Sequence[torch.Tensor]) -> None:
        self._versions = list(map(version, tensors))
        # Emptied when a tensor dies: device memory is free then, and an address may come back as another's.
        self._native = alive = [native]
        self._watched = [weakref.ref(tensor, lambda _: alive.clear()) for tensor in tensors]

    def find(self, inputs: Sequence[Any], tensors: Sequence[Any]) -> Any:
        """What the runtime takes for these inputs, or None when something has changed."""
        for native in self._native[:]:
            if native.holds(inputs) and list(map(version, tensors)) == self._versions:
                return native
        return None


class _Split:
    """Which positions of a program's inputs are kept on the device, and which are passed at every call."""

    def __init__(self, count: int, resident: Collection[int]) -> None:
        self.resident = frozenset(resident)
        self.kept = [i for i in range(count) if i in self.resident]
        self.passed = [i for i in range(count) if i not in self.resident]
        self.bound: _Bound | None = None


class Executable:
    """A program of a binary, planned for a device; calling it runs it.

    Inputs listed in `resident` are copied to the device once and stay there until the tensor is
    changed or dies; all other inputs are copied at every call.
    """

    def __init__(self, binary: Binary, program: int = 0, device: Device | None = None) -> None:
        self.binary, self.device = binary, device or default_device()
        self.program = program
        self._impl = _runtime.Executable(binary._impl, program, self.device._impl)
        info = self._impl.info
        self.inputs: list[TensorSpec] = info.inputs
        self.outputs: list[TensorSpec] = info.outputs
        self._placements = [repr(spec) for spec in self.inputs]
        self._results = result_forms(self.outputs)
        self._split = _Split(len(self.inputs), ())

    def __call__(
        self,
        inputs: Sequence[torch.Tensor],
        resident: Collection[int] = (),
        output_dtypes: Sequence[torch.dtype | None] | None = None,
        output_strides: Sequence[tuple[int, ...] | None] | None = None,
        output_devices: Sequence[torch.device] | None = None,
    ) -> list[torch.Tensor]:
        if len(inputs) != len(self.inputs):
            name = self.binary.programs[self.program].name
            raise InputCountError(f"program {name} takes {len(self.inputs)} inputs, got {len(inputs)}")
        split = self._split
        if resident is not split.resident and frozenset(resident) != split.resident:
            split = self._split = _Split(len(self.inputs), resident)
        kept = self._residents(inputs, split) if split.kept else None
        for i in split.passed:
            if _is_negated(inputs[i], i):
                inputs = [*inputs[:i], inputs[i].resolve_neg(), *inputs[i + 1 :]]
        results = make_results(self._results, output_dtypes, output_strides, output_devices)
        self._impl.run(inputs, kept, results)
        return results

    def _residents(self, inputs: Sequence[torch.Tensor], split: _Split) -> Any:
        tensors = [inputs[i] for i in split.kept]
        native = split.bound.find(inputs, tensors) if split.bound else None
        if native is not None:
            return native
        for i in split.kept:
            if not isinstance(inputs[i], torch.Tensor):
                raise _no_tensor(inputs[i], i)
        # Inference tensors have no versions: nobody would know when they change.
        kept = [i for i in split.kept if not inputs[i].is_inference()]
        handles = [(i, self._handle(i, inputs[i]), inputs[i]) for i in kept]
        native = _runtime.Residents(len(inputs), handles)
        split.bound = _Bound(native, tensors) if len(kept) == len(tensors) else None
        return native

    def _handle(self, position: int, tensor: torch.Tensor) -> Any:
        spec, placement = self.inputs[position], self._placements[position]
        try:
            return self.device._residents.get(tensor, spec, placement, f"input {position}")
        except RuntimeError as error:  # of PyTorch: sparse tensors and the like have no memory to speak of
            reason = str(error).partition("\n")[0]
            raise InputDtypeError(f"input {position}: got a tensor without memory: {reason}") from None

    def set_callback(self, callback: Callable[[str, str, str, str, list[torch.Tensor]], None] | None) -> None:
        """Call `callback(op, location, debug_info, program, outputs)` after each op; None turns it off.

        Every op then runs by itself, and the output tensors are copies. From inside a callback this takes
        effect with the next call; calling the executable itself there raises ExecutableBusyError.
        """
        if callback is None:
            return self._impl.set_callback(None)

        def forward(op: str, location: str, debug_info: str, program: str, outputs: list[Any]) -> None:
            callback(op, location, debug_info, program, [_read(output) for output in outputs])

        return self._impl.set_callback(forward)

    def memory_stats(self) -> dict[str, int]:
        """dram_peak and l1_peak (bytes, of the last accounted run) and host_arena."""
        return self._impl.memory


def result_forms(outputs: Sequence[TensorSpec]) -> list[tuple[list[int], torch.dtype]]:
    """Shape and dtype of a program's results where the caller asks for nothing else."""
    return [(spec.shape, _RESULT_TYPES[spec.dtype]) for spec in outputs]


def make_results(
    results: Sequence[tuple[list[int], torch.dtype]],
    dtypes: Sequence[torch.dtype | None] | None,
    strides: Sequence[tuple[int, ...] | None] | None,
    devices: Sequence[torch.device] | None,
) -> list[torch.Tensor]:
    """Memory for what a program returns: of its own dtype, contiguous and on the CPU where these are None."""
    for name, given in (("output_dtypes", dtypes), ("output_strides", strides), ("output_devices", devices)):
        if given is not None and len(given) != len(results):
            raise InputCountError(f"{len(results)} results, but {len(given)} {name}")
    forms = zip(results, dtypes or repeat(None), devices or repeat(None), strict=False)
    try:
        made = [torch.empty(shape, dtype=dtype or own, device=device) for (shape, own), dtype, device in forms]
        for i, stride in enumerate(strides or ()):
            if stride is not None:
                like = made[i]
                made[i] = torch.empty_strided(like.shape, stride, dtype=like.dtype, device=like.device)
        return made
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise DeviceMemoryError(f"there is no memory for the results: {reason}") from None


def _arch(name: str) -> Any:
    known = _runtime.Arch.__members__
    if name not in known:
        raise ConfigError("arch", name, " or ".join(known))
    return known[name]


def _is_negated(tensor: Any, position: int) -> bool:
    """Whether the values are the negative of what lies in memory, as in lazy views of complex numbers."""
    if not isinstance(tensor, torch.Tensor):
        raise _no_tensor(tensor, position)
    return tensor.is_neg()


def _no_tensor(value: object, position: int) -> InputDtypeError:
    return InputDtypeError(f"input {position}: got {type(value).__name__}, accepted is a tensor")


def _read(buffer: tuple[int, list[int], Any]) -> torch.Tensor:
    """A copy of a contiguous tensor that the runtime shows to a callback."""
    data, shape, wire = buffer
    result = torch.empty(shape, dtype=_TORCH_TYPES[wire])
    ctypes.memmove(result.data_ptr(), data, result.numel() * result.element_size())
    return result


_default: dict[tuple[str, int], Device] = {}
_default_lock = threading.Lock()


def default_device(arch: str = "wormhole_b0", chip: int = 0) -> Device:
    """The one device of this chip that everybody shares; opened at first use, closed at exit."""
    key = arch, chip
    with _default_lock:
        if key not in _default or not _default[key].is_open:
            _default[key] = Device.shared(arch, chip)
        return _default[key]


@atexit.register
def _close_default_devices() -> None:
    for device in _default.values():
        device.close()

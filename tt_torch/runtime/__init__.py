"""Stage 7: runs TTNN binaries on the emulated device.

The C++ library `tt_runtime` does the work and reads tensors through DLPack. This module allocates the results and
remembers the tensors that stay on the device. It imports neither torch-mlir nor the compiler.
"""

from __future__ import annotations

import atexit
import hashlib
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from tt_torch.errors import ConfigError, InputCountError, InputDtypeError
from tt_torch.runtime import _runtime, residents
from tt_torch.runtime._runtime import DataType, ProgramInfo, TensorSpec
from tt_torch.runtime.buffers import Buffer, make_results, read, result_forms, write
from tt_torch.runtime.mesh import MeshSpec, PartSpec, two_integers
from tt_torch.runtime.residents import Bound, Kept, Native, Resident, Residents, Split, can_be_state, refresh

if TYPE_CHECKING:  # it imports torch.distributed
    from tt_torch.torch_private.hosts import Hosts

__all__ = ["Binary", "DataType", "Device", "Executable", "ProgramInfo", "TensorSpec", "default_device", "refresh"]


Caches: TypeAlias = tuple[dict[Any, Any], dict[Any, Any]]  # a Kept object for each device


class Binary:
    """A verified TTNN binary: `programs`, `schema_hash`, the `version` of the compiler that wrote it, and a `digest`.

    Raises BinaryFormatError and SchemaError.
    """

    def __init__(self, data: bytes) -> None:
        self._impl = _runtime.Binary(data)
        self.digest = hashlib.sha256(data).hexdigest()[:16]
        self.programs: list[ProgramInfo] = self._impl.programs

    @classmethod
    def load(cls, path: str | Path) -> Binary:
        """Reads the binary from a file."""
        return cls(Path(path).read_bytes())

    @property
    def schema_hash(self) -> str:
        """The hash of the schema that the binary was written for."""
        return str(self._impl.schema_hash)

    @property
    def version(self) -> str:
        """The version of the compiler that wrote the binary."""
        return str(self._impl.version)


class Device:
    """An emulated device: a mesh of chips of one architecture ("wormhole_b0" or "blackhole").

    `dram_bank_size` and `l1_bank_size` (bytes per bank) replace the memory sizes of the architecture, for tests.
    `host_memory_size` limits the bytes that the host tensors of one run may take (0: all installed memory).
    `allow_host_code` lets binaries run their machine code for the host: set it only for binaries that you trust.
    `exact` rounds matrix products and some other ops as the matrix unit of a chip does (docs/emulated_device.md).
    `hosts` are the processes that share the mesh. This process then has some of the chips, and calls take the values of
    this process.
    Raises ConfigError for an unknown `arch` and DeviceError for other invalid options.
    """

    hosts: Hosts | None = None

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
        exact: bool = False,
        hosts: Hosts | None = None,
    ) -> None:
        options = _runtime.DeviceOptions()
        options.arch = _arch(arch)
        options.mesh_shape, options.device_ids = two_integers(mesh_shape, "mesh_shape"), list(device_ids)
        options.num_hw_cqs, options.l1_small_size = num_hw_cqs, l1_small_size
        options.dram_bank_size, options.l1_bank_size = dram_bank_size, l1_bank_size
        options.allow_host_code, options.host_memory_size = allow_host_code, host_memory_size
        options.exact = exact
        if hosts:
            options.share(hosts.own[0], len(hosts.own), _gatherer(hosts))
        self._adopt(_runtime.Device(options))
        self.hosts = hosts

    @classmethod
    def shared(cls, arch: str = "wormhole_b0", chip: int = 0) -> Device:
        """The device of this chip that the whole process shares. It is opened at first use and after a close."""
        device = cls.__new__(cls)
        device._adopt(_runtime.Device.shared(_arch(arch), chip))
        return device

    def _adopt(self, impl: Native) -> None:
        self._impl = impl

        # The handles keep the storage alive, but not the tensor object. When the object is freed, its copy on the
        # device is freed, too.
        def make(spec: TensorSpec | MeshSpec | PartSpec, source: torch.Tensor, who: str) -> Native:
            if isinstance(spec, PartSpec):
                return one(spec.spec, source, who, spec.is_first)
            if isinstance(spec, MeshSpec):
                return spec.handles(source, lambda part, first: one(spec.spec, part, who, first))
            return one(spec, source, who)

        def one(spec: TensorSpec, source: torch.Tensor, who: str, counts: bool = True) -> Native:
            return _runtime.Tensor(impl, spec, source, source.untyped_storage(), who, counts)

        def share(spec: TensorSpec | PartSpec, source: torch.Tensor, who: str) -> Native:
            spec = spec.spec if isinstance(spec, PartSpec) else spec
            return _runtime.Tensor.state(impl, spec, source, source.untyped_storage(), who)

        self.residents = Residents(make, share)
        self._executables: weakref.WeakSet[Executable] = weakref.WeakSet()
        devices.add(self)

    @property
    def arch(self) -> str:
        """The architecture of the chips."""
        return str(self._impl.options.arch.name)

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """The rows and columns of the mesh of chips."""
        return tuple(self._impl.options.mesh_shape)

    @property
    def device_ids(self) -> tuple[int, ...]:
        """The numbers of the chips."""
        return tuple(self._impl.options.device_ids)

    @property
    def is_open(self) -> bool:
        """Whether the device has not been closed."""
        return bool(self._impl.is_open)

    def submesh(self, shape: Sequence[int], offset: Sequence[int] = (0, 0)) -> Device:
        """A part of this mesh as a device of its own: `shape` and `offset` are (rows, columns) of chips."""
        part = Device.__new__(Device)
        where = two_integers(shape, "the shape of a submesh"), two_integers(offset, "the offset of a submesh")
        part._adopt(self._impl.submesh(*where))
        return part

    def load(self, binary: bytes, program: int = 0) -> Executable:
        """Plans a program of a binary for this device; `program` is its position in the binary.

        Raises BinaryFormatError, SchemaError and UnsupportedBinaryError.
        """
        return Executable(Binary(binary), program, self)

    def memory_stats(self) -> dict[str, dict[str, Any]]:
        """The memory of one chip: for "dram" and "l1" total, allocated, peak, largest_free, banks, live.

        Sizes are bytes over all banks, but `largest_free` is per bank. `live` is a list of (name, bytes).
        """
        spaces = (_runtime.BufferType.dram, _runtime.BufferType.l1)
        return {space.name: self._impl.memory(space) for space in spaces}

    def free_weights(self) -> None:
        """Frees the memory of the tensors that stay on the device. A later call copies them again."""
        self.residents.clear()

    def unbind(self) -> None:
        """At its next call, each program looks for its weights among the tensors on the device again."""
        for executable in list(self._executables):
            executable._split.bound = None

    def close(self) -> None:
        """Frees all device memory. Executables of this device raise DeviceError from now on."""
        self.residents.clear()
        self._impl.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Executable:
    """A program of a binary, planned for a device. Calling it runs it and returns its results.

    A call takes the program's inputs in order, as tensors on the CPU or on "tt". The inputs at the positions `resident`
    are copied to the device once, and stay there until the tensor changes or dies; all others are copied at every call.
    With `compare_weights`, each call compares every byte of the resident inputs with what was copied. Without it, a few
    writes are missed (docs/weights.md describes them). `output_dtypes`, `output_strides` and `output_devices` have an
    entry per result; None means the default: the program's type, contiguous, on the CPU.

    `caches` are dictionaries of the caller, for constants and for states. The resident inputs of this program leave the
    device when they leave the dictionaries. Without them, the device keeps the inputs.

    `updates` maps the position of a result to the position of an input, if the result is the new value of the input.
    Such an input is a state: the program updates it in its own memory, and returns the tensor itself as this result. An
    input whose memory does not fit the device's data type, or has gaps, is copied like all others, and the result is a
    new tensor.

    A call raises InputCountError, InputShapeError, InputDtypeError, DeviceError, DeviceMemoryError, KernelError,
    ExecutableBusyError and TracingError.
    """

    compare_weights = False
    caches: Caches | None = None
    guarded = False  # whether Dynamo checks the weights before each call; such weights cannot be released
    updates: Mapping[int, int] = MappingProxyType({})

    def __init__(self, binary: Binary, program: int = 0, device: Device | None = None) -> None:
        self.binary, self.device = binary, device or default_device()
        self.program = program
        self._impl = _runtime.Executable(binary._impl, program, self.device._impl)
        info = self._impl.info
        self.inputs: list[TensorSpec] = info.inputs
        self.outputs: list[TensorSpec] = info.outputs
        self._specs: Sequence[TensorSpec | MeshSpec] = self.inputs
        self._placements = [repr(spec) for spec in self.inputs]
        self._results = result_forms(self.outputs)
        self._split = Split(len(self.inputs), ())
        self.device._executables.add(self)

    def __call__(
        self,
        inputs: Sequence[torch.Tensor],
        resident: Collection[int] = (),
        output_dtypes: Sequence[torch.dtype | None] | None = None,
        output_strides: Sequence[tuple[int, ...] | None] | None = None,
        output_devices: Sequence[torch.device] | None = None,
    ) -> list[torch.Tensor]:
        split = self._checked(inputs, resident)
        states = {k: i for k, i in self.updates.items() if can_be_state(inputs[i], self.inputs[i])}
        kept = self._residents(inputs, split, set(states.values())) if split.kept or states else None
        for i in split.passed:
            if residents.is_negated(inputs[i], i):
                inputs = [*inputs[:i], inputs[i].resolve_neg(), *inputs[i + 1 :]]
        given = {k: inputs[i] for k, i in states.items()}
        results = make_results(self._results, output_dtypes, output_strides, output_devices, given)
        try:
            self._impl.run(inputs, kept, results)
        finally:  # a run that fails may have written to a state, too
            if given:
                torch.autograd.graph.increment_version([x for x in given.values() if not x.is_inference()])
        return results

    def _checked(self, inputs: Sequence[torch.Tensor], resident: Collection[int]) -> Split:
        if len(inputs) != len(self.inputs):
            name = self.binary.programs[self.program].name
            raise InputCountError(f"program {name} takes {len(self.inputs)} inputs, got {len(inputs)}")
        if resident is not self._split.resident and frozenset(resident) != self._split.resident:
            self._split = Split(len(self.inputs), resident)
        return self._split

    def _residents(self, inputs: Sequence[torch.Tensor], split: Split, states: Set[int]) -> Native:
        tensors = [inputs[i] for i in split.kept]
        native = split.bound.find(inputs, tensors, states, self.compare_weights) if split.bound else None
        if native is not None:
            return native
        for i in split.kept:
            if not isinstance(inputs[i], torch.Tensor):
                raise residents.no_tensor(inputs[i], i)
        # Inference tensors have no version, so a change would not be seen. They are passed at every call.
        kept = [i for i in split.kept if not inputs[i].is_inference()]
        found = [(i, self._resident(i, inputs[i], i in states)) for i in [*kept, *states]]
        native = _runtime.Residents(len(inputs), [(i, r.handle, r.memory, inputs[i]) for i, r in found])
        written = {i: inputs[i] for i in states}
        split.bound = Bound(native, tensors, written, [r for _, r in found]) if len(kept) == len(tensors) else None
        return native

    def _resident(self, position: int, tensor: torch.Tensor, is_state: bool = False, form: Any = None) -> Resident:
        spec, placement = form or (self._specs[position], self._placements[position])
        known = self.device.residents
        try:
            given = tensor, spec, placement, f"input {position}"
            owner = self.caches[is_state].setdefault(self.device, Kept()) if self.caches else None
            found = known.state(*given, owner) if is_state else known.get(*given, whole=True, owner=owner)
            found.guarded |= self.guarded
            return found
        except RuntimeError as error:  # PyTorch raises it for sparse and other tensors without memory of their own
            reason = str(error).partition("\n")[0]
            raise InputDtypeError(f"input {position}: got a tensor without memory: {reason}") from None

    def set_callback(self, callback: Callable[[str, str, str, str, list[torch.Tensor]], None] | None) -> None:
        """Sets a function that is called after each op: `callback(op, location, debug_info, program, outputs)`.

        While a callback is set, ops are not fused, and `outputs` are copies. An op that changes a tensor in place has
        this tensor as its output. None removes the callback. A callback that is set from inside a callback is used from
        the next call on. A callback that calls the executable itself raises ExecutableBusyError.
        """
        if callback is None:
            self._impl.set_callback(None)
            return

        def forward(op: str, location: str, debug_info: str, program: str, outputs: list[Buffer]) -> None:
            callback(op, location, debug_info, program, [read(output) for output in outputs])

        self._impl.set_callback(forward)

    def memory_stats(self) -> dict[str, int]:
        """`dram_peak` and `l1_peak` of the last run in bytes, and `host_arena`, the host bytes of intermediates."""
        return dict(self._impl.memory)


def _gatherer(hosts: Hosts) -> Callable[[str, Buffer, Buffer], None]:
    """The function that the runtime calls to exchange values with other processes, while a program is called."""

    def gather(op: str, own: Buffer, everything: Buffer) -> None:
        hosts.agree(op)
        write(torch.cat(hosts.gather(read(own))), everything)

    return gather


def _arch(name: str) -> Native:
    known = _runtime.Arch.__members__
    if name not in known:
        raise ConfigError("arch", name, " or ".join(known))
    return known[name]


# Calls a kernel: the op, its arguments as JSON, its location, its operands and its results.
CallKernel: TypeAlias = Callable[[str, str, str, list[Buffer], list[Buffer]], None]


def add_kernel(op: str, kernel: CallKernel) -> None:
    """Registers the kernel of an op of the user, for the programs that are loaded from now on.

    Raises ArgumentError if the name `op` is empty or has other characters than letters, digits and _:.
    """
    _runtime.register_kernel(op, kernel)


devices: weakref.WeakSet[Device] = weakref.WeakSet()
_default: dict[tuple[str, int], Device] = {}
_default_lock = threading.Lock()


def default_device(arch: str = "wormhole_b0", chip: int = 0) -> Device:
    """The device of this chip that the whole process shares. It is opened at first use and closed at exit."""
    key = arch, chip
    with _default_lock:
        if key not in _default or not _default[key].is_open:
            _default[key] = Device.shared(arch, chip)
        return _default[key]


@atexit.register
def _close_default_devices() -> None:
    for device in _default.values():
        device.close()

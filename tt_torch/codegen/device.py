"""A device that Tenstorrent's `ttnn` package drives. It takes the place of the emulated device.

It turns each binary into the Python program that `tt-torch codegen` writes, and runs this program in this process or
in a worker.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import math
import os
import threading
import warnings
import weakref
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any

import torch

from tt_torch import runtime
from tt_torch.codegen.arrays import to_array
from tt_torch.codegen.client import TIMEOUT
from tt_torch.codegen.links import MOCK, Part, connect
from tt_torch.codegen.program import Tensor, from_message, whole
from tt_torch.codegen.recordings import unrecorded
from tt_torch.codegen.session import Key, Session
from tt_torch.codegen.source import place
from tt_torch.codegen.ttnn_worker.messages import Values
from tt_torch.errors import (
    DeviceError,
    InputCountError,
    InputDtypeError,
    InputShapeError,
)
from tt_torch.runtime.buffers import make_results, result_forms
from tt_torch.runtime.mesh import Given, Sharding, two_integers
from tt_torch.runtime.residents import Kept
from tt_torch.wire.decode import decode


@cache
def count_chips(python: str, timeout: float) -> int:
    """The number of chips that the package finds. It is cached, because asking takes a second."""
    link = connect(python, timeout)
    try:
        return link.ask("chips")
    finally:
        link.close()


class TtnnDevice:
    """A mesh of chips, which is opened at first use. A replaced worker gets programs and tensors again.

    `arch` is the architecture that programs are compiled for; a device of another one raises DeviceError. All chips of
    a mesh compute the same, except in a program for this mesh. A program for a mesh needs `fabric`: it lets chips
    exchange values in their row or column. `python` and `timeout` (seconds without an answer) are passed to `connect`.
    `l1_small_size` is a number of bytes in each core's L1. Programs run on the first of `num_hw_cqs` command queues.
    With `enable_trace`, the second call of a program records it on the device and later calls replay the recording,
    which takes up to `trace_region_size` bytes of device memory.
    """

    _number = 0  # the whole mesh; its parts have numbers from 1

    def __init__(
        self,
        arch: str = "wormhole_b0",
        mesh_shape: Sequence[int] = (1, 1),
        device_ids: Sequence[int] = (),
        num_hw_cqs: int = 1,
        l1_small_size: int = 1 << 15,
        enable_program_cache: bool = True,
        python: str = "",
        timeout: float = TIMEOUT,
        enable_trace: bool = False,
        trace_region_size: int = 0,
        fabric: bool = False,
    ) -> None:
        if enable_trace and not enable_program_cache:
            raise DeviceError("enable_trace needs enable_program_cache: kernels cannot be loaded into a trace")
        self.arch, self.device_ids = arch, tuple(device_ids)
        self.mesh_shape = tuple(two_integers(mesh_shape, "mesh_shape"))
        self.enable_trace, self.fabric = enable_trace, fabric
        self._python, self._timeout = python, timeout
        self._options = {
            "mesh_shape": self.mesh_shape,
            "physical_device_ids": list(device_ids),
            "num_command_queues": num_hw_cqs,
            "l1_small_size": l1_small_size,
            "program_cache": enable_program_cache,
            "enable_trace": enable_trace,
            "trace_region_size": trace_region_size,
            "fabric": fabric,
        }
        self._lock = threading.RLock()
        self._session: Session | None = None
        self._closed = False
        _devices.add(self)

    @property
    def is_open(self) -> bool:
        return not self._closed

    def load(
        self,
        binary: bytes,
        input_shardings: Sequence[Sharding] | None = None,
        output_shardings: Sequence[Sharding] | None = None,
        each: Collection[int] = (),
    ) -> TtnnExecutable:
        """Loads the first program of a binary. The shardings, and `each`, say how inputs and results of a program for a
        mesh lie on the chips, as in a MeshExecutable. Raises UnsupportedBinaryError for ops without a row in
        calls.py."""
        return TtnnExecutable(binary, self, input_shardings, output_shardings, each)

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """The open device, locked for this thread: each answer overwrites the arrays of the answer before it."""
        with self._lock:
            if self._closed:
                raise DeviceError("the ttnn device was closed; open another one to run programs")
            if self._session is None or not self._session.link.alive:
                self._end()
                self._session = self._open()
            try:
                yield self._session
            finally:
                if not self._session.link.alive:
                    self._end()

    def _open(self) -> Session:
        if self.enable_trace and os.environ.get(MOCK):
            raise DeviceError(
                f"enable_trace needs hardware: {MOCK} describes a mock device, where the library crashes in a trace"
            )
        session = Session(connect(self._python, self._timeout))
        try:
            arch = session.ask("open", self._options)
            if arch != self.arch:
                raise DeviceError(
                    f"the device is a {arch}, but the program is for {self.arch}; compile with the option arch={arch!r}"
                )
        except BaseException:
            session.close()
            raise
        if os.environ.get(MOCK):
            warnings.warn(
                f"{MOCK} is set, so programs run on a mock device: it computes nothing, all results are zeros. "
                "Unset it to use hardware",
                stacklevel=2,
            )
        return session

    def submesh(self, shape: Sequence[int], offset: Sequence[int] = (0, 0)) -> TtnnDevice:
        """A part of this mesh as a device of its own: `shape` and `offset` are (rows, columns) of chips."""
        where = two_integers(shape, "the shape of a submesh"), two_integers(offset, "the offset of a submesh")
        return _Submesh(self, *where)

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def statistics(self) -> dict[str, int]:
        """Counts: `programs` on the device, their `traces`, `kept` tensors, and kernel programs `cached` by ttnn."""
        with self.session() as session:
            return session.ask("statistics")

    def free_weights(self) -> None:
        """Frees the memory of the tensors that stay on the device. A later call sends them again."""
        with self._lock:
            if self._session is not None:
                self._session.free_weights()

    def close(self) -> None:
        """Closes the device. Its programs raise DeviceError from now on."""
        with self._lock:
            self._closed = True
            self._end()

    def __enter__(self) -> TtnnDevice:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Submesh(TtnnDevice):
    """A part of a mesh. It is opened in the worker of the whole mesh, and again if that worker was replaced."""

    _numbers = itertools.count(1)

    def __init__(self, whole: TtnnDevice, shape: Sequence[int], offset: Sequence[int]) -> None:
        super().__init__(whole.arch, shape, enable_trace=whole.enable_trace, fabric=whole.fabric)
        self._whole, self._offset, self._number = whole, list(offset), next(self._numbers)
        self._lock = whole._lock  # both get their answers through the same memory
        with self.session():
            pass

    def _open(self) -> Session:
        with self._whole.session() as whole:
            of = self._whole._number
            asked = {"part": self._number, "of": of, "shape": list(self.mesh_shape), "offset": self._offset}
            whole.link.ask("submesh", asked)
            return Session(Part(whole.link, self._number))


class TtnnExecutable:
    """The first program of a binary on a ttnn device. It is called like the emulated device's Executable, or like its
    MeshExecutable if it is for a mesh: with whole tensors, or with lists that have the value of each chip.

    Raises DeviceError if the program is for a mesh with another shape than the device's, or the device has no fabric.
    """

    compare_weights = False
    caches: runtime.Caches | None = None
    guarded = False

    def __init__(
        self,
        binary: bytes,
        device: TtnnDevice,
        input_shardings: Sequence[Sharding] | None = None,
        output_shardings: Sequence[Sharding] | None = None,
        each: Collection[int] = (),
    ) -> None:
        # The device makes recordings of its own. A recording must not outlive a change of what stays on the device.
        message = unrecorded(decode(binary))
        self.device, self.program = device, from_message(message, input_shardings, output_shardings)
        self.each = sorted(each)
        mesh = self.program.mesh_shape
        _check_mesh(mesh, device)
        described = runtime.Binary(binary).programs[0]
        self.inputs: list[runtime.TensorSpec] = described.inputs
        self.outputs: list[runtime.TensorSpec] = described.outputs
        forms = zip(result_forms(self.outputs), self.program.output_shardings, strict=True)
        self._results = [(whole(shape, sharding, mesh), dtype) for (shape, dtype), sharding in forms]
        if device.enable_trace and (needs := self.program.needs_host):
            warnings.warn(
                f"enable_trace has no effect on this program, because it needs the host in each call: {needs[0].op} "
                f"{place(needs[0].location)}",
                stacklevel=3,
            )
        with device.session() as session:
            session.load(self)

    def __call__(
        self,
        inputs: Sequence[Given],
        resident: Collection[int] = (),
        output_dtypes: Sequence[torch.dtype | None] | None = None,
        output_strides: Sequence[tuple[int, ...] | None] | None = None,
        output_devices: Sequence[torch.device] | None = None,
    ) -> list[Any]:
        described, forms = self.program.main.inputs, (output_dtypes, output_strides, output_devices)
        if len(inputs) != len(described):
            raise InputCountError(f"program {self.program.main.name} takes {len(described)} inputs, got {len(inputs)}")
        results: list[Any] = list(make_results(self._results, *forms))
        for _ in range(math.prod(self.program.mesh_shape) if self.each else 0):
            for i, made in enumerate(make_results(self._results, *forms)):
                if i in self.each:
                    results[i] = [*(results[i] if isinstance(results[i], list) else ()), made]
        with self.device.session() as session:
            arguments = [
                self._argument(session, tensor, value, i, i in resident)
                for i, (tensor, value) in enumerate(zip(described, inputs, strict=True))
            ]
            for result, values in zip(results, session.run(self, arguments), strict=True):
                pairs = zip(result, values, strict=True) if isinstance(result, list) else [(result, values)]
                for one, array in pairs:
                    one.copy_(torch.from_numpy(array))
        return results

    def _argument(self, session: Session, described: Tensor, value: Given, position: int, stays: bool) -> Key | Values:
        who = f"input {position}"
        if isinstance(value, (list, tuple)):
            return self._of_chips(session, described, value, who, stays)
        tensor = _required(value, described.whole(self.program.mesh_shape), who)
        if stays and not tensor.is_inference():  # they have no version, so a change would not be seen
            return session.kept(described, tensor, who, self.compare_weights, self._owner())
        return to_array(described, tensor, who)

    def _of_chips(
        self, session: Session, described: Tensor, values: Sequence[torch.Tensor], who: str, stays: bool
    ) -> Key | Values:
        """An input that has a value per chip."""
        if len(values) != (chips := math.prod(self.program.mesh_shape)):
            raise InputCountError(f"{who}: got the values of {len(values)} chips, and the mesh has {chips}")
        for value in values:
            _required(value, described.shape, who)
        if stays and not any(value.is_inference() for value in values):
            return session.kept_of_chips(described, values, who, self.compare_weights, self._owner())
        return [to_array(described, value, who) for value in values]

    def _owner(self) -> Kept | None:
        return self.caches[0].setdefault(self.device, Kept()) if self.caches else None


def _required(value: object, shape: list[int], who: str) -> torch.Tensor:
    """The tensor, if it has this shape."""
    if not isinstance(value, torch.Tensor):
        raise InputDtypeError(f"{who}: got {type(value).__name__}, expected a tensor")
    if list(value.shape) != shape:
        raise InputShapeError(f"{who}: got shape {list(value.shape)}, expected {shape}")
    return value


def _check_mesh(mesh: tuple[int, int], device: TtnnDevice) -> None:
    if math.prod(mesh) == 1:
        return
    names = ["x".join(map(str, shape)) for shape in (mesh, device.mesh_shape)]
    if mesh != device.mesh_shape:
        raise DeviceError(f"the program is for a mesh of {names[0]} chips, and the device is a mesh of {names[1]}")
    if not device.fabric:
        raise DeviceError(f"the program is for a mesh of {names[0]} chips, and the device was made without fabric=True")


_devices: weakref.WeakSet[TtnnDevice] = weakref.WeakSet()


@atexit.register
def _close_devices() -> None:
    for device in list(_devices):
        device.close()

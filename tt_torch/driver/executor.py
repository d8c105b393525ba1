"""Runs a compiled program on a device, with weights resident and PyTorch's own output types.

This imports no compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tt_torch import runtime
from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import Device, Program
from tt_torch.driver.offered import offered
from tt_torch.errors import DeviceError, InexactError
from tt_torch.runtime.mesh import Shardings

KEPT = ("parameter", "constant")  # the roles of inputs that are copied to the device once


def eager_device() -> torch.device:
    """The device "tt". It is loaded here, because TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps PyTorch from loading it."""
    import tt_torch.device  # noqa: F401

    return torch.device("tt")


@dataclass
class CompiledProgram:
    """A binary, and what a call of it needs."""

    binary: bytes
    constants: list[torch.Tensor]  # the program's last inputs
    kinds: list[str]  # role of each input: input, state, parameter or constant
    output_dtypes: list[torch.dtype]
    output_strides: list[tuple[int, ...] | None] | None  # None for contiguous results; None if all are
    output_devices: list[torch.device] | None = None  # None when all are on the CPU
    compare_weights: bool = False  # the option of this name
    updates: dict[int, int] = field(default_factory=dict)  # for a result that is the new value of an input: this input
    is_for_mesh: bool = False  # whether several chips run it
    shardings: Shardings | None = None  # how whole inputs and results lie on several chips


class Executor:
    """A compiled program on a device: takes the graph's inputs in order, returns its outputs as a list."""

    def __init__(self, compiled: CompiledProgram, device: Device) -> None:
        self.compiled, self.device = compiled, device
        self.executable = self._load()
        self.executable.compare_weights = compiled.compare_weights
        self.executable.guarded = True  # a compilation that Dynamo does not call sets it to False
        self.executable.updates = compiled.updates
        self.last_arguments: list[torch.Tensor] | None = None  # kept while `keep_arguments` is set
        self.keep_arguments = False
        self.resident = frozenset(i for i, kind in enumerate(compiled.kinds) if kind in KEPT)

    def _load(self) -> Program:
        """The program on the device. A program for several chips takes and returns whole tensors."""
        program: Program = self._loaded(*(self.compiled.shardings or ()))
        return program

    def _loaded(self, *on_mesh: Any, **each: Any) -> Any:
        """The program on the device. The arguments say how the chips of a mesh have its inputs and results, as those of
        a MeshExecutable do."""
        device: Any = self.device
        if not isinstance(device, runtime.Device):
            return device.load(self.compiled.binary, *on_mesh, **each)
        binary = runtime.Binary(self.compiled.binary)
        if math.prod(binary.programs[0].mesh_shape) > 1:
            from tt_torch.runtime.mesh_executable import MeshExecutable

            return MeshExecutable(binary, 0, device, *on_mesh, **each)
        return runtime.Executable(binary, 0, device)

    def kept_in(self, caches: runtime.Caches) -> Executor:
        """Lets dictionaries of the user keep the tensors that stay on the device."""
        self.executable.caches = caches
        return self

    @property
    def watched(self) -> runtime.Executable:
        """The program with its callback after each op. Raises DeviceError if the device has no such callback."""
        if not isinstance(self.executable, runtime.Executable):
            raise DeviceError("single ops can be watched only on the emulated device; unset TT_TORCH_DEVICE")
        return self.executable

    @property
    def binary(self) -> bytes:
        return self.compiled.binary

    @property
    def kinds(self) -> list[str]:
        """The roles of the inputs."""
        return self.compiled.kinds

    def return_on_device(self, position: int) -> None:
        """Lets a result stay on the device."""
        compiled = self.compiled
        devices = compiled.output_devices or [torch.device("cpu")] * len(compiled.output_dtypes)
        compiled.output_devices = [*devices[:position], eager_device(), *devices[position + 1 :]]

    def arguments_of(self, call: Callable[[], object]) -> list[torch.Tensor]:
        """The inputs of the program, weights included, in a call that runs it.

        Raises InexactError for a call that runs in eager PyTorch.
        """
        self.keep_arguments = True
        try:
            call()
            if self.last_arguments is None:
                raise InexactError("this call runs in eager PyTorch, and not the program; a warning says why")
            return self.last_arguments
        finally:
            self.keep_arguments, self.last_arguments = False, None

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        arguments = [*inputs, *self.compiled.constants]
        if self.keep_arguments:
            self.last_arguments = arguments
        compiled = self.compiled
        forms = compiled.output_dtypes, compiled.output_strides, compiled.output_devices
        return self.executable(arguments, self.resident, *forms)


def of_file(compiled: CompiledProgram, device: Device, config: CompilerConfig) -> Executor:
    """The executor of a program that comes from a file. With the option `profile`, its calls are recorded."""
    if not config.profile:
        return Executor(compiled, device)
    executor: Executor = offered("profiling of files")(compiled, device, config)
    return executor

"""The device that runs programs: the emulated one, or one that Tenstorrent's library drives.

Both have the same interface: `load(binary)` gives a program, `program(inputs, resident, ...)` runs it, and `close()`
frees the device.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from tt_torch import runtime
from tt_torch.config import CompilerConfig


class Program(Protocol):
    """The interface of a loaded program that an executor uses; `runtime.Executable` describes the arguments."""

    inputs: list[runtime.TensorSpec]
    outputs: list[runtime.TensorSpec]
    compare_weights: bool

    def __call__(
        self,
        inputs: Sequence[torch.Tensor],
        resident: frozenset[int] = ...,
        output_dtypes: Sequence[torch.dtype | None] | None = ...,
        output_strides: Sequence[tuple[int, ...] | None] | None = ...,
        output_devices: Sequence[torch.device] | None = ...,
    ) -> list[torch.Tensor]: ...


class Device(Protocol):
    """The interface of a device that an executor uses."""

    def load(self, binary: bytes) -> Program:
        """The first program of a binary. Raises what `tt_torch.load` raises."""

    def free_weights(self) -> None:
        """Frees the device memory of tensors that stay on the device. A later call copies them again."""

    def close(self) -> None: ...


EMULATED_CHIPS = 8  # as in a workstation with four boards of two chips each
_shared: dict[tuple[object, ...], Any] = {}
_lock = threading.Lock()


def default_device(config: CompilerConfig, chip: int = 0) -> Any:
    """The device of `config` that the whole process shares. It is opened at first use and closed at exit.

    `chip` is the index of the device `tt:<chip>` of the tensors. Only the emulated device has several of them.
    """
    if config.device == "emulated":
        return runtime.default_device(config.arch, chip)
    key = tuple(_facts(config).values())
    with _lock:
        if key not in _shared or not _shared[key].is_open:
            _shared[key] = open_device(config, config.mesh_shape)
        return _shared[key]


def open_device(
    config: CompilerConfig, mesh_shape: Sequence[int], enable_program_cache: bool = True, **options: Any
) -> Any:
    """Opens a new mesh of the kind that `config` names: a runtime.Device or a TtnnDevice, with these `options`."""
    if config.device == "emulated":  # it always caches programs
        return runtime.Device(config.arch, mesh_shape, **options)
    from tt_torch.codegen.device import TtnnDevice

    return TtnnDevice(mesh_shape=mesh_shape, enable_program_cache=enable_program_cache, **_facts(config), **options)


def _facts(config: CompilerConfig) -> dict[str, Any]:
    """The arguments of TtnnDevice that come from a configuration."""
    return {
        "arch": config.arch,
        "python": config.ttnn_python,
        "timeout": config.device_timeout,
        "enable_trace": config.enable_trace,
        "trace_region_size": config.trace_region_size,
    }


def available_chips(config: CompilerConfig) -> int:
    """How many chips a mesh can have."""
    if config.device == "emulated":
        return EMULATED_CHIPS
    from tt_torch.codegen.device import count_chips

    return count_chips(config.ttnn_python, config.device_timeout)

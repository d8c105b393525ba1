"""The device that runs programs: the emulated one, or one that Tenstorrent's library drives.

Both have the same interface: `load(binary)` gives a program, `program(inputs, resident, ...)` runs it, and `close()`
frees the device.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

import torch
from torch.fx import GraphModule

from tt_torch import runtime
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.errors import ConfigError, DeviceError
from tt_torch.torch_private.distributed import one_process


class Program(Protocol):
    """The interface of a loaded program that an executor uses; `runtime.Executable` describes the arguments."""

    inputs: list[runtime.TensorSpec]
    outputs: list[runtime.TensorSpec]
    compare_weights: bool
    guarded: bool  # whether Dynamo looks at the weights before each call
    caches: runtime.Caches | None  # what keeps the resident inputs; None stands for the device
    updates: Mapping[int, int]  # a device without states ignores it: each result is then a new tensor

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

    def close(self) -> None: ...


EMULATED_CHIPS = 8  # as in a workstation with four boards of two chips each
_shared: dict[tuple[object, ...], Any] = {}
_lock = threading.Lock()


def default_device(config: CompilerConfig, number: int = 0) -> Device:
    """The device of `config` that the whole process shares. It is opened at first use and closed at exit.

    For a program of one chip, `number` is the index of the device `tt:<number>` of the tensors. For a program of a
    mesh, it is the number of a part of the chips. Only the emulated device has several of them.
    """
    if config.device == "emulated" and math.prod(config.mesh_shape) == 1:
        return runtime.default_device(config.arch, number)
    hosts = _hosts(config)
    if hosts and config.device != "emulated":
        raise DeviceError(f"several processes share the mesh, and device={config.device!r} opens only a whole mesh")
    key = *_facts(config).values(), config.mesh_shape, number, hosts
    with _lock:
        if key not in _shared or not _shared[key].is_open:
            count = math.prod(config.mesh_shape)
            given: dict[str, Any] = {"device_ids": range(number * count, (number + 1) * count)} if number else {}
            _shared[key] = open_device(config, config.mesh_shape, **given, **({"hosts": hosts} if hosts else {}))
        shared: Device = _shared[key]
        return shared


def _hosts(config: CompilerConfig) -> Any:
    """The processes that share the mesh of a program, or None."""
    door = one_process()
    return door.hosts() if door and math.prod(config.mesh_shape) > 1 else None


def open_device(
    config: CompilerConfig, mesh_shape: Sequence[int], enable_program_cache: bool = True, **options: Any
) -> Any:
    """Opens a new mesh of the kind that `config` names: a runtime.Device or a TtnnDevice, with these `options`."""
    if config.device == "emulated":
        if not enable_program_cache:
            raise ConfigError("enable_program_cache", False, "True, because emulated chips always keep programs")
        if options.get("num_hw_cqs", 1) != 1:
            accepted = "1, because emulated chips have one command queue"
            raise ConfigError("num_hw_cqs", options["num_hw_cqs"], accepted)
        return runtime.Device(config.arch, mesh_shape, **options)
    from tt_torch.codegen.device import TtnnDevice

    fabric = math.prod(mesh_shape) > 1  # else the chips of the mesh could not exchange values
    return TtnnDevice(
        mesh_shape=mesh_shape, enable_program_cache=enable_program_cache, fabric=fabric, **_facts(config), **options
    )


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


def devices_of(program: GraphModule, options: BackendOptions) -> dict[int, Device]:
    """The device of each stage of a program by its number in `device_map`.

    Without `device_map` there is one stage, number 0, on the device that the options name, or on the chip on which
    the program's tensors are. Raises DeviceError if the tensors are elsewhere.
    """
    (output,) = (n for n in program.graph.nodes if n.op == "output")
    border = [*(n for n in program.graph.nodes if n.op == "placeholder"), *output.args[0]]
    return devices_at({n.meta["val"].device for n in border if n.meta["val"].device.type == "tt"}, options)


def devices_at(places: Set[torch.device], options: BackendOptions) -> dict[int, Device]:
    """The devices of a program whose tensors are on these chips, or on the CPU: see devices_of.

    All chips of a mesh have their tensors on one device of PyTorch. It does not matter which device this is.
    """
    names = " and ".join(sorted(map(str, places)))
    config = options.compiler_config
    is_mesh = math.prod(config.mesh_shape) > 1
    if config.device_map and places and not is_mesh:
        raise DeviceError(f"device_map takes tensors of the CPU to its chips, but this program has tensors on {names}")
    if len(places) > 1:
        raise DeviceError(f"a program runs on one chip, but this one has tensors on {names}; move them to one device")
    numbers = sorted({chip for _, chip in config.device_map} or {0})
    is_elsewhere = not config.device_map and not is_mesh
    chips = [next((place.index for place in places), 0)] if is_elsewhere else numbers
    if any(device is not None for device in options.devices):
        if _hosts(config):
            raise DeviceError("several processes share the mesh, and each has its default device; leave `devices` out")
        devices = _given(numbers, options.devices, config.mesh_shape)
        if places and not is_mesh and isinstance(devices[0], runtime.Device) and chips[0] not in devices[0].device_ids:
            ids = devices[0].device_ids
            raise DeviceError(f"the program's tensors are on {names}, but `devices` has only the chips {ids}")
    else:
        devices = {number: _default(config, chip) for number, chip in zip(numbers, chips, strict=True)}
    return devices


def _given(numbers: Sequence[int], devices: Sequence[Any], mesh_shape: tuple[int, int]) -> dict[int, Device]:
    """The devices that a user gives, by the numbers of `device_map`. Each of them must be used, and fit the program."""
    if numbers != list(range(len(devices))):
        used = ", ".join(map(str, numbers))
        raise DeviceError(
            f"`devices` has {len(devices)}, but the numbers that device_map uses are {used} (0 without it)"
        )
    for i, device in enumerate(devices):
        if tuple(device.mesh_shape) != mesh_shape:
            part = f"`mesh.submesh({mesh_shape}, (row, column))` cuts such a part out of a mesh"
            what = f"devices[{i}] is a mesh of {tuple(device.mesh_shape)}, and the program is for one of {mesh_shape}"
            raise DeviceError(f"{what}; {part}")
    return dict(enumerate(devices))


def _default(config: CompilerConfig, number: int) -> Device:
    """The device of a number in `device_map`: a chip, or as many chips as the program's mesh has."""
    if number and config.device != "emulated":
        raise DeviceError(f"device_map on {config.device!r} needs BackendOptions(devices=[...]), one device per number")
    count = math.prod(config.mesh_shape)
    if config.device_map and (number + 1) * count > EMULATED_CHIPS:
        of = "the chip" if count == 1 else f"the part of {count} chips with the number"
        raise DeviceError(f"device_map names {of} {number}, but there are {EMULATED_CHIPS} chips")
    return default_device(config, number)

"""Gives up the host's memory of weights that a device has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch

from tt_torch import runtime
from tt_torch.errors import ReleaseError
from tt_torch.runtime.residents import Resident
from tt_torch.torch_private.released import ReleasedWeight, release_memory

GUARDED = "torch.compile, which looks at the weights before each call; make the program with tt_torch.compile_model"


class HasParameters(Protocol):
    """A module, or a model that `compile_model` has made of one."""

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]: ...


def release(model: HasParameters) -> int:
    """Gives up the memory of the parameters that programs have on the emulated device. Returns the number of bytes.

    The programs that have run go on to run. All else that needs the values raises ReleasedWeightError, which names the
    parameter. Parameters of integers, those that no program uses, and those that a program updates stay as they are. A
    module that was released before stays so. Raises ReleaseError, and releases nothing, if no device has a parameter
    of the model, or if one was changed after the last call.
    """
    devices = [device for device in list(runtime.devices) if device.is_open]
    given = [(name, p) for name, p in model.named_parameters() if p.is_floating_point()]
    found = {name: [entry for device in devices for entry in device.residents.of(p)] for name, p in given}
    if not any(found.values()):
        raise ReleaseError(
            "no program has a weight of this model on the emulated device; call the compiled model first"
        )
    chosen = [(name, p) for name, p in given if found[name] and not isinstance(p, ReleasedWeight)]
    chosen = [(name, p) for name, p in chosen if not any(entry.is_state for entry in found[name])]
    for name, parameter in chosen:
        if any(entry.guarded for entry in found[name]):
            raise ReleaseError(f"{name} is a weight of a program of {GUARDED}")
        if not all(entry.is_current(parameter, whole=True) for entry in found[name]):
            raise ReleaseError(f"{name} was changed after the last call of a program; call the compiled model first")
    for device in devices:
        device.unbind()
    return sum(_release(name, parameter, found[name]) for name, parameter in chosen)


def _release(name: str, parameter: torch.nn.Parameter, entries: list[Resident]) -> int:
    size = parameter.nbytes
    for entry in entries:
        entry.memory = None  # the fingerprint, which would read the memory again
    release_memory(parameter, name)
    for entry in entries:
        for handle in entry.handles:
            handle.release(name)
    return size

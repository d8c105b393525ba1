"""Gives up the host's memory of weights that a device has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch

from tt_torch import runtime
from tt_torch.errors import ReleaseError
from tt_torch.runtime.residents import Resident
from tt_torch.torch_private.distributed import one_process
from tt_torch.torch_private.released import ReleasedWeight, release_memory

GUARDED = "torch.compile, which looks at the weights before each call; make the program with tt_torch.compile_model"


class HasParameters(Protocol):
    """A module, or a model that `compile_model` has made of one."""

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]: ...


def release(model: HasParameters) -> int:
    """Gives up the memory of the parameters that programs have on the emulated device. Returns the number of bytes.

    Programs that have run before can still run. Everything else that needs the values raises ReleasedWeightError, which
    names the parameter. A parameter stays as it is if it has integers, if no program uses it, or if a program updates
    it. A module that was released before stays released. Raises ReleaseError if no device has a
    parameter of the model, if a parameter was changed after the last call, or if torch.compile made the program. Then
    nothing is released.
    """
    devices = [device for device in list(runtime.devices) if device.is_open]
    given = [
        (name, memory) for name, p in model.named_parameters() if p.is_floating_point() for memory in parts_of_weight(p)
    ]
    found = [(name, x, [entry for device in devices for entry in device.residents.of(x)]) for name, x in given]
    if not any(entries for *_, entries in found):
        raise ReleaseError(
            "no program has a weight of this model on the emulated device; call the compiled model first"
        )
    kept = {name for name, _, entries in found if not entries or any(entry.is_state for entry in entries)}
    chosen = [one for one in found if one[0] not in kept and not isinstance(one[1], ReleasedWeight)]
    for name, x, entries in chosen:
        if any(entry.guarded for entry in entries):
            raise ReleaseError(f"{name} is a weight of a program of {GUARDED}")
        if not all(entry.is_current(x, whole=True) for entry in entries):
            raise ReleaseError(f"{name} was changed after the last call of a program; call the compiled model first")
    for device in devices:
        for _, x, _ in chosen:
            device.residents.keep(x)  # no other memory has the values
        device.unbind()
    return sum(_release(*one) for one in chosen)


def parts_of_weight(parameter: torch.Tensor) -> Sequence[torch.Tensor]:
    """The tensors that have the values of a weight: the weight itself, or the parts of a DTensor."""
    door = one_process()
    return door.parts_of_chips(parameter) if door and isinstance(parameter, door.DTensor) else [parameter]


def _release(name: str, x: torch.Tensor, entries: list[Resident]) -> int:
    size = x.nbytes
    for entry in entries:
        entry.memory = None  # the fingerprint, which would read the memory again
    release_memory(x, name)
    for entry in entries:
        for handle in entry.handles:
            handle.release(name)
    return size

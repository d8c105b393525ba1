"""Recognises tensors that are already on a device, and finds out whether they have changed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, TypeAlias

import torch

from tt_torch.errors import InputDtypeError, ReleasedWeightError
from tt_torch.runtime import _runtime, fused_steps
from tt_torch.torch_private.released import ReleasedWeight
from tt_torch.torch_private.tensors import version

Native: TypeAlias = Any  # an object of the C++ library, whose classes have no type hints

Make: TypeAlias = Callable[[_runtime.TensorSpec, torch.Tensor, str], Native]
# The dtypes whose memory is the same on the host and on the emulated device.
SHARED = {
    torch.float32: _runtime.DataType.Float32, torch.bfloat16: _runtime.DataType.BFloat16,
    torch.int32: _runtime.DataType.Int32, torch.uint8: _runtime.DataType.UInt8,
}  # fmt: skip


def can_be_state(tensor: torch.Tensor, spec: _runtime.TensorSpec) -> bool:
    """Whether the device can update the tensor in its own memory, as an input with this `spec`."""
    plain = isinstance(tensor, torch.Tensor) and tensor.is_contiguous() and not tensor.is_neg()
    return plain and SHARED.get(tensor.dtype) == spec.dtype and list(tensor.shape) == spec.shape


def is_negated(tensor: object, position: int) -> bool:
    """True if the values are the negatives of the values in memory, as in lazy views of complex numbers.

    Raises InputDtypeError if `tensor` is no tensor, and ReleasedWeightError for a released weight.
    """
    if not isinstance(tensor, torch.Tensor):
        raise no_tensor(tensor, position)
    if isinstance(tensor, ReleasedWeight):
        raise ReleasedWeightError(f"input {position} is copied at each call, and {tensor.tt_released} was released")
    return tensor.is_neg()


def no_tensor(value: object, position: int) -> InputDtypeError:
    """The error for an input that is no tensor."""
    return InputDtypeError(f"input {position}: got {type(value).__name__}, expected a tensor")


class Resident:
    """A tensor that is kept on a device: its `handle` there, and a fingerprint of the `memory` that was copied.

    A state has no fingerprint, because it shares its memory with the device, and a released weight has none, because
    nobody can write to it.
    """

    def __init__(
        self, tensor: torch.Tensor, memory: Native | None, handle: Native, died: Callable[[object], object]
    ) -> None:
        self._tensor = weakref.ref(tensor, died)
        self._data = None if self.is_released else tensor.data_ptr()
        self._version = version(tensor) if memory or self.is_released else None
        self.memory, self.handle = memory, handle
        self.guarded = False  # whether Dynamo guards the weights of a program that has it

    @property
    def is_state(self) -> bool:
        return self._version is None

    @property
    def is_released(self) -> bool:
        return isinstance(self._tensor(), ReleasedWeight)

    @property
    def handles(self) -> list[Native]:
        """The handle of each chip of a mesh, or the only one."""
        return self.handle if isinstance(self.handle, list) else [self.handle]

    def is_of(self, tensor: torch.Tensor) -> bool:
        return self._tensor() is tensor

    def is_current(self, tensor: torch.Tensor, whole: bool) -> bool:
        """Whether this is the tensor, and the device has its values; `whole` compares all of them."""
        if self._tensor() is not tensor:
            return False
        if isinstance(tensor, ReleasedWeight):
            return True  # nobody can write to it
        if self._data != tensor.data_ptr():
            return False
        return self.memory is None or (self._version == version(tensor) and self.memory.same(whole))


class Residents:
    """Tensors that are kept on a device. They are recognised by their identity, memory, version, values and placement.

    `make(spec, tensor, who)` puts a tensor on the device and returns its handle; `share` does the same for a state,
    which programs update in the tensor's own memory. The handle is dropped when the tensor dies or changes.
    """

    def __init__(self, make: Make, share: Make | None = None) -> None:
        self._make, self._share = make, share
        self._entries: dict[tuple[int, str], Resident] = {}

    def get(self, tensor: torch.Tensor, spec: _runtime.TensorSpec, placement: str, who: str, whole: bool) -> Resident:
        """The tensor on the device, which is copied there if necessary. `whole` compares all values with the copy."""
        key = (id(tensor), placement)
        entry = self._entries.get(key)
        if entry and entry.is_current(tensor, whole):
            return entry
        if isinstance(tensor, ReleasedWeight):
            return self._released(key, tensor, spec, who)
        memory = _runtime.Fingerprint(tensor, who)  # made before the copy, so that a write in between is found
        source = tensor.resolve_neg() if tensor.is_neg() else tensor
        handle = self._make(spec, source, who)
        fused_steps.watch(tensor)
        return self._keep(key, tensor, memory, handle)

    def _released(self, key: tuple[int, str], weight: ReleasedWeight, spec: _runtime.TensorSpec, who: str) -> Resident:
        """A weight without values in memory, which the device gets from its source."""
        source = weight.tt_source
        if source is None:
            raise ReleasedWeightError(f"{who} is {weight.tt_released}, which was released, and this device lacks it")
        return self._keep(key, weight, None, self._make(spec, source, who))  # nobody can write to the weight

    def state(self, tensor: torch.Tensor, spec: _runtime.TensorSpec, placement: str, who: str) -> Resident:
        """The tensor as a state: programs write to its memory. `can_be_state` must hold for it."""
        assert self._share, "this device has no states"
        key = (id(tensor), f"state {placement}")
        entry = self._entries.get(key)
        if entry and entry.is_current(tensor, whole=False):
            return entry
        handle = self._share(spec, tensor, who)
        return self._keep(key, tensor, None, handle)

    def _keep(self, key: tuple[int, str], tensor: torch.Tensor, memory: Native | None, handle: Native) -> Resident:
        self._entries[key] = entry = Resident(tensor, memory, handle, lambda _: self._entries.pop(key, None))
        return entry

    def of(self, tensor: torch.Tensor) -> list[Resident]:
        """The forms in which the tensor is on the device."""
        found = [entry for (number, _), entry in self._entries.items() if number == id(tensor)]
        return [entry for entry in found if entry.is_of(tensor)]

    def clear(self) -> None:
        """Drops all tensors except released weights, because only the device has their values."""
        kept = {key: entry for key, entry in self._entries.items() if entry.is_released}
        self._entries.clear()
        self._entries.update(kept)


class Bound:
    """The resident inputs of a call. They are passed again as long as the same tensors have the same values.

    The versions of `states` do not matter, because the device has their memory.
    """

    def __init__(self, native: Native, tensors: Sequence[torch.Tensor], states: Mapping[int, torch.Tensor]) -> None:
        self._versions, self._states = list(map(version, tensors)), frozenset(states)
        # The list is emptied when a tensor dies. This frees its device memory, and another tensor may get its address.
        self._native = alive = [native]
        self._watched = [weakref.ref(tensor, lambda _: alive.clear()) for tensor in (*tensors, *states.values())]

    def find(
        self, inputs: Sequence[object], tensors: Sequence[torch.Tensor], states: Set[int], whole: bool
    ) -> Native | None:
        """The runtime's form of these inputs, or None if one of them has changed."""
        for native in self._native[:] if states == self._states else []:
            if native.holds(inputs) and list(map(version, tensors)) == self._versions and native.same(whole):
                return native
        return None


class Split:
    """Splits the positions of a program's inputs: some stay on the device, and each call passes the others."""

    def __init__(self, count: int, resident: Collection[int]) -> None:
        self.resident = frozenset(resident)
        self.kept = [i for i in range(count) if i in self.resident]
        self.passed = [i for i in range(count) if i not in self.resident]
        self.bound: Bound | None = None


def refresh(*weights: torch.nn.Module | torch.Tensor) -> None:
    """Makes each program copy these weights to its device again at its next call.

    It is for writes that PyTorch does not count and that may be missed (docs/weights.md lists them). Like a counted
    write, a call between a forward pass and its backward pass is an error of autograd.
    """
    for given in weights:
        tensors = [given] if isinstance(given, torch.Tensor) else [*given.parameters(), *given.buffers()]
        torch.autograd.graph.increment_version([t for t in tensors if not t.is_inference()])

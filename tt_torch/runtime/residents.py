"""Recognises tensors that are already on a device, finds out whether they have changed, and knows who keeps them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, TypeAlias

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from tt_torch.errors import InputDtypeError, ReleasedWeightError
from tt_torch.runtime import _runtime, fused_steps
from tt_torch.torch_private.released import ReleasedWeight
from tt_torch.torch_private.tensors import version

Native: TypeAlias = Any  # an object of the C++ library, whose classes have no type hints

Make: TypeAlias = Callable[[_runtime.TensorSpec, torch.Tensor, str], Native]
# The dtypes whose memory is the same on the host and on the emulated device.
_TYPES = _runtime.DataType
SHARED = {
    torch.float32: (_TYPES.Float32,), torch.int32: (_TYPES.Int32,), torch.uint8: (_TYPES.UInt8,),
    torch.bfloat16: (_TYPES.BFloat16, _TYPES.BFP_BFloat8),
}  # fmt: skip


def can_be_state(tensor: torch.Tensor, spec: _runtime.TensorSpec) -> bool:
    """Whether the device can update the tensor in its own memory, as an input with this `spec`."""
    plain = isinstance(tensor, torch.Tensor) and tensor.is_contiguous() and not tensor.is_neg()
    return plain and spec.dtype in SHARED.get(tensor.dtype, ()) and list(tensor.shape) == spec.shape


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

    def __init__(self, tensor: torch.Tensor, memory: Native | None, handle: Native) -> None:
        self._tensor = weakref.ref(tensor)
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


class Kept:
    """The tensors that one owner keeps on a device, in one or more forms. They leave the device when all their owners
    are gone, when the tensor dies, or when it changes. `len` counts the tensors."""

    def __init__(self) -> None:
        self.forms = WeakTensorKeyDictionary()  # for each tensor: its Resident objects by placement

    def __len__(self) -> int:
        return len(self.forms)

    def __repr__(self) -> str:
        return f"<{len(self)} tensors on a device>"


class Residents:
    """Tensors that are kept on a device. They are recognised by their identity, memory, version, values and placement.

    `make(spec, tensor, who)` puts a tensor on the device and returns its handle; `share` does the same for a state,
    which programs update in the tensor's own memory. An owner keeps the handle: the Kept object that `get` and `state`
    take, or else the device.
    """

    def __init__(self, make: Make, share: Make | None = None) -> None:
        self._make, self._share = make, share
        self._own = Kept()
        self._owners = weakref.WeakSet([self._own])
        self._entries: weakref.WeakValueDictionary[tuple[int, str], Resident] = weakref.WeakValueDictionary()

    def get(
        self,
        tensor: torch.Tensor,
        spec: _runtime.TensorSpec,
        placement: str,
        who: str,
        whole: bool,
        owner: Kept | None = None,
    ) -> Resident:
        """The tensor on the device, which is copied there if necessary. `whole` compares all values with the copy."""
        entry = self._entries.get((id(tensor), placement))
        if entry and entry.is_current(tensor, whole):
            return self._keep(tensor, placement, entry, owner)
        if isinstance(tensor, ReleasedWeight):
            return self._released(tensor, spec, placement, who)
        memory = _runtime.Fingerprint(tensor, who)  # made before the copy, so that a write in between is found
        source = tensor.resolve_neg() if tensor.is_neg() else tensor
        handle = self._make(spec, source, who)
        fused_steps.watch(tensor)
        return self._new(tensor, placement, Resident(tensor, memory, handle), owner)

    def _released(self, weight: ReleasedWeight, spec: _runtime.TensorSpec, placement: str, who: str) -> Resident:
        """A weight without values in memory, which the device gets from its source, and keeps."""
        source = weight.tt_source
        if source is None:
            raise ReleasedWeightError(f"{who} is {weight.tt_released}, which was released, and this device lacks it")
        entry = Resident(weight, None, self._make(spec, source, who))  # nobody can write to the weight
        return self._new(weight, placement, entry, None)

    def state(
        self,
        tensor: torch.Tensor,
        spec: _runtime.TensorSpec,
        placement: str,
        who: str,
        owner: Kept | None = None,
    ) -> Resident:
        """The tensor as a state: programs write to its memory. `can_be_state` must hold for it."""
        assert self._share, "this device has no states"
        placement = f"state {placement}"
        entry = self._entries.get((id(tensor), placement))
        if entry and entry.is_current(tensor, whole=False):
            return self._keep(tensor, placement, entry, owner)
        return self._new(tensor, placement, Resident(tensor, None, self._share(spec, tensor, who)), owner)

    def _new(self, tensor: torch.Tensor, placement: str, entry: Resident, owner: Kept | None) -> Resident:
        for one in list(self._owners):  # none of them needs the values from before the change
            one.forms.get(tensor, {}).pop(placement, None)
        self._entries[id(tensor), placement] = entry
        return self._keep(tensor, placement, entry, owner)

    def _keep(self, tensor: torch.Tensor, placement: str, entry: Resident, owner: Kept | None) -> Resident:
        owner = self._own if owner is None else owner
        self._owners.add(owner)
        owner.forms.setdefault(tensor, {})[placement] = entry
        return entry

    def keep(self, tensor: torch.Tensor) -> None:
        """Keeps the tensor for as long as it lives, whatever its owners do."""
        for (number, placement), entry in list(self._entries.items()):
            if number == id(tensor) and entry.is_of(tensor):
                self._keep(tensor, placement, entry, None)

    def of(self, tensor: torch.Tensor) -> list[Resident]:
        """The forms in which the tensor is on the device."""
        found = [entry for (number, _), entry in list(self._entries.items()) if number == id(tensor)]
        return [entry for entry in found if entry.is_of(tensor)]

    def clear(self) -> None:
        """Drops all tensors of all owners except released weights, because only the device has their values."""
        for owner in list(self._owners):
            for tensor in list(owner.forms):
                if not isinstance(tensor, ReleasedWeight):
                    owner.forms.pop(tensor, None)


class Bound:
    """The resident inputs of a call. They are passed again as long as the same tensors have the same values.

    The versions of `states` do not matter, because the device has their memory. `kept` are those of the tensors that
    stay on the device.
    """

    def __init__(
        self,
        native: Native,
        tensors: Sequence[torch.Tensor],
        states: Mapping[int, torch.Tensor],
        kept: Sequence[Resident],
    ) -> None:
        self._versions, self._states = list(map(version, tensors)), frozenset(states)
        # The list is emptied when a tensor dies or no owner keeps it. This frees its device memory, and another tensor
        # may get its address.
        self._native = alive = [native]
        self._watched = [weakref.ref(one, lambda _: alive.clear()) for one in (*tensors, *states.values(), *kept)]

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

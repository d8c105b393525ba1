"""Programs for a mesh of chips. A call takes and returns whole tensors; each chip computes with its part of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from tt_torch.errors import InputCountError, InputShapeError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.runtime._runtime import Residents
from tt_torch.runtime.buffers import make_results
from tt_torch.runtime.mesh import Given, MeshSpec, PartSpec, Sharding, shardings_of
from tt_torch.runtime.residents import Bound, Native, Resident, Split, can_be_state, is_negated
from tt_torch.torch_private.tensors import storage_of


class MeshExecutable(Executable):
    """A program for a mesh of chips, which run in lock step. A call takes and returns whole tensors.

    `input_shardings` and `output_shardings` say how these tensors lie on the chips: `(0, None)` splits dimension 0
    along the rows of the mesh, and every chip of a row has the same part. Without them, each chip has every tensor
    whole. If several chips have the same part of a result, the part of the first one is returned. `inputs` and
    `outputs` describe the parts of one chip.

    An input may also be a list with the value of each chip. The results at the positions `each` are such lists. Each
    chip updates its value of a list in place, if the list is on "tt" and a state (see `updates`).

    If several processes share the device's mesh, all of them make each call. A whole tensor must be equal in all
    processes. A list has only the values of the process's own chips. A result that is split is gathered.

    Raises ShardingError for a tensor without equal parts, and DeviceError for a device with another mesh. A call also
    raises MeshError if another process makes another call, and HostError if another process fails or ends.
    """

    def __init__(
        self,
        binary: Binary,
        program: int = 0,
        device: Device | None = None,
        input_shardings: Sequence[Sharding] | None = None,
        output_shardings: Sequence[Sharding] | None = None,
        each: Collection[int] = (),
    ) -> None:
        super().__init__(binary, program, device)
        self.mesh_shape: tuple[int, ...] = tuple(self._impl.info.mesh_shape)
        self.hosts = self.device.hosts
        self.chips = self.hosts.own if self.hosts else range(math.prod(self.mesh_shape))
        self._of_weights = ""  # the hash of the whole tensors that stay on the device
        given = shardings_of(input_shardings, len(self.inputs), "inputs")
        made = shardings_of(output_shardings, len(self.outputs), "results")
        on = self.mesh_shape, self.chips
        self._specs = [MeshSpec.of(*pair, *on) for pair in zip(self.inputs, given, strict=True)]
        self._made = [MeshSpec.of(*pair, *on) for pair in zip(self.outputs, made, strict=True)]
        self._placements = [repr(spec) for spec in self._specs]
        self._each = frozenset(each)
        forms = zip(self._made, self._results, strict=True)
        self._results = [(list(spec.parts.whole), dtype) for spec, (_, dtype) in forms]

    def __call__(
        self,
        inputs: Sequence[Given],
        resident: Collection[int] = (),
        output_dtypes: Sequence[torch.dtype | None] | None = None,
        output_strides: Sequence[tuple[int, ...] | None] | None = None,
        output_devices: Sequence[torch.device] | None = None,
    ) -> list[Any]:
        forms = output_dtypes, output_strides, output_devices
        if self.hosts is None:
            return self._run(inputs, resident, forms)
        with self.hosts.step(f"a call of program {self.program} of the binary {self.binary.digest}"):
            results = self._run(inputs, resident, forms)
            self._complete(results)
            return results

    def _run(self, inputs: Sequence[Given], resident: Collection[int], forms: tuple[Any, Any, Any]) -> list[Any]:
        split = self._checked(inputs, resident)  # type: ignore[arg-type]
        given = [_plain(x, i) if i in split.passed else x for i, x in enumerate(inputs)]
        flat = per_chip(self._specs, given, split.resident)
        states = self._states(inputs)
        kept = self._on_chips(inputs, flat, split, states) if split.kept or states else None
        if self.hosts:
            self.hosts.agree(f"the inputs {_digest(given, split.passed)} and the weights {self._of_weights} of a call")
        results: list[Any] = list(make_results(self._results, *forms, {k: parts[0] for k, parts in states.items()}))
        for chip in range(1, len(self.chips) if self._each else 0):
            made = make_results(self._results, *forms, {k: parts[chip] for k, parts in states.items()})
            for i in self._each:
                results[i] = [*(results[i] if chip > 1 else [results[i]]), made[i]]
        try:
            self._impl.run(flat, kept, destinations(self._made, results))
        finally:  # a run that fails may have written to a state, too
            written = [x for parts in states.values() for x in parts if not x.is_inference()]
            if written:
                torch.autograd.graph.increment_version(written)
        return results

    def _states(self, inputs: Sequence[Given]) -> dict[int, Sequence[torch.Tensor]]:
        """For each result that is the new value of a state: the value of each chip, which the program updates in place.

        A tensor that all chips have is no state, because each of them would update it. The device has counted the
        memory of tensors on "tt".
        """
        found: dict[int, Sequence[torch.Tensor]] = {}
        for k, i in self.updates.items():
            given = inputs[i]
            if k not in self._each or isinstance(given, torch.Tensor):
                continue
            apart = len(set(map(storage_of, given))) == len(given)
            if apart and all(x.device.type == "tt" and can_be_state(x, self.inputs[i]) for x in given):
                found[k] = given
        return found

    def _complete(self, results: Sequence[Given]) -> None:
        """Writes the parts of the other processes' chips into results that are split."""
        assert self.hosts
        for spec, result in zip(self._made, results, strict=True):
            if isinstance(result, torch.Tensor) and any(dim is not None for dim in spec.parts.sharding):
                self.hosts.agree("the parts of a result")
                everything = replace(spec.parts, own=None)
                found = self.hosts.all_parts([part.contiguous() for part in spec.parts.of(result)])
                for part, value in zip(everything.of(result), found, strict=True):
                    part.copy_(value)

    def _on_chips(
        self,
        inputs: Sequence[Given],
        flat: Sequence[torch.Tensor],
        split: Split,
        states: Mapping[int, Sequence[torch.Tensor]],
    ) -> Native:
        """The resident inputs and the states of all chips."""
        count = len(self.inputs)
        updated = [self.updates[k] for k in states]
        written = {chip * count + i: flat[chip * count + i] for chip in range(len(self.chips)) for i in updated}
        places = [chip * count + i for chip in range(len(self.chips)) for i in split.kept]
        tensors = [flat[place] for place in places]
        native = split.bound.find(flat, tensors, written.keys(), self.compare_weights) if split.bound else None
        if native is not None:
            return native
        kept = [i for i in split.kept if not flat[i].is_inference()]
        residents: list[Resident] = []
        entries = [entry for i in kept for entry in self._entries(i, inputs[i], residents)]
        for place, x in written.items():
            spec = PartSpec(self.inputs[place % count], place < count)
            state = self._resident(place % count, x, is_state=True, form=(spec, repr(spec)))
            entries.append((place, state.handle, None, x))
            residents.append(state)
        native = Residents(len(flat), entries)
        if self.hosts:
            self._of_weights = _digest(inputs, split.kept)
        split.bound = Bound(native, tensors, written, residents) if len(kept) == len(split.kept) else None
        return native

    def _entries(self, i: int, given: Given, residents: list[Resident]) -> list[tuple[Any, ...]]:
        """For each chip: the position of an input, its handle, its fingerprint and the tensor of the caller. Adds what
        stays on the device to `residents`."""
        count = len(self.inputs)
        if isinstance(given, torch.Tensor):
            whole = self._resident(i, given)
            residents.append(whole)
            handles = enumerate(whole.handles)
            return [(chip * count + i, handle, whole.memory if chip == 0 else None, given) for chip, handle in handles]
        found = []
        for chip, part in enumerate(given):
            spec = PartSpec(self.inputs[i], chip == 0)
            one = self._resident(i, part, form=(spec, repr(spec)))
            residents.append(one)
            found.append((chip * count + i, one.handle, one.memory, part))
        return found


def _plain(x: Given, position: int) -> Given:
    """The tensor, or the tensors of a list, without lazy negation. The memory of a tensor does not show a lazy
    negation."""
    if isinstance(x, torch.Tensor):
        return x.resolve_neg() if is_negated(x, position) else x
    return [part.resolve_neg() if is_negated(part, position) else part for part in x]


def _digest(given: Sequence[Given], positions: Collection[int]) -> str:
    """A hash of the whole tensors at these positions. Lists with a value per chip are left out."""
    from tt_torch.torch_private.hosts import digest

    return digest([x for i in positions if isinstance(x := given[i], torch.Tensor)])


def per_chip(specs: Sequence[MeshSpec], tensors: Sequence[Given], whole: Collection[int]) -> list[torch.Tensor]:
    """The inputs of all chips of this process, one chip after the other. Inputs at the positions `whole` are not split,
    because the chips have them already.

    Raises InputShapeError for a tensor of another shape, and InputCountError for a list without exactly one value per
    chip.
    """
    chips: list[list[torch.Tensor]] = [[] for _ in specs[0].parts.owners] if specs else []
    for i, (spec, tensor) in enumerate(zip(specs, tensors, strict=True)):
        for chip, part in zip(chips, _parts(spec, tensor, i, len(chips), i in whole), strict=True):
            chip.append(part)
    return [part for chip in chips for part in chip]


def _parts(spec: MeshSpec, tensor: Given, i: int, chips: int, whole: bool) -> list[torch.Tensor]:
    if isinstance(tensor, torch.Tensor):
        if tuple(tensor.shape) != spec.parts.whole:
            raise InputShapeError(f"input {i}: got shape {tuple(tensor.shape)}, expected {spec.parts.whole}")
        return [tensor] * chips if whole else spec.parts.of(tensor)
    if len(tensor) != chips:
        has = f"the mesh has {chips}" if chips == math.prod(spec.parts.mesh_shape) else f"this process has {chips}"
        raise InputCountError(f"input {i}: got the values of {len(tensor)} chips, and {has}")
    for part in tensor:
        if list(part.shape) != spec.spec.shape:
            raise InputShapeError(f"input {i}: got shape {tuple(part.shape)}, expected {tuple(spec.spec.shape)}")
    return list(tensor)


def destinations(specs: Sequence[MeshSpec], results: Sequence[Given]) -> list[torch.Tensor | None]:
    """The memory for the outputs of all chips of this process, one chip after the other. If chips have equal parts,
    only the first part is written; None stands for the others."""
    chips = len(specs[0].parts.owners) if specs else 0
    rows = []
    for spec, result in zip(specs, results, strict=True):
        if isinstance(result, torch.Tensor):
            parts = spec.parts.of(result)
            rows.append([parts[chip] if spec.parts.owners[chip] == chip else None for chip in range(chips)])
        else:
            rows.append(list(result))
    return [row[chip] for chip in range(chips) for row in rows]

"""Programs for a mesh of chips. A call takes and returns whole tensors; each chip computes with its part of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import torch

from tt_torch.errors import InputCountError, InputShapeError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.runtime._runtime import Residents
from tt_torch.runtime.buffers import make_results
from tt_torch.runtime.mesh import Given, MeshSpec, PartSpec, Sharding, shardings_of
from tt_torch.runtime.residents import Bound, Native, Split, is_negated


class MeshExecutable(Executable):
    """A program for a mesh of chips, which run in lock step. A call takes and returns whole tensors.

    `input_shardings` and `output_shardings` say how the chips have them: `(0, None)` splits dimension 0 along the rows
    of the mesh, and every chip of a row has the same part. Without them, each chip has every tensor whole. Of a result
    that several chips have, the first one is returned. `inputs` and `outputs` describe the parts of one chip.

    An input may also be a list with the value of each chip. The results at the positions `each` are such lists.

    Raises ShardingError for a tensor without equal parts, and DeviceError for a device with another mesh.
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
        given = shardings_of(input_shardings, len(self.inputs), "inputs")
        made = shardings_of(output_shardings, len(self.outputs), "results")
        self._specs = [MeshSpec.of(*pair, self.mesh_shape) for pair in zip(self.inputs, given, strict=True)]
        self._made = [MeshSpec.of(*pair, self.mesh_shape) for pair in zip(self.outputs, made, strict=True)]
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
        split = self._checked(inputs, resident)  # type: ignore[arg-type]
        given = [_plain(x, i) if i in split.passed else x for i, x in enumerate(inputs)]
        flat = per_chip(self._specs, given, split.resident)
        kept = self._on_chips(inputs, flat, split) if split.kept else None
        forms = output_dtypes, output_strides, output_devices
        results: list[Any] = list(make_results(self._results, *forms))
        if self._each:
            others = [make_results(self._results, *forms) for _ in range(1, math.prod(self.mesh_shape))]
            for i in self._each:
                results[i] = [results[i], *(other[i] for other in others)]
        self._impl.run(flat, kept, destinations(self._made, results))
        return results

    def _on_chips(self, inputs: Sequence[Given], flat: Sequence[torch.Tensor], split: Split) -> Native:
        """The resident inputs of all chips."""
        count = len(self.inputs)
        places = [chip * count + i for chip in range(math.prod(self.mesh_shape)) for i in split.kept]
        tensors = [flat[place] for place in places]
        native = split.bound.find(flat, tensors, set(), self.compare_weights) if split.bound else None
        if native is not None:
            return native
        kept = [i for i in split.kept if not flat[i].is_inference()]
        entries = [entry for i in kept for entry in self._entries(i, inputs[i])]
        native = Residents(len(flat), entries)
        split.bound = Bound(native, tensors, {}) if len(kept) == len(split.kept) else None
        return native

    def _entries(self, i: int, given: Given) -> list[tuple[Any, ...]]:
        """For each chip: the position of an input, its handle, its fingerprint and the tensor of the caller."""
        count = len(self.inputs)
        if isinstance(given, torch.Tensor):
            whole = self._resident(i, given)
            handles = enumerate(whole.handles)
            return [(chip * count + i, handle, whole.memory if chip == 0 else None, given) for chip, handle in handles]
        found = []
        for chip, part in enumerate(given):
            spec = PartSpec(self.inputs[i], chip == 0)
            one = self._resident(i, part, form=(spec, repr(spec)))
            found.append((chip * count + i, one.handle, one.memory, part))
        return found


def _plain(x: Given, position: int) -> Given:
    """The tensor without a lazy negation, which memory does not show."""
    if isinstance(x, torch.Tensor):
        return x.resolve_neg() if is_negated(x, position) else x
    return [part.resolve_neg() if is_negated(part, position) else part for part in x]


def per_chip(specs: Sequence[MeshSpec], tensors: Sequence[Given], whole: Collection[int]) -> list[torch.Tensor]:
    """The inputs of all chips, one chip after the other. Those at the positions `whole` are not split, because the
    chips have them already.

    Raises InputShapeError, and InputCountError for a list that has not one value per chip.
    """
    chips: list[list[torch.Tensor]] = [[] for _ in range(math.prod(specs[0].parts.mesh_shape))] if specs else []
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
        raise InputCountError(f"input {i}: got the values of {len(tensor)} chips, and the mesh has {chips}")
    for part in tensor:
        if list(part.shape) != spec.spec.shape:
            raise InputShapeError(f"input {i}: got shape {tuple(part.shape)}, expected {tuple(spec.spec.shape)}")
    return list(tensor)


def destinations(specs: Sequence[MeshSpec], results: Sequence[Given]) -> list[torch.Tensor | None]:
    """The memory for the outputs of all chips, one chip after the other. Of equal parts, the first one is written."""
    chips = math.prod(specs[0].parts.mesh_shape) if specs else 0
    rows = []
    for spec, result in zip(specs, results, strict=True):
        if isinstance(result, torch.Tensor):
            parts = spec.parts.of(result)
            rows.append([parts[chip] if spec.parts.owners[chip] == chip else None for chip in range(chips)])
        else:
            rows.append(list(result))
    return [row[chip] for chip in range(chips) for row in rows]

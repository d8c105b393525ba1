"""Programs for a mesh of chips. A call takes and returns whole tensors; each chip computes with its part of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch

from tt_torch.errors import InputShapeError
from tt_torch.runtime import Binary, Device, Executable, make_results
from tt_torch.runtime._runtime import Residents
from tt_torch.runtime.mesh import MeshSpec, Sharding, shardings_of
from tt_torch.runtime.residents import Bound, Native, Split, is_negated


class MeshExecutable(Executable):
    """A program for a mesh of chips, which run in lock step. A call takes and returns whole tensors.

    `input_shardings` and `output_shardings` say how the chips have them: `(0, None)` splits dimension 0 along the rows
    of the mesh, and every chip of a row has the same part. Without them, each chip has every tensor whole. Of a result
    that several chips have, the first one is returned. `inputs` and `outputs` describe the parts of one chip.

    Raises ShardingError for a tensor without equal parts, and DeviceError for a device with another mesh.
    """

    def __init__(
        self,
        binary: Binary,
        program: int = 0,
        device: Device | None = None,
        input_shardings: Sequence[Sharding] | None = None,
        output_shardings: Sequence[Sharding] | None = None,
    ) -> None:
        super().__init__(binary, program, device)
        self.mesh_shape: tuple[int, ...] = tuple(self._impl.info.mesh_shape)
        given = shardings_of(input_shardings, len(self.inputs), "inputs")
        made = shardings_of(output_shardings, len(self.outputs), "results")
        self._specs = [MeshSpec.of(*pair, self.mesh_shape) for pair in zip(self.inputs, given, strict=True)]
        self._made = [MeshSpec.of(*pair, self.mesh_shape) for pair in zip(self.outputs, made, strict=True)]
        self._placements = [repr(spec) for spec in self._specs]
        forms = zip(self._made, self._results, strict=True)
        self._results = [(list(spec.parts.whole), dtype) for spec, (_, dtype) in forms]

    def __call__(
        self,
        inputs: Sequence[torch.Tensor],
        resident: Collection[int] = (),
        output_dtypes: Sequence[torch.dtype | None] | None = None,
        output_strides: Sequence[tuple[int, ...] | None] | None = None,
        output_devices: Sequence[torch.device] | None = None,
    ) -> list[torch.Tensor]:
        split = self._checked(inputs, resident)
        given = [x.resolve_neg() if i in split.passed and is_negated(x, i) else x for i, x in enumerate(inputs)]
        flat = per_chip(self._specs, given, split.resident)
        kept = self._bound(flat, split) if split.kept else None
        results = make_results(self._results, output_dtypes, output_strides, output_devices)
        self._impl.run(flat, kept, destinations(self._made, results))
        return results

    def _bound(self, flat: Sequence[torch.Tensor], split: Split) -> Native:
        tensors = [flat[i] for i in split.kept]
        native = split.bound.find(flat, tensors, set(), self.compare_weights) if split.bound else None
        if native is not None:
            return native
        kept = [i for i in split.kept if not flat[i].is_inference()]
        count, entries = len(self.inputs), []
        for i in kept:
            entry = self._resident(i, flat[i])
            for chip, handle in enumerate(entry.handle):
                entries.append((chip * count + i, handle, entry.memory if chip == 0 else None, flat[i]))
        native = Residents(len(flat), entries)
        split.bound = Bound(native, tensors, {}) if len(kept) == len(tensors) else None
        return native


def per_chip(specs: Sequence[MeshSpec], tensors: Sequence[torch.Tensor], whole: Collection[int]) -> list[torch.Tensor]:
    """The inputs of all chips, one chip after the other. Those at the positions `whole` are not split, because the
    chips have them already.

    Raises InputShapeError.
    """
    chips: list[list[torch.Tensor]] = [[] for _ in range(math.prod(specs[0].parts.mesh_shape))] if specs else []
    for i, (spec, tensor) in enumerate(zip(specs, tensors, strict=True)):
        if tuple(tensor.shape) != spec.parts.whole:
            raise InputShapeError(f"input {i}: got shape {tuple(tensor.shape)}, expected {spec.parts.whole}")
        parts = [tensor] * len(chips) if i in whole else spec.parts.of(tensor)
        for chip, part in zip(chips, parts, strict=True):
            chip.append(part)
    return [part for chip in chips for part in chip]


def destinations(specs: Sequence[MeshSpec], results: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """The memory for the outputs of all chips, one chip after the other. Of equal parts, the first one is written."""
    parts = [spec.parts.of(result) for spec, result in zip(specs, results, strict=True)]
    chips = range(math.prod(specs[0].parts.mesh_shape) if specs else 0)
    return [
        part[chip] if spec.parts.owners[chip] == chip else None
        for chip in chips
        for spec, part in zip(specs, parts, strict=True)
    ]

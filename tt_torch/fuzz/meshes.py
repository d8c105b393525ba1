"""Programs on a mesh of chips: how their inputs are split, and the whole tensors of their results.

Strides and shared memory of DTensors are not compared. Their strides are those of no chip, and nothing promises that
they share memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch

from tt_torch.errors import CollectiveError, IRVerificationError, StageError, TTTorchError

Dims: TypeAlias = tuple[int | None, ...]  # the dimension that each axis of a mesh splits, or None
MESHES = ((1, 2), (2, 2), (2, 2), (2, 4))
SHAPES = (
    (), (1,), (8,), (16,), (4, 8), (8, 8), (8, 8), (8, 8), (8, 1), (16, 4), (8, 3), (5, 8), (2, 4, 8), (4, 8, 8),
    (2, 8, 1), (1, 64), (0, 8), (2, 2, 4, 8), (1025,), (32, 40),
)  # fmt: skip
_UNEVEN = 1 / 20  # how many tensors are split without regard to their sizes


@dataclass(frozen=True)
class Split:
    """A mesh of chips, and how each input of a program is split over it."""

    mesh: tuple[int, int]
    inputs: Mapping[str, Dims]

    def of(self, names: Sequence[str]) -> Split:
        return Split(self.mesh, {name: self.inputs[name] for name in names})


def random_split(seed: int, inputs: Mapping[str, torch.Tensor]) -> Split:
    draw = random.Random(f"mesh {seed}")
    mesh = draw.choice(MESHES)
    return Split(mesh, {name: _random_dims(draw, x, mesh) for name, x in inputs.items()})


def _random_dims(draw: random.Random, x: torch.Tensor, mesh: Sequence[int]) -> Dims:
    any_size, left, dims = draw.random() < _UNEVEN, list(x.shape), list[int | None]()
    for count in mesh:
        possible = [dim for dim, size in enumerate(left) if any_size or size % count == 0]
        dims.append(draw.choice([None, *possible, *possible]))
        if dims[-1] is not None:
            left[dims[-1]] //= count
    return tuple(dims)


def simpler(split: Split) -> Iterator[Split]:
    """The splits that divide one of the inputs along one axis less."""
    for name, dims in split.inputs.items():
        for axis in (axis for axis, dim in enumerate(dims) if dim is not None):
            yield Split(split.mesh, {**split.inputs, name: (*dims[:axis], None, *dims[axis + 1 :])})


def with_value(split: Split, name: str, value: torch.Tensor) -> list[Split]:
    """The splits if a value takes the place of a statement. It is split as one of the inputs, or whole."""
    fitting = [dims for dims in split.inputs.values() if all(dim is None or dim < value.dim() for dim in dims)]
    ways = dict.fromkeys([(None,) * len(split.mesh), *fitting])
    return [Split(split.mesh, {**split.inputs, name: dims}) for dims in ways]


def is_refused(error: BaseException) -> bool:
    """Whether an error is one of ours that says that chips do not do this. Errors of a stage, of the verifier and of a
    collective are faults of ours, and errors of PyTorch for DTensors are findings, too."""
    each: BaseException | None = error
    while each and not isinstance(each, TTTorchError):  # Dynamo wraps an error, or raises its own one after it
        each = getattr(each, "inner_exception", None) or each.__cause__ or each.__context__
    return each is not None and not isinstance(each, (StageError, IRVerificationError, CollectiveError))


@contextmanager
def on_chips(split: Split, inputs: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """The inputs as DTensors on chips of this process, which are there in this context only."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("tt", split.mesh)
    try:
        placements = [[Replicate() if dim is None else Shard(dim) for dim in dims] for dims in split.inputs.values()]
        yield [distribute_tensor(x, mesh, to) for x, to in zip(inputs, placements, strict=True)]
    finally:
        dist.destroy_process_group()


def whole(x: torch.Tensor) -> torch.Tensor:
    """The whole tensor. It requires gradients if `x` does."""
    from torch.distributed.tensor import DTensor

    if not isinstance(x, DTensor):
        return x
    with torch.no_grad():
        found = x.full_tensor()
    return found.detach().requires_grad_(x.requires_grad)

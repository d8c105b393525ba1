"""How whole tensors lie on the chips of a mesh."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias, TypeVar

import torch

from tt_torch.errors import DeviceError, InputCountError, ShardingError
from tt_torch.runtime import _runtime

# For each axis of a mesh, (rows, columns): the dimension of a tensor that is split along this axis. None: the axis
# splits no dimension. Two axes may split one dimension: the rows split it first.
Sharding: TypeAlias = tuple[int | None, int | None]
REPLICATED: Sharding = (None, None)
Shardings: TypeAlias = tuple[list[Sharding], list[Sharding]]  # the inputs have the first ones, the results the others
# A tensor of a call: whole, or as a list if each chip has its own value.
Given: TypeAlias = torch.Tensor | Sequence[torch.Tensor]
T = TypeVar("T")


def two_integers(value: object, what: str) -> list[int]:
    """`value` as [rows, columns]. Raises DeviceError with the name `what` if it does not consist of two integers."""
    try:
        numbers = [operator.index(number) for number in value]  # type: ignore[attr-defined]
    except TypeError:
        numbers = []
    if len(numbers) != 2:
        raise DeviceError(f"{what} must be two integers, such as (2, 4), and not {value!r}")
    return numbers


@dataclass(frozen=True)
class Parts:
    """How a tensor of shape `whole` lies on the chips of a mesh. `own` has the chips whose parts are wanted.

    Raises ShardingError if a dimension does not exist or does not have equal parts.
    """

    whole: tuple[int, ...]
    sharding: Sharding
    mesh_shape: tuple[int, ...]  # rows and columns of chips
    own: range | None = None  # None: all chips

    def __post_init__(self) -> None:
        for axis, dim in enumerate(self.sharding):
            if dim is not None and not 0 <= dim < len(self.whole):
                raise ShardingError(
                    self.whole, f"it has no dimension {dim}, which axis {axis} of the mesh should split"
                )
        for dim, size in enumerate(self.whole):
            if size % (count := self._count(dim)):
                raise ShardingError(self.whole, f"dimension {dim} has no {count} equal parts")

    def _count(self, dim: int) -> int:
        return math.prod(n for n, split in zip(self.mesh_shape, self.sharding, strict=True) if split == dim)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one part."""
        return tuple(size // self._count(dim) for dim, size in enumerate(self.whole))

    @cached_property
    def owners(self) -> list[int]:
        """For each chip of `own`, the position in `own` of the first chip that has the same part."""
        first: dict[tuple[int, ...], int] = {}
        return [first.setdefault(place, chip) for chip, place in enumerate(self._places)]

    @cached_property
    def _places(self) -> list[tuple[int, ...]]:
        """For each chip of `own`, the number of its part in each dimension."""
        places, every = [], list(product(*map(range, self.mesh_shape)))
        for chip in self.own or range(len(every)):
            coordinates = every[chip]
            place = [0] * len(self.whole)
            for at, size, dim in zip(coordinates, self.mesh_shape, self.sharding, strict=True):
                if dim is not None:
                    place[dim] = place[dim] * size + at
            places.append(tuple(place))
        return places

    def of(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The part of each chip of `own`, as a view of the tensor. Chips with equal parts get one object."""
        found: list[torch.Tensor] = []
        for chip, place in enumerate(self._places):
            if self.owners[chip] != chip:
                found.append(found[self.owners[chip]])
                continue
            part = tensor
            for dim, (at, size) in enumerate(zip(place, self.shape, strict=True)):
                if size != self.whole[dim]:
                    part = part.narrow(dim, at * size, size)
            found.append(part)
        return found


def whole_shape(part: Sequence[int], sharding: Sharding, mesh_shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a tensor whose part on one chip has the shape `part`."""
    whole = list(part)
    for size, dim in zip(mesh_shape, sharding, strict=True):
        if dim is not None and 0 <= dim < len(whole):  # Parts refuses other dimensions by name
            whole[dim] *= size
    return tuple(whole)


@dataclass(frozen=True)
class MeshSpec:
    """The description of the part on one chip, and how the whole tensor lies on the chips."""

    spec: _runtime.TensorSpec
    parts: Parts

    @staticmethod
    def of(spec: _runtime.TensorSpec, sharding: Sharding, mesh_shape: Sequence[int], own: range) -> MeshSpec:
        whole = whole_shape(spec.shape, sharding, mesh_shape)
        return MeshSpec(spec, Parts(whole, sharding, tuple(mesh_shape), own))

    def handles(self, tensor: torch.Tensor, make: Callable[[torch.Tensor, bool], T]) -> list[T]:
        """Calls `make` for the part of each chip, and returns the results. Chips with equal parts share one.

        The second argument of `make` is true for the first chip. Only its part is counted as device memory, because all
        chips have the same allocations.
        """
        made: list[T] = []
        for chip, (part, owner) in enumerate(zip(self.parts.of(tensor), self.parts.owners, strict=True)):
            made.append(made[owner] if owner != chip else make(part, chip == 0))
        return made

    def __repr__(self) -> str:
        return f"{self.spec!r} {self.parts}"


@dataclass(frozen=True)
class PartSpec:
    """The description of the value of one chip. Only the value of the first chip is counted as device memory."""

    spec: _runtime.TensorSpec
    is_first: bool

    def __repr__(self) -> str:
        return f"{self.spec!r} of {'the first' if self.is_first else 'another'} chip"


def shardings_of(given: Sequence[Sharding] | None, count: int, what: str) -> Sequence[Sharding]:
    """The given shardings, or REPLICATED for each of `count` tensors. Raises InputCountError for another number."""
    if given is not None and len(given) != count:
        raise InputCountError(f"there are {len(given)} shardings for {count} {what}")
    return given or [REPLICATED] * count

"""A family of programs: one model for several sizes of some dimensions. This imports no compiler."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from tt_torch.errors import InputShapeError


@dataclass(frozen=True)
class Dimension:
    """A dimension of an argument whose size is `factor` * d + `offset`, where d is the size that has the `name`."""

    argument: str
    dimension: int
    name: str
    factor: int
    offset: int

    def of(self, size: int) -> int:
        """The size of this dimension if the size that has the name is `size`. For 2 * d + 1 and d = 3 this is 7."""
        return self.factor * size + self.offset

    @property
    def text(self) -> str:
        text = self.name if self.factor == 1 else f"{self.factor}*{self.name}"
        return f"{text} {'+' if self.offset > 0 else '-'} {abs(self.offset)}" if self.offset else text


@dataclass(frozen=True)
class Family:
    """The sizes for which there are programs, one for each combination. `sizes` are ascending, for each name."""

    sizes: Mapping[str, Sequence[int]]
    dimensions: Sequence[Dimension]

    @property
    def count(self) -> int:
        """The number of programs."""
        return math.prod(map(len, self.sizes.values()))

    def members(self) -> Iterator[dict[str, int]]:
        """The sizes of each program by name, in the order of the programs."""
        return (dict(zip(self.sizes, sizes, strict=True)) for sizes in product(*self.sizes.values()))

    def number(self, given: Mapping[str, Any]) -> int:
        """The number of the program for these arguments, which have their names as in `arguments.parts`.

        Raises InputShapeError if there is none. Arguments that are no tensors, or have other dimensions, do not count:
        the program refuses them.
        """
        number = 0
        chosen = self.chosen(given)
        for name, sizes in self.sizes.items():
            number = number * len(sizes) + (sizes.index(chosen[name]) if name in chosen else 0)
        return number

    def chosen(self, given: Mapping[str, Any]) -> dict[str, int]:
        """The sizes by name that the arguments have. Raises InputShapeError if they do not fit each other."""
        first: dict[str, tuple[int, str]] = {}
        for place in self.dimensions:
            x = given.get(place.argument)
            if not isinstance(x, torch.Tensor) or x.dim() <= place.dimension:
                continue
            actual = x.shape[place.dimension]
            size, rest = divmod(actual - place.offset, place.factor)
            has = f"{place.argument} has the size {actual} in dimension {place.dimension}"
            known, source = first.setdefault(place.name, (size, has))
            if rest or size not in self.sizes[place.name]:
                raise InputShapeError(f"{has}, but the model was compiled for {self.accepted(place)}")
            if size != known:
                raise InputShapeError(f"{has}, but {place.text} is {place.of(known)} there, because {source}")
        return {name: size for name, (size, _) in first.items()}

    def accepted(self, place: Dimension) -> str:
        """The sizes of a dimension in words: `batch in 1 .. 8`, or `2*seq with seq in 64, 128`."""
        text = place.name if place.text == place.name else f"{place.text} with {place.name}"
        return f"{text} in {listed(self.sizes[place.name])}"


def listed(sizes: Sequence[int]) -> str:
    """Ascending sizes in words: 1, 2, 3 become `1 .. 3`, and 1, 2, 4 become `1, 2, 4`."""
    low, high = sizes[0], sizes[-1]
    return f"{low} .. {high}" if len(sizes) == high - low + 1 > 2 else ", ".join(map(str, sizes))

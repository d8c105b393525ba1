"""Random chains of reshapes, permutes, selections and slices, many with dimensions of size one, against eager PyTorch.

The passes `canonicalize` and `sink-data-movement` rewrite such chains most.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

import tt_torch

Step = Callable[[torch.Tensor], torch.Tensor]


def resized(draw: random.Random, sizes: torch.Size) -> list[int]:
    """Sizes with as many elements: some are split, some are joined with the one before, and some ones are inserted."""
    made: list[int] = []
    for size in sizes:
        factor = draw.choice([n for n in range(1, size + 1) if size % n == 0])
        if draw.random() < 0.4:
            made += [factor, size // factor]
        elif made and draw.random() < 0.3:
            made[-1] *= size
        else:
            made.append(size)
        if draw.random() < 0.25:
            made.insert(draw.randint(0, len(made)), 1)
    return made if len(made) <= 6 else list(sizes)


def step(draw: random.Random, sizes: torch.Size) -> Step:
    kind = draw.choice(["reshape", "permute", "select", "slice", "double"])
    if kind == "reshape":
        made = resized(draw, sizes)
        return lambda x: x.reshape(made)
    if kind == "double" or not sizes:
        return lambda x: x * 2
    if kind == "permute":
        order = draw.sample(range(len(sizes)), len(sizes))
        return lambda x: x.permute(order)
    dim = draw.choice([draw.randrange(len(sizes)), len(sizes) - 1])
    begin = draw.randrange(sizes[dim])
    if kind == "select":
        return lambda x: x.select(dim, begin)
    taken = slice(begin, None, draw.randint(1, 3))
    return lambda x: x[(*[slice(None)] * dim, taken)]


@pytest.mark.parametrize("seed", range(12))
def test_random_chains_move_the_same_elements(seed: int) -> None:
    draw = random.Random(seed)
    x = torch.randn([draw.choice([1, 2, 3, 4, 6, 8, 12]) for _ in range(draw.randint(1, 4))])
    steps: list[Step] = []
    moved = x
    for _ in range(draw.randint(2, 7)):
        steps.append(step(draw, moved.shape))
        moved = steps[-1](moved)

    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values = [x]
        for one in steps:
            values.append(one(values[-1]))
        return values[-1].contiguous() + 1, values[len(values) // 2].contiguous() + 1

    for got, expected in zip(tt_torch.compile_model(program, (x,))(x), program(x), strict=True):
        assert got.shape == expected.shape
        assert torch.equal(got, expected)

"""Python numbers that a module counts up: only a number on which a tensor depends makes further programs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from nights import seeds

import tt_torch
from tt_torch.driver.executor import Executor

CALLS = 6


class Counts:
    """Three Python numbers, as a cache of Transformers has them. Dynamo takes the numbers of a module as constants."""

    def __init__(self) -> None:
        self.a, self.b, self.c = 3, 5, 40


Step = Callable[[Counts, torch.Tensor], torch.Tensor]


def count_b(m: Counts, x: torch.Tensor) -> torch.Tensor:
    m.b = m.b + 2 * m.a
    return x + 1


def mix(m: Counts, x: torch.Tensor) -> torch.Tensor:
    m.c = m.c + m.b
    return x * 2


def value_of_a(m: Counts, x: torch.Tensor) -> torch.Tensor:
    return x + m.a


def size_of_c(m: Counts, x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(m.c).sum()


def size_of_x(m: Counts, x: torch.Tensor) -> torch.Tensor:
    m.b += x.shape[0]
    return x.exp()


def branch(m: Counts, x: torch.Tensor) -> torch.Tensor:
    return x - 1 if m.a > 6 else x - 2


class Model(torch.nn.Module):
    def __init__(self, steps: list[Step]) -> None:
        super().__init__()
        self.steps, self.weight = steps, torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x: torch.Tensor, counts: Counts) -> torch.Tensor:
        counts.a += 1
        for step in self.steps:
            x = step(counts, x)
        return x * self.weight


STEPS = (count_b, mix, value_of_a, size_of_c, size_of_x, branch)


def programs_of(steps: list[Step], made: list[Executor], sizes: list[int]) -> int:
    """Compares all calls, and the numbers after them, with eager PyTorch. Returns the number of programs."""
    model, eager, ours = Model(steps), Counts(), Counts()
    compiled = torch.compile(model, backend=tt_torch.backend, options={"fallback": "error"})
    for size in sizes:
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x, ours), model(x, eager))
        assert vars(ours) == vars(eager)
    assert all("parameter" in each.compiled.kinds for each in made)  # the weight stays on the device
    return len(made)


@pytest.mark.parametrize(
    ("steps", "most"),
    [([count_b, mix], 2), ([branch, count_b], 3), ([value_of_a], CALLS), ([count_b, size_of_c, mix], CALLS)],
)
def test_only_numbers_that_tensors_need_make_programs(steps: list[Step], most: int, made: list[Executor]) -> None:
    """The first program has the first numbers as constants: Dynamo sees only later that they change."""
    assert programs_of(steps, made, [4] * CALLS) <= most


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_random_modules_count_as_in_eager(seed: int, made: list[Executor]) -> None:
    draw = random.Random(seed)
    sizes = [draw.choice([4, 4, 4, 5, 7]) for _ in range(CALLS)]
    programs_of(draw.choices(STEPS, k=draw.randint(1, 5)), made, sizes)

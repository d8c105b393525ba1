"""Plain views of a memory that make a tensor, without `as_strided`."""

from __future__ import annotations

import random

import pytest
import torch
from nights import seeds

from tt_torch.dynamo.plain_views import window_of

STEPS = (
    "x.view(2, -1)", "x.view(-1, 3)", "x.unflatten(-1, (2, -1))", "x[1:]", "x[:-1]", "x[..., 1:]", "x[::2]",
    "x[..., ::3]", "x[..., 0]", "x[-1]", "x[:, 1]", "x[None]", "x[:0]", "x.mT", "x.transpose(0, -1)",
    "x.movedim(0, -1)", "x.expand(2, *x.shape)", "x.diagonal()", "x.unfold(-1, 2, 2)",
)  # fmt: skip


def part_of(memory: torch.Tensor, draw: random.Random) -> torch.Tensor:
    x = memory
    for _ in range(draw.randint(1, 7)):
        try:
            x = eval(draw.choice(STEPS), {"x": x})
        except (RuntimeError, IndexError):  # the step does not fit the shape
            continue
    return x


@pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated")
@pytest.mark.parametrize("seed", seeds(5, 50))
def test_random_parts_of_a_memory(seed: int) -> None:
    draw, made = random.Random(seed), 0
    for _ in range(100):
        memory = torch.arange(draw.choice((6, 12, 24, 60, 61)))
        x = part_of(memory, draw)
        if (window := window_of(x)) is None:
            continue
        y = memory.narrow(0, window.begin, window.size)
        for method, *args in window.steps:
            y = getattr(y, method)(*args)
        assert torch.equal(y, x)
        assert not x.numel() or y.data_ptr() == x.data_ptr()
        made += 1
    assert made > 60


def test_windows_that_overlap_have_no_plain_views() -> None:
    assert window_of(torch.arange(8).unfold(0, 3, 2)) is None


def test_a_memory_without_room_for_whole_steps() -> None:
    """Neither before the first element nor behind the last one."""
    assert window_of(torch.arange(7).as_strided((2, 2), (5, 1))) is None
    assert window_of(torch.arange(10).as_strided((2, 2), (5, 1))) is not None

"""Many runs with other roundings show which results of eager PyTorch have no correct digit."""

from __future__ import annotations

import torch
from fuzz_texts import program

from tt_torch.fuzz.programs import Program
from tt_torch.fuzz.tolerance import DOUBTED, RUNS, OtherRoundings, difference
from tt_torch.fuzz.ways import EAGER, run


def test_the_inverse_of_a_sum_that_cancels_has_no_correct_digit() -> None:
    made = program("x.sum()", "1 / v0", x=torch.tensor([-(2.0**31), 2.0**31, 4.9375, -4.6875, 8.375]))
    (expected,) = made.function()(made.inputs["x"])
    moved = [run(made.function(), [x], EAGER, False)[0].value for x in _converted(made.inputs["x"])]
    assert difference(torch.tensor(400.0), expected, moved) == ""
    assert "expected" in difference(torch.tensor(400.0), expected, moved[:4])
    sure = [expected * (1 + i / 200) for i in range(len(moved))]
    assert "expected" in difference(torch.tensor(400.0), expected, sure)


def _converted(x: torch.Tensor) -> list[torch.Tensor]:
    return [OtherRoundings(seed, bf16=True).converted([x])[0] for seed in range(DOUBTED + 1)]


def test_nearly_equal_numbers_may_become_equal() -> None:
    made = program("x / x.square().sqrt()", "v0 - v0.mean()", x=torch.tensor([1.1, 2.3, 0.7, 5.9]))
    moved = [moved_by(seed, made) for seed in range(RUNS, DOUBTED)]
    zeros = [torch.equal(x, torch.zeros(4)) for x in moved]
    assert any(zeros) and not all(zeros)


def moved_by(seed: int, made: Program) -> torch.Tensor:
    with OtherRoundings(seed, bf16=False):
        return run(made.function(), [made.inputs["x"]], EAGER, False)[0].value

"""The optimizer where the operands of products are values that other ops have just made, and may have split."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from nights import seeds

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.mlir.ttnn import legality
from tt_torch.mlir.ttnn.optimizer import families
from tt_torch.mlir.ttnn.optimizer.choice import Choice, taking

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
STEPS: dict[str, Step] = {
    "product": lambda a, b: a @ b / len(a),
    "product and relu": lambda a, b: torch.relu(a @ b / len(a)),
    "product with columns": lambda a, b: torch.tanh(a @ b.T),
    "product with itself": lambda a, b: torch.sigmoid(a @ a),
    "product and rest": lambda a, b: a + b @ b / len(a),
    "norm": lambda a, b: torch.nn.functional.layer_norm(a, a.shape[-1:]) * b,
    "softmax of rows": lambda a, b: torch.softmax(a, -1) + b,
    "softmax of columns": lambda a, b: torch.softmax(a, -2),
    "halves": lambda a, b: torch.cat([a[: len(a) // 2], b[len(a) // 2 :]]),
    "choice": lambda a, b: torch.where(a > 0, a, b),
}


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Reasons why the library does not take a form that the optimizer weighs. An operand that an op reads twice cannot
    get two places for a moment, so such ops are left out."""
    refused, choices = list[str](), families.choices

    def checked(op: Any, *rest: Any) -> Iterator[Choice]:
        for choice in choices(op, *rest):
            with taking(op, choice):
                reason = legality.refusal(op)
            if reason and len({*op.operands}) == len(op.operands):
                refused.append(f"{op.name}: {reason}")
            yield choice

    monkeypatch.setattr(families, "choices", checked)
    return refused


def compare(function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> None:
    """Level 2 has the values of level 0."""
    plain, ours = (
        tt_torch.compile_model(function, inputs, CompilerConfig(optimization_level=level, **options))(*inputs)
        for level in (0, 2)
    )
    torch.testing.assert_close(ours, plain, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("size", [32, 64, 1024])
def test_operands_of_a_step(name: str, size: int, forms: list[str]) -> None:
    x, y = torch.randn(2, size, size)
    compare(lambda x, y: STEPS[name](torch.relu(x @ y), torch.tanh(y @ x)), x, y, dtype="bf16")
    assert not forms


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("rows", [1024, 4096])
def test_a_softmax_of_rows_that_are_split(dim: int, rows: int, forms: list[str]) -> None:
    layer = torch.nn.Linear(64, 64)
    compare(lambda x: torch.softmax(layer(x), dim), torch.randn(rows, 64), dtype="bf16")
    assert not forms


@pytest.mark.parametrize("seed", seeds(10, 40))
def test_random_graphs(seed: int, forms: list[str]) -> None:
    rng, size = random.Random(seed), random.Random(seed).choice([32, 64, 96, 100, 256])
    torch.manual_seed(seed)
    steps = [(rng.choice([*STEPS]), rng.randrange(2 + i), rng.randrange(2 + i)) for i in range(rng.randint(2, 8))]

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = [x, y]
        for name, a, b in steps:
            values.append(STEPS[name](values[a], values[b]))
        return tuple(values[-2:])

    dtype, arch = rng.choice([None, "bf16"]), rng.choice(["wormhole_b0", "blackhole"])
    compare(function, torch.randn(size, size), torch.randn(size, size), dtype=dtype, arch=arch)
    assert not forms

"""`torch.cond`: each branch is a device program, and only the one that is chosen runs."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from nights import seeds
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.while_loop import while_loop

import tt_torch
from tt_torch.driver.decisions import Branches
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.driver.program import Program

Function = Callable[..., Any]
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
UNARY = (torch.sin, torch.tanh, torch.relu, torch.neg, lambda y: y * 0.5, lambda y: y - 1, lambda y: y.flip(0))
on_the_device = pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[int]]]:
    """Says, for each `cond` that was compiled, which of its programs ran: 0 is the first branch, and 1 the second."""
    made, ran = list[Branches](), list[Program]()
    init, call = Branches.__init__, Program.__call__

    def noted(self: Branches, *args: Any) -> None:
        init(self, *args)
        made.append(self)

    def called(self: Program, inputs: Any) -> Any:
        ran.append(self)
        return call(self, inputs)

    monkeypatch.setattr(Branches, "__init__", noted)
    monkeypatch.setattr(Program, "__call__", called)
    return lambda: [[each.programs.index(program) for program in ran if program in each.programs] for each in made]


def compiled(program: Function, **config: Any) -> Function:
    torch._dynamo.reset()
    options = {"compiler_config": tt_torch.CompilerConfig(**config)}
    return torch.compile(program, backend=tt_torch.backend, options=options)


def signed(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, torch.cos, (x,)) + 1


@on_the_device
def test_one_branch_runs(chosen: Callable[[], list[list[int]]]) -> None:
    program = compiled(signed)
    for x in (X.abs(), -X.abs(), X.abs()):
        torch.testing.assert_close(program(x), signed(x))
    assert chosen() == [[0, 1, 0]]


@on_the_device
def test_sizes_that_change() -> None:
    def sized(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * x.shape[0], lambda x: x.cos() + x.shape[1], (x,))

    torch._dynamo.reset()
    program = torch.compile(sized, backend=tt_torch.backend, dynamic=True)
    for x in (X.abs(), -X.abs(), X[:3].abs(), -X[:, :2].abs()):
        torch.testing.assert_close(program(x), sized(x))


@on_the_device
def test_random_numbers_of_a_branch() -> None:
    dropout = torch.nn.functional.dropout
    program = compiled(lambda x: torch.cond(x.sum() > 0, lambda x: dropout(x, 0.5), lambda x: torch.rand_like(x), (x,)))
    first, second = (program(torch.ones(100)) for _ in range(2))
    assert set(first.tolist()) == {0, 2} and not torch.equal(first, second)
    drawn = program(-torch.ones(100))
    assert 0 <= drawn.min() < drawn.max() < 1


@on_the_device
def test_an_error_of_the_other_branch_is_none() -> None:
    def row(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        inside = i < x.shape[0]
        return torch.cond(inside, lambda x, i: x.index_select(0, i.reshape(1)), lambda x, i: x[:1] * 0, (x, i))

    program = compiled(row)
    for i in (torch.tensor(2), torch.tensor(7), torch.tensor(0)):
        torch.testing.assert_close(program(X, i), row(X, i))


@on_the_device
def test_gradients_come_from_the_branch_that_ran(chosen: Callable[[], list[list[int]]]) -> None:
    program = compiled(signed)
    for x in (X.abs(), -X.abs()):
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        program(ours).square().sum().backward()
        signed(theirs).square().sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
    assert chosen() == [[0, 1], [0, 1]]  # of the forward and of the backward graph


@torch.no_grad()
@on_the_device
def test_weights_of_a_branch_are_read_at_each_call() -> None:
    layer = torch.nn.Linear(3, 3)

    def through(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: layer(x), lambda x: x @ layer.weight, (x,))

    program = compiled(through)
    for x in (X.abs(), -X.abs()):
        torch.testing.assert_close(program(x), through(x))
        layer.weight.mul_(2)
        torch.testing.assert_close(program(x), through(x))


@on_the_device
def test_a_loop_in_a_branch() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        def grown(x: torch.Tensor) -> torch.Tensor:
            return while_loop(lambda y: y.sum() < 99, lambda y: (y * 2 + 1,), (x + 1,))[0]

        return torch.cond(x.sum() < 1, grown, lambda x: x + 1, (x,))

    ours = compiled(program)
    for x in (X - 2, X + 2):
        torch.testing.assert_close(ours(x), program(x))


def test_the_part_of_a_branch_that_the_device_lacks_is_named() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: torch.linalg.eigvalsh(x[:3]) + x, lambda x: x * 2, (x,))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = compiled(program)
        for x in (X.abs(), -X.abs()):
            torch.testing.assert_close(ours(x), program(x))
    ops = {op.op for w in caught if isinstance(w.message, HostFallbackWarning) for op in w.message.ops}
    assert ops == {"aten._linalg_eigh.default"}


def test_large_integers_of_a_branch_are_computed_on_the_cpu() -> None:
    def program(k: torch.Tensor) -> torch.Tensor:
        return torch.cond(k > 0, lambda k: k * 4, lambda k: k - 1, (k,)) + 1

    ours = compiled(program)
    with pytest.warns(ExactnessWarning):
        for k in (5, 2**40, -(2**40), 7):
            assert ours(torch.tensor(k)) == program(torch.tensor(k))


def drawn(seed: int) -> Function:
    """A program of conditions, loops and maps in each other, with random chains of ops between them."""
    draw = random.Random(seed)

    def chain() -> Function:
        ops = [draw.choice(UNARY) for _ in range(draw.randint(1, 3))]

        def apply(y: torch.Tensor) -> torch.Tensor:
            for op in ops:
                y = op(y) + y * 0.25
            return y

        return apply

    def part(depth: int) -> Function:
        kind = draw.choice(("cond", "loop", "map", "chain")) if depth else "chain"
        first, second, limit = part(depth - 1) if depth else chain(), chain(), draw.uniform(-3, 3)
        if kind == "cond":
            return lambda y: torch.cond(y.sum() > limit, lambda y: first(y) * 1, lambda y: second(y) * 1, (y,))
        if kind == "loop":
            steps = draw.randint(0, 3)
            body = lambda i, y: (i + 1, first(y) * 0.5)  # noqa: E731
            return lambda y: while_loop(lambda i, y: i < steps, body, (torch.tensor(0), y * 1))[1]
        if kind == "map":
            return lambda y: map_rows(lambda row: second(row[None])[0], first(y))
        return lambda y: second(first(y))

    parts = [part(2) for _ in range(draw.randint(1, 2))]

    def program(x: torch.Tensor) -> Any:
        results = [x]
        for each in parts:
            results.append(each(results[-1]) + x * 0.5)
        return results[1:]

    return program


@on_the_device
@pytest.mark.parametrize("seed", seeds(3, 8))
def test_random_conditions(seed: int) -> None:
    program = drawn(seed)
    ours = compiled(program)
    for x in (X, X + 1, -X):
        torch.testing.assert_close(ours(x), program(x), rtol=1e-4, atol=1e-4)

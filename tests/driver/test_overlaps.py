"""Inputs that overlap in memory: each call writes to its own places. These places may differ from call to call."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import torch
from nights import seeds

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.overlaps import Group, overlapping
from tt_torch.errors import ArgumentError

Program = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, ...]]
PROGRAMS: dict[str, Program] = {
    "a row, and all after it": lambda r, x: (r.mul_(2), x + 0),
    "all, and the row after it": lambda r, x: (x.mul_(2), r),
    "both": lambda r, x: (r.mul_(2), x.add_(1), r + 0),
    "a part of the row": lambda r, x: (r.mul_(2)[1:], x[1]),
    "without a result of the row": lambda r, x: (r.copy_(x.sum(0)), x * 2)[1:],
    "of its places 6 to 8": lambda r, x: (x.as_strided((3,), (1,), storage_offset=6) * 2, r + 1),
    "a write to its places 7 and 8": lambda r, x: (x.as_strided((2,), (1,), 7).mul_(2), r + x[1]),
    "by a step": lambda r, x: (r[::2].neg_(), x.t()),
}
# The row that a call is given: a view of the matrix, or a tensor of its own.
ROWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "first": lambda x: x[0],
    "last": lambda x: x[-1],
    "own": lambda x: x[1].clone(),
    "column": lambda x: x[:3, 1],
    "between": lambda x: x.view(-1)[2:5],
}


def called(run: Program, row: str, begin: int) -> list[torch.Tensor]:
    """Copies of the results, the results after a later write to the matrix, the matrix's memory, and the row.

    The matrix begins at the place `begin` of its memory.
    """
    memory = torch.arange(12.0 + begin)
    x = memory[begin:].view(4, 3)
    r = ROWS[row](x)
    results = run(r, x)
    before = [y.clone() for y in results]
    x.add_(100)
    return [*before, *results, memory, r]


def same(ours: Program, eager: Program, rows: Sequence[str]) -> None:
    for i, row in enumerate(rows):
        got, expected = (called(run, row, begin=5 * (i % 2)) for run in (ours, eager))
        torch.testing.assert_close(got, expected, msg=lambda m, row=row: f"{row}: {m}")


# Pairs of a program and the row of its first call. Each program has two pairs. After the first call, it sees each row.
FIRST_CALLS = [(name, list(ROWS)[(i + j) % len(ROWS)]) for i, name in enumerate(PROGRAMS) for j in (0, 2)]


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize(("name", "first"), FIRST_CALLS)
def test_each_call_writes_to_its_own_places(name: str, first: str) -> None:
    compiled = torch.compile(PROGRAMS[name], backend=tt_torch.backend)
    same(compiled, PROGRAMS[name], [first, *ROWS, first])


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("seed", seeds(4, 10))
def test_random_programs_of_overlapping_inputs(seed: int) -> None:
    draw = random.Random(seed)
    steps = draw.choices(("r.mul_(2)", "x[1:].mul_(3)", "r[1:].sub_(1)", "x.t()[0].neg_()", "r.copy_(x.sum(0))"), k=3)
    results = draw.choices(("r", "x + 0", "r[1:]", "x", "x.sum()", "r * x"), k=2)
    scope: dict[str, Program] = {}
    exec("def run(r, x):\n    " + "\n    ".join([*steps, f"return {results[0]}, {results[1]}"]), scope)
    rows = draw.choices(list(ROWS), k=4)
    same(torch.compile(scope["run"], backend=tt_torch.backend), scope["run"], rows)


def copies_to_its_transpose(r: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    r.copy_(x.mT)
    x.view(-1).flatten().add_(1)
    return (x,)


def counts(r: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    r.zero_()
    return x[x.sum(-1).nonzero().flatten()], x.reshape(-1)


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@pytest.mark.parametrize(
    ("program", "part"),
    [
        (copies_to_its_transpose, lambda x: x.mT),
        (counts, lambda x: x[0]),  # a shape depends on values
        (lambda r, x: (r.zero_(), x + 1), lambda x: x.unfold(1, 2, 1)),
        (lambda r, x: (r[:, 0].add_(2), x.reshape(-1)), lambda x: x[1:, None, None, ::2]),
        (lambda r, x: (r[1].add_(2), x.reshape(-1)), lambda x: x.expand(2, 3, 3)),
    ],
)
def test_an_input_and_a_part_of_it(program: Program, part: Callable[[torch.Tensor], torch.Tensor]) -> None:
    compiled, seen = torch.compile(program, backend=tt_torch.backend), []
    for run in (program, compiled):
        x = torch.arange(1, 10).view(3, 3)
        results = run(part(x), x)
        seen.append([*results, x])
    torch.testing.assert_close(seen[1], seen[0])


def test_a_family_of_sizes() -> None:
    """Each pair of a size and an overlap has a program of its own."""

    def run(r: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return r.mul_(2), x + 0

    compiled = torch.compile(run, backend=tt_torch.backend, dynamic=True)
    for rows in (4, 5, 6):
        for row in (1, 0, 2):
            seen = []
            for function in (compiled, run):
                x = torch.arange(3.0 * rows).reshape(rows, 3)
                seen.append([*function(x[row], x), x])
            torch.testing.assert_close(*seen)


@pytest.mark.parametrize("program", ["r.mul_(2), x * 2", "x.mul_(2), r * 3", "r.mul_(2)[1:], x * 1"])
def test_gradients(program: str) -> None:
    function: Program = eval(f"lambda r, x: ({program})")
    compiled = torch.compile(function, backend=tt_torch.backend)
    for row in (1, 0):
        seen = []
        for run in (compiled, function):
            w = torch.arange(12.0).reshape(4, 3).requires_grad_()
            x = w * 1
            results = run(x[row], x)
            sum(y.sin().sum() for y in results).backward()
            seen.append([*results, w.grad])
        torch.testing.assert_close(*seen)


def test_gradients_are_refused_without_eager_pytorch() -> None:
    options = BackendOptions(compiler_config=CompilerConfig(fallback="error"))
    compiled = torch.compile(lambda r, x: (r.mul_(2), x * 1), backend=partial(tt_torch.backend, options=options))
    x = torch.ones(4, 3).requires_grad_() * 1
    with pytest.raises(ArgumentError, match="overlap in memory, and that need gradients"):
        compiled(x[1], x)


def test_more_ways_to_overlap_than_programs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that slides over a tensor has a program for each place. Above the limit, a new one replaces another."""
    monkeypatch.setattr("tt_torch.driver.variants.MOST", 2)
    program = PROGRAMS["a row, and all after it"]
    run = torch.compile(program, backend=tt_torch.backend)
    same(run, program, ["first", "last", "first"])
    with pytest.warns(UserWarning, match="sets of places"):
        same(run, program, ["between"])
    same(run, program, ["first", "last"])


def test_a_graph_that_only_reads_has_one_program(made: list[object]) -> None:
    compiled = torch.compile(lambda r, x: r + x, backend=tt_torch.backend)
    x = torch.arange(12.0).reshape(4, 3)
    for row in range(4):
        torch.testing.assert_close(compiled(x[row], x), x[row] + x)
    assert len(made) == 1


def test_which_inputs_overlap() -> None:
    x = torch.zeros(4, 3)
    apart = [x[0], x[1], torch.zeros(2), torch.zeros(0), 5, x[2:2]]
    assert overlapping(apart) == ()
    assert overlapping([x[0], torch.zeros(3), x[1:], x.view(-1)[2:4]]) == (Group((0, 2, 3), (0, 3, 2)),)
    assert overlapping([x, x[3, 2:].view(torch.int32)]) == (Group((0, 1), (0, 11)),)


def transposed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    same = x.mul_(2)
    y.fill_(1)
    x.swapaxes_(0, 1)  # Dynamo leaves this line to Python
    return same


@pytest.mark.filterwarnings("ignore:the graph breaks")
def test_a_written_input_is_returned_itself() -> None:
    """A line behind the graph changes its form, which another view of its memory would not see."""

    def seen(run: Callable[..., torch.Tensor]) -> list[object]:
        x = torch.arange(6.0).view(2, 3)
        result = run(x, x[1])
        return [result, result.shape, result.stride(), result is x]

    torch.testing.assert_close(seen(torch.compile(transposed, backend=tt_torch.backend)), seen(transposed))


def test_a_graph_that_reads_values_writes_to_inputs_that_overlap() -> None:
    def run(i: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        torch.cumsum(part := x[i], 0, out=part)
        return y.split([1, 2], -2)[1]

    def seen(run: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        x = torch.arange(24.0).view(2, 3, 4)
        found = [run(torch.tensor(i), x, x.as_strided((4, 3, 2), (1, 4, 12))) for i in (0, 1)]
        return [*found, x]

    torch.testing.assert_close(seen(torch.compile(run, backend=tt_torch.backend, dynamic=False)), seen(run))

"""Sizes that change: the results are right for each size, and each shape has one program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

import tt_torch
from tt_torch.config import BackendOptions
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.executor import Executor
from tt_torch.driver.observer import Observer


def recording(function: Any, **options: Any) -> tuple[Any, list[Executor]]:
    """Returns the compiled function, and the list of programs, which grows as they are made."""
    programs: list[Executor] = []

    def backend(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return compile_captured(gm, inputs, BackendOptions(), Observer(programs.append, flag=False))

    return torch.compile(function, backend=backend, **options), programs


def model(x: torch.Tensor) -> torch.Tensor:
    return (x.softmax(-1) + x.shape[0]).flatten(1)


# By default, PyTorch captures a graph for the first size only, and then a graph for any size. The last of these calls
# has the first size again. It goes to the second graph, which compiles this size once more.
@pytest.mark.parametrize(("dynamic", "count"), [(True, 3), (False, 3), (None, 4)])
def test_batch_sizes(dynamic: bool | None, count: int) -> None:
    run, programs = recording(model, dynamic=dynamic)
    for batch in (2, 3, 5, 3, 2):
        x = torch.randn(batch, 3, 4)
        torch.testing.assert_close(run(x), model(x))
    assert len(programs) == count


def test_marked_dimension() -> None:
    run, programs = recording(model)
    for batch in (4, 6, 4):
        x = torch.randn(batch, 3, 4)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(run(x), model(x))
    assert len(programs) == 2


def test_parameters_with_dynamic_sizes_stay_resident() -> None:
    linear = torch.nn.Linear(4, 3)
    run, programs = recording(linear, dynamic=True)
    with torch.no_grad():
        for batch in (2, 5, 2):
            x = torch.randn(batch, 4)
            torch.testing.assert_close(run(x), linear(x))
            linear.weight.mul_(1.5)
    assert [p.compiled.kinds.count("parameter") for p in programs] == [2, 2]


def test_sizes_as_results() -> None:
    def sizes(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x.sum(0) * x.shape[0], x.shape[0] + 1

    run, _ = recording(sizes, dynamic=True)
    for batch in (2, 7):
        x = torch.randn(batch, 3)
        total, size = run(x)
        torch.testing.assert_close(total, x.sum(0) * batch)
        assert size == batch + 1


def test_changed_input_with_dynamic_sizes() -> None:
    run, _ = recording(lambda x: x.add_(1), dynamic=True)
    for batch in (2, 7):
        x = torch.zeros(batch, 3)
        run(x)
        assert torch.equal(x, torch.ones(batch, 3))


def test_training_with_dynamic_sizes() -> None:
    linear = torch.nn.Linear(4, 3)
    run, _ = recording(linear, dynamic=True)
    for batch in (2, 5):
        x = torch.randn(batch, 4)
        expected = torch.autograd.grad(linear(x).square().sum(), linear.weight)
        got = torch.autograd.grad(run(x).square().sum(), linear.weight)
        torch.testing.assert_close(got, expected)


def test_a_marked_dimension_that_the_program_fixes_raises() -> None:
    run, _ = recording(lambda x: x + 1 if x.shape[0] == 4 else x - 1)
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(ConstraintViolationError, match=r"marked .* as dynamic"):
        run(x)


def test_the_least_recently_used_shape_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tt_torch.driver.variants.MOST", 2)
    run, programs = recording(lambda x: x * 2, dynamic=True)
    for size in (2, 3, 2):
        run(torch.ones(size))
    with pytest.warns(UserWarning, match="buckets"):
        run(torch.ones(4))
    assert len(programs) == 3
    run(torch.ones(2))  # this size was used later than 3, so its program is still there
    assert len(programs) == 3


def test_numbers_read_from_inputs_are_compiled_for_each_value() -> None:
    """Dynamo leaves such tensors in the graph. Each of their values has a program, up to a limit."""
    padded = torch.compile(lambda x, n: torch.nn.functional.pad(x, (n, n)) * 2, backend=tt_torch.backend)
    x = torch.randn(2, 3)
    for n in (1, 2, 1):
        assert torch.equal(padded(x, torch.tensor(n)), torch.nn.functional.pad(x, (n, n)) * 2)


def increased(n: torch.Tensor) -> None:
    n += 1


@pytest.mark.parametrize(
    "write",
    [
        lambda n: n.add_(1),
        increased,
        lambda n: n.__iadd__(1),
        lambda n: torch.nn.functional.relu(n, inplace=True),
        lambda n: torch.nn.functional.relu(input=n, inplace=True),
        lambda n: torch.add(n, 1, out=n),
        lambda n: torch._foreach_add_([n], 1),
        lambda n: torch.ops.aten.add_.Tensor(n, 1),
        lambda n: torch.ops.aten.add_(n, 1),
    ],
)
def test_a_number_to_which_the_graph_writes_is_none_that_it_reads(write: Callable[[torch.Tensor], object]) -> None:
    """In the past, `n += 1` was lost if the graph also read another number."""

    def model(x: torch.Tensor, n: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
        write(written)
        return torch.nn.functional.pad(x, (n, n)) * 2

    x, now, expected = torch.randn(2, 3), torch.tensor(-3), torch.tensor(-3)
    compiled = torch.compile(model, backend=tt_torch.backend)
    for n in (1, 2):
        assert torch.equal(compiled(x, torch.tensor(n), now), model(x, torch.tensor(n), expected))
        assert torch.equal(now, expected)


def test_floats_are_numbers_with_dynamic_sizes() -> None:
    """Once sizes are dynamic, Dynamo passes floats as tensors: floats of layers, and the float of the call."""
    layers = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Dropout(0.25), torch.nn.LeakyReLU(0.2)).eval()
    run, programs = recording(lambda x, y: layers(x) * y, dynamic=True)
    for batch, number in ((2, 0.5), (3, 0.25), (2, 0.5)):
        x = torch.randn(batch, 4)
        torch.testing.assert_close(run(x, number), layers(x) * number)
    assert len(programs) == 2


def test_negative_zero_and_nan_are_numbers_of_their_own() -> None:
    run, programs = recording(lambda x, y: x.copysign(torch.full_like(x, y)), dynamic=True)
    for size, number, sign in (
        (2, 0.5, 1),
        (3, 0.0, 1),
        (3, -0.0, -1),
        (3, 0.0, 1),
        (3, math.nan, 1),
        (3, math.nan, 1),
    ):
        assert run(torch.ones(size), number).tolist() == [sign] * size
    assert len(programs) == 4


@pytest.mark.parametrize("name", ["windows", "a repeated element", "gaps"])
def test_results_of_changing_sizes_lie_in_memory_as_in_eager(name: str) -> None:
    programs = {
        "windows": lambda x: (x.sin().unfold(0, 2, 1), x + 1),
        "a repeated element": lambda x: (y := (x + 1)[:1].expand(4, -1), y.cummax(0)[1]),
        "gaps": lambda x: (y := x.slice_scatter(x, -2, 0), y[1:]),
    }
    compiled = torch.compile(programs[name], backend=tt_torch.backend)
    for rows, columns in ((3, 4), (5, 4), (6, 7), (5, 4)):
        for x in (torch.randn(rows, columns), torch.randn(columns, rows).t()):
            expected, got = programs[name](x), compiled(x)
            assert [y.stride() for y in got] == [y.stride() for y in expected]
            expected[0][0].fill_(5)
            got[0][0].fill_(5)
            torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("rounding", ["trunc", "floor"])
@pytest.mark.parametrize(("number", "divisor"), [(32, 4), (7, 2), (-7, 2), (7.5, 2), (7, 0.0)])
def test_the_quotient_of_two_numbers(rounding: str, number: float, divisor: float) -> None:
    """PyTorch gives a tensor, which may also be a size. In the past, this sent the whole graph to the host."""

    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        quotient = torch.div(number, divisor, rounding_mode=rounding)
        return quotient, x + quotient, x.view(torch.div(x.shape[0], 4, rounding_mode=rounding), -1)

    x = torch.randn(8)
    run, programs = recording(model, fullgraph=True)
    for result, right in zip(run(x), model(x), strict=True):
        assert result.dtype == right.dtype and torch.equal(result, right)
    assert programs


@pytest.mark.parametrize(
    ("shape", "first", "values"), [((2, 3), 0, (1, 1, 1)), ((2, 3), 1, (1, 1, 1)), ((1,), 0, (1, 1))]
)
def test_one_value_for_a_mask_may_have_any_number_of_dimensions(shape, first, values):
    x, y = torch.zeros(shape), torch.ones(values)
    mask = torch.ones(shape[first:], dtype=torch.bool)

    def written(x, mask, y):
        return torch.ops.aten.index_put(x, [*[None] * first, mask], y)

    assert torch.equal(torch.compile(written, backend=tt_torch.backend)(x, mask, y), written(x, mask, y))

"""Each row of three tables gives the results of eager PyTorch, in compiled programs and on the eager device. The rows
are about integers, booleans, NaN, infinities and the signs of zeros."""

from __future__ import annotations

import warnings
from typing import Any

import booleans_table
import exact_table
import numbers_table
import pytest
import torch
from exact_table import Exact
from torch.utils._pytree import tree_leaves

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver import exact_runner
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.exactness.plan import Float64Warning

ROWS = [
    (name, row)
    for table in (exact_table, numbers_table, booleans_table)
    for name, rows in table.FAMILIES.items()
    for row in rows
]
NAMES = [f"{family}-{row.name}" for family, row in ROWS]

HOW = {ExactnessWarning: "call on the host", HostFallbackWarning: "op on the host"}


@pytest.mark.parametrize(("family", "row"), ROWS, ids=NAMES)
def test_row(family: str, row: Exact) -> None:
    expected = row.fn(*row.inputs)
    run = torch.compile(row.fn, backend=tt_torch.backend, fullgraph=True, dynamic=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = run(*row.inputs)
    kinds = [HOW[w.category] for w in caught if w.category in HOW]
    assert kinds == ([] if row.runs == "device" else [row.runs])
    for value, golden in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        same(value, golden)


@pytest.mark.parametrize(("family", "row"), ROWS, ids=NAMES)
def test_row_on_the_eager_device(family: str, row: Exact) -> None:
    expected = row.fn(*row.inputs)
    with torch.device("tt"):
        got = row.fn(*(x.to("tt") for x in row.inputs))
    for value, golden in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        same(value.cpu(), golden)


# The relative distance of two neighbours, times two for roundings on the way. Float64 is computed in float32.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-5, torch.bfloat16: 2**-7, torch.float16: 2**-10}


def same(value: torch.Tensor, golden: torch.Tensor) -> None:
    assert (value.shape, value.dtype) == (golden.shape, golden.dtype)
    if not golden.dtype.is_floating_point:
        assert torch.equal(value, golden), (value, golden)
        return
    torch.testing.assert_close(value, golden, rtol=TOLERANCE[golden.dtype], atol=1e-6, equal_nan=True)
    zeros = (value == 0) & (golden == 0)
    assert torch.equal(value.signbit()[zeros], golden.signbit()[zeros])


def test_ops_of_the_user() -> None:
    """The name of a user's op and the dtype of its first result say nothing about its values."""
    with torch.library._scoped_library("tt_torch_exact", "DEF") as library:
        library.define("clone(Tensor x) -> Tensor")
        library.define("signs(Tensor x) -> (Tensor, Tensor)")
        library.impl("clone", lambda x: x * 1000003, "CompositeExplicitAutograd")
        library.impl("signs", lambda x: (x > 0, x * 1000003), "CompositeExplicitAutograd")
        ops, x = torch.ops.tt_torch_exact, torch.arange(-5, 15)
        for function in (lambda x: ops.clone(x.clamp(0, 9)) * 1000, lambda x: ops.signs(x)[1] * 1000):
            with pytest.warns(HostFallbackWarning, match="32 bits"):
                got = torch.compile(function, backend=tt_torch.backend)(x)
            assert torch.equal(got, function(x))


def test_one_warning_per_program_names_the_input_and_the_op() -> None:
    run = torch.compile(lambda x, y: y.float() + x * x, backend=tt_torch.backend)
    small, large, y = torch.tensor([3]), torch.tensor([10**6]), torch.tensor([2**20])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in (small, large, small, large):
            assert torch.equal(run(x, y), y.float() + x * x)
    (warning,) = [str(w.message) for w in caught if w.category is ExactnessWarning]
    assert "x (torch.int64) has values in 1000000 .. 1000000" in warning
    assert "aten.mul.Tensor at " in warning
    assert "test_exact.py" in warning


def test_resident_integers_are_checked_once_per_version(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (self.table * self.table)

    looked = []
    of_values = exact_runner.of_values
    monkeypatch.setattr(exact_runner, "of_values", lambda x: looked.append(x) or of_values(x))
    model, x = Counted(), torch.randn(6)
    run = torch.compile(model, backend=tt_torch.backend)
    with torch.no_grad():
        run(x)
        looked.clear()
        run(x)
        assert not looked
        model.table[1] = 10**6
        with pytest.warns(ExactnessWarning):
            torch.testing.assert_close(run(x), model(x))


def test_ahead_of_time_a_second_program_checks_values_that_become_integers() -> None:
    """The compiled program itself has only the results as outputs."""
    model = tt_torch.compile_model(lambda x: (x * 2).to(torch.int64), (torch.ones(3),))
    assert len(model.executor.executable.outputs) == 1
    x = torch.tensor([3e9, -1.5, torch.nan])
    with pytest.warns(ExactnessWarning, match="a float does not fit"):
        assert torch.equal(model(x), (x * 2).to(torch.int64))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactnessWarning)
        assert model(torch.tensor([3e8, 1.5, -1.0])).tolist() == [600000000, 3, -2]


@pytest.mark.parametrize(
    ("function", "warned"),
    [
        (lambda x: x.double(), True),
        (lambda x: x + (torch.ones(3, dtype=torch.float64) * 2).float(), False),  # computed when it is compiled
        (lambda x: x * torch.tensor(0.1, dtype=torch.float64), False),  # computes in the dtype of x
    ],
)
def test_only_float64_that_depends_on_inputs_is_warned_of(function: Any, warned: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.compile(function, backend=tt_torch.backend)(torch.ones(3))
    assert any(w.category is Float64Warning for w in caught) == warned


@pytest.mark.parametrize("fallback", ["host", "strict-dtype"])
def test_float64(fallback: str) -> None:
    def tiny(x: torch.Tensor) -> torch.Tensor:
        return (x.double() + 1e-12) - x.double()

    options = BackendOptions(compiler_config=CompilerConfig(fallback=fallback))
    x = torch.ones(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = torch.compile(tiny, backend=tt_torch.backend, options=options)(x)
    expected = Float64Warning if fallback == "host" else HostFallbackWarning
    assert [w.category for w in caught if w.category in (Float64Warning, HostFallbackWarning)] == [expected]
    assert torch.equal(got, tiny(x) if fallback == "strict-dtype" else torch.zeros(3, dtype=torch.float64))


def test_float16_on_the_way() -> None:
    options = BackendOptions(compiler_config=CompilerConfig(fallback="strict-dtype"))
    x = torch.tensor([1.0001, 70000.0])
    with pytest.warns(HostFallbackWarning, match="float16"):
        got = torch.compile(lambda x: x.half().float() + 1, backend=tt_torch.backend, options=options)(x)
    assert torch.equal(got, x.half().float() + 1)


T, at = torch.arange(15.0).reshape(5, 3), torch.tensor
OUT_OF_RANGE = {
    "index": (lambda x, i: x[i], T, at([1, 7])),
    "negative index": (lambda x, i: x[i], T, at([1, -6])),
    "second index": (lambda x, i, j: x[i, j], T, at([0, 1]), at([1, 3])),
    "second index written": (lambda x, i, j: x.index_put((i, j), at(0.0)), T, at([0, 1]), at([1, -4])),
    "embedding": (lambda x, i: torch.nn.functional.embedding(i, x), T, at([1, 9])),
    "gather": (lambda x, i: x.gather(0, i), T, at([[1, 9, 0]])),
    "negative gather": (lambda x, i: x.gather(0, i), T, at([[1, -1, 0]])),
    "scatter": (lambda x, i: x.scatter(0, i, 1.0), T, at([[1, 9, 0]])),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(0, i, x, "amax"), T, at([[1, 5, 0]])),
    "negative scatter_reduce": (lambda x, i: x.scatter_reduce(0, i, x, "amin"), T, at([[1, -1, 0]])),
    "index_select": (lambda x, i: x.index_select(0, i), T, at([9])),
    "index_copy": (lambda x, i: x.index_copy(0, i, T[:1]), T, at([5])),
    "negative index_copy": (lambda x, i: x.index_copy(0, i, T[:1]), T, at([-1])),
    "index_reduce": (lambda x, i: x.index_reduce(0, i, T[:1], "amax"), T, at([-1])),
    "one row": (lambda x, i: x.index_put((None, i), T[:, :1]), T, at([3])),
    "one row before the first": (lambda x, i: x.index_put((i,), T[:1]), T, at([-6])),
    "put": (lambda x, i: x.put(i, at([1.0])), T, at([15])),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), T, at([0, 5])),
    "index_fill of a tensor": (lambda x, i, v: x.index_fill(1, i, v), T, at([-4]), at(1.0)),
    "division by zero": (lambda x, i: i // (i - 9), T, at([9])),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_values_out_of_range_raise_what_eager_raises(name: str) -> None:
    fn, *inputs = OUT_OF_RANGE[name]
    with pytest.raises(Exception, match="") as eager:
        fn(*inputs)
    with pytest.raises(eager.type):
        torch.compile(fn, backend=tt_torch.backend)(*inputs)


def test_several_indices_within_range_stay_on_the_device() -> None:
    i, j = at([0, -5, 4]), at([2, -3, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactnessWarning)
        assert torch.equal(torch.compile(lambda x, i, j: x[i, j], backend=tt_torch.backend)(T, i, j), T[i, j])

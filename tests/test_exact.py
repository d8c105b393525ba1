"""Each row of exact_table.py: integers, NaN, infinities and the signs of zeros are those of eager PyTorch."""

from __future__ import annotations

import warnings

import pytest
import torch
from exact_table import FAMILIES, Exact
from torch.utils._pytree import tree_leaves

import tt_torch
from tt_torch.dynamo.exactness import ExactnessWarning
from tt_torch.dynamo.partition import HostFallbackWarning

ROWS = [(family, row) for family, rows in FAMILIES.items() for row in rows]

HOW = {ExactnessWarning: "call on the host", HostFallbackWarning: "op on the host"}


@pytest.mark.parametrize(("family", "row"), ROWS, ids=[f"{family}-{row.name}" for family, row in ROWS])
def test_row(family: str, row: Exact) -> None:
    expected = row.fn(*row.inputs)
    run = torch.compile(row.fn, backend=tt_torch.backend, fullgraph=True, dynamic=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = run(*row.inputs)
    kinds = [
        {ExactnessWarning: "call on the host", HostFallbackWarning: "op on the host"}.get(w.category) for w in caught
    ]
    assert [kind for kind in kinds if kind] == ([] if row.runs == "device" else [row.runs])
    for value, golden in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        same(value, golden)


def same(value: torch.Tensor, golden: torch.Tensor) -> None:
    assert (value.shape, value.dtype) == (golden.shape, golden.dtype)
    if not golden.dtype.is_floating_point:
        assert torch.equal(value, golden), (value, golden)
        return
    torch.testing.assert_close(value, golden, rtol=1e-5, atol=1e-6, equal_nan=True)
    zeros = (value == 0) & (golden == 0)
    assert torch.equal(value.signbit()[zeros], golden.signbit()[zeros])


def test_one_warning_per_program_names_the_input_and_the_op() -> None:
    run = torch.compile(lambda x, y: y.float() + x * x, backend=tt_torch.backend)
    small, large, y = torch.tensor([3]), torch.tensor([10**6]), torch.tensor([2**20])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in (small, large, small, large):
            assert torch.equal(run(x, y), y.float() + x * x)
    (warning,) = [str(w.message) for w in caught if w.category is ExactnessWarning]
    assert "x (torch.int64) holds 1000000 .. 1000000" in warning
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
    of_values = tt_torch.dynamo.exactness.of_values
    monkeypatch.setattr(tt_torch.dynamo.exactness, "of_values", lambda x: looked.append(x) or of_values(x))
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

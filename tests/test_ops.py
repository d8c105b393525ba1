"""Each row of op_table.py is compiled and compared with eager PyTorch: shapes, dtypes, values and changed inputs.

Neighbouring rows are functions of one program, because most of the time of a compilation goes into its start. If they
do not compile together, each row compiles alone, so that the row that fails has the error. A test that is selected by
itself compiles alone, too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
import torch
from op_rows import Row, draw
from op_table import FAMILIES, UNSUPPORTED
from torch.utils._pytree import tree_flatten

import tt_torch
from tt_torch.accuracy import calculate_pcc
from tt_torch.config import CompilerConfig
from tt_torch.errors import UnsupportedOpError

ON_DEVICE = {"compiler_config": CompilerConfig(fallback="error")}
CASES = [(family, row, dtype) for family, rows in FAMILIES.items() for row in rows for dtype in row.dtypes]


Case: TypeAlias = tuple[str, Row, torch.dtype]
End: TypeAlias = tuple[Any, list[Any]] | Exception  # the results and the inputs after the call, or the error


def _name(case: Case) -> str:
    family, row, dtype = case
    return f"{family}-{row.name}-{str(dtype)[6:]}"


TOGETHER = int(os.environ.get("ROWS_TOGETHER", "12"))  # the recorder of tests/mutation sets it to 1


class Programs:
    """Runs the cases that are to be tested, those of a program at once, and keeps what each one gives."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.groups = [cases[start : start + TOGETHER] for start in range(0, len(cases), TOGETHER)]
        self.ends: dict[str, End] = {}

    def end(self, case: Case) -> End:
        """The end of a case, which is given once: the memory of results is free after their test."""
        if _name(case) not in self.ends:
            self.run(next(group for group in self.groups if case in group))
        return self.ends.pop(_name(case))

    def run(self, group: Sequence[Case]) -> None:
        try:
            ends: list[End] = compiled(group)
        except Exception as together:
            ends = [alone(case) for case in group]
            if not any(isinstance(end, Exception) for end in ends):
                together.add_note(f"Each of {', '.join(map(_name, group))} compiles alone.")
                ends = [together] * len(group)
        self.ends |= {_name(case): end for case, end in zip(group, ends, strict=True)}


def alone(case: Case) -> End:
    torch._dynamo.reset()
    try:
        return compiled([case])[0]
    except Exception as error:
        return error


def compiled(group: Sequence[Case]) -> list[tuple[Any, list[Any]]]:
    """The results of one program with the functions of a group, and its inputs after the call."""
    functions, inputs = [row.fn for _, row, _ in group], [inputs_of(case) for case in group]
    if len(group) == 1:
        run = torch.compile(functions[0], backend=tt_torch.backend, options=ON_DEVICE, fullgraph=True, dynamic=False)
        return [(run(*inputs[0]), inputs[0])]

    def together(groups: list[list[Any]]) -> list[Any]:
        return [function(*own) for function, own in zip(functions, groups)]  # noqa: B905  (Dynamo reads it)

    run = torch.compile(together, backend=tt_torch.backend, options=ON_DEVICE, fullgraph=True, dynamic=False)
    return list(zip(run(inputs), inputs, strict=True))


def inputs_of(case: Case) -> list[Any]:
    """The inputs of a case, the same each time."""
    _, row, dtype = case
    torch.manual_seed(0)
    return [draw(i, dtype) if isinstance(i, tuple) else i(dtype) for i in row.inputs]


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Programs:
    items = (item for item in request.session.items if getattr(item, "originalname", "") == "test_op")
    return Programs([item.callspec.params["case"] for item in items])


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_op(case: Case, programs: Programs) -> None:
    _, row, _ = case
    theirs = inputs_of(case)
    expected = row.fn(*theirs)
    end = programs.end(case)
    if isinstance(end, Exception):
        raise end
    check(end, (expected, theirs), row.scale)


@pytest.mark.parametrize("row", UNSUPPORTED, ids=lambda row: row.name)
def test_unsupported(row: Row) -> None:
    """With `fallback="error"`, the error names the op. By default, a warning names it and it runs in eager PyTorch."""
    inputs = [draw(i, torch.float32) if isinstance(i, tuple) else i(torch.float32) for i in row.inputs]
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        torch.compile(row.fn, backend=tt_torch.backend, options=ON_DEVICE, dynamic=False)(*inputs)
    assert isinstance(caught.value.inner_exception, UnsupportedOpError)
    assert caught.value.inner_exception.op.startswith(row.name)
    with pytest.warns(UserWarning, match=row.name):
        got = torch.compile(row.fn, backend=tt_torch.backend, dynamic=False)(*inputs)
    check(got, row.fn(*inputs))


def check(got: Any, expected: Any, scale: float = 1.0) -> None:
    """Asserts the same structure, shapes and dtypes, and values that agree within the tolerance of their dtype."""
    (values, structure), (goldens, wanted) = tree_flatten(got), tree_flatten(expected)
    assert structure == wanted
    for value, golden in zip(values, goldens, strict=True):
        assert (value.shape, value.dtype) == (golden.shape, golden.dtype)
        _compare(value, golden, scale)


def _compare(value: torch.Tensor, golden: torch.Tensor, scale: float) -> None:
    if golden.is_complex():
        value, golden = torch.view_as_real(value.resolve_conj()), torch.view_as_real(golden.resolve_conj())
    if not golden.dtype.is_floating_point:
        assert torch.equal(value, golden)
    elif golden.dtype in (torch.float32, torch.float64):
        torch.testing.assert_close(value, golden, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)
    elif golden.numel() < 4:  # too few for a correlation
        torch.testing.assert_close(value, golden, rtol=2e-2, atol=2e-2, equal_nan=True)
    else:
        assert calculate_pcc(value, golden) >= 0.999

"""Each row of op_table.py is compiled and compared with eager PyTorch: shapes, dtypes, values and changed inputs.

Neighbouring rows are functions of one program (`row_programs.py`). A row that is selected by itself compiles alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
import torch
from nights import often_if
from op_rows import Row, draw
from op_table import FAMILIES, UNSUPPORTED
from row_programs import Programs, together
from torch.utils._pytree import tree_flatten

import tt_torch
from tt_torch.accuracy import calculate_pcc
from tt_torch.config import CompilerConfig
from tt_torch.errors import UnsupportedOpError

ON_DEVICE = {"compiler_config": CompilerConfig(fallback="error")}
CASES = [(family, row, dtype) for family, rows in FAMILIES.items() for row in rows for dtype in row.dtypes]


Case: TypeAlias = tuple[str, Row, torch.dtype]


def _name(case: Case) -> str:
    family, row, dtype = case
    return f"{family}-{row.name}-{str(dtype)[6:]}"


BY_NAME = {_name(case): case for case in CASES}


def compiled(names: Sequence[str]) -> list[tuple[Any, list[Any]]]:
    """For each case, its results and its inputs after the call. All functions are compiled as one program."""
    functions, inputs = [BY_NAME[name][1].fn for name in names], [inputs_of(BY_NAME[name]) for name in names]
    if len(names) == 1:  # as the row is written
        run = torch.compile(functions[0], backend=tt_torch.backend, options=ON_DEVICE, fullgraph=True, dynamic=False)
        return [(run(*inputs[0]), inputs[0])]
    function = together(functions)
    run = torch.compile(function, backend=tt_torch.backend, options=ON_DEVICE, fullgraph=True, dynamic=False)
    return list(zip(run(*inputs), inputs, strict=True))


def inputs_of(case: Case) -> list[Any]:
    """The inputs of a case, the same each time."""
    _, row, dtype = case
    torch.manual_seed(0)
    return [draw(i, dtype) if isinstance(i, tuple) else i(dtype) for i in row.inputs]


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Programs:
    items = (item for item in request.session.items if getattr(item, "function", None) is test_op)
    return Programs([_name(item.callspec.params["case"]) for item in items], compiled)


def _is_often(case: Case) -> bool:
    """Almost the same program is compiled in bfloat16 as in float32, so most rows in bfloat16 run only at night."""
    _, row, dtype = case
    return dtype is not torch.bfloat16 or torch.float32 not in row.dtypes or zlib.crc32(_name(case).encode()) % 3 == 0


@pytest.mark.parametrize("case", often_if(_is_often, ((case,) for case in CASES)), ids=_name)
def test_op(case: Case, programs: Programs) -> None:
    theirs = inputs_of(case)
    expected = case[1].fn(*theirs)
    check(programs.end(_name(case)), (expected, theirs), case[1].scale)


@pytest.mark.parametrize("row", UNSUPPORTED, ids=lambda row: row.name)
def test_unsupported(row: Row) -> None:
    """With `fallback="error"`, the error names the op. By default, a warning names it, and eager PyTorch runs it."""
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

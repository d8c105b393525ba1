"""The largest matrices that are factorized on the device, and the number of device ops that this takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tt_torch
from benchmarks.linalg import CASES, matrix
from tt_torch.dynamo.decompositions.linalg import LARGEST, UNROLLED
from tt_torch.errors import UnsupportedOpError
from tt_torch.wire.calls import device_ops
from tt_torch.wire.decode import decode

aten = torch.ops.aten
MOST_OPS = 600
# The ops that need the most device ops in each family of factorizations.
HEAVIEST = [aten.linalg_cholesky_ex.default, aten.cholesky_solve.default, aten._linalg_solve_ex.default]
HEAVIEST += [aten.linalg_lu.default, aten.linalg_qr.default]


def compiled(op: Any, size: int) -> Any:
    case = CASES[op]
    return tt_torch.compile_model(lambda *inputs: op(*inputs, **case.options), case.inputs(matrix(size)))


def test_the_benchmark_measures_each_op() -> None:
    assert set(CASES) == UNROLLED
    assert {case.factors for case in CASES.values()} == set(LARGEST)


@pytest.mark.parametrize("op", HEAVIEST, ids=str)
def test_the_largest_matrices_take_few_device_ops(op: Any) -> None:
    message = decode(compiled(op, LARGEST[CASES[op].factors]).binary)
    assert MOST_OPS / 2 < sum(1 for _ in device_ops(message)) <= MOST_OPS


@pytest.mark.parametrize("op", CASES, ids=str)
def test_larger_ones_are_left_to_the_host(op: Any) -> None:
    with pytest.raises(UnsupportedOpError, match="the device has no loops, and this size or form is not unrolled") as e:
        compiled(op, LARGEST[CASES[op].factors] + 1)
    assert e.value.op == str(op)


@pytest.mark.parametrize("name", ["cholesky", "inv", "qr"])
def test_a_wide_batch_of_small_matrices_is_factorized_on_the_device(name: str) -> None:
    """The limit is on the smaller side of a matrix, and a batch is one program."""
    x = matrix(6).expand(40, 6, 6) + torch.rand(40, 1, 1)
    x = x[..., :5, :5] if name != "qr" else torch.cat([x] * 4, -1)
    function = getattr(torch.linalg, name)
    found = tt_torch.compile_model(lambda x: function(x), (x,))(x)
    torch.testing.assert_close(found, function(x), rtol=1e-4, atol=1e-4)

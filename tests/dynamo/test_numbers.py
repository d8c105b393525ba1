"""Eager PyTorch refuses numbers that the dtype of the elements does not have. They are errors here, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tt_torch
from tt_torch.errors import NumberError
from tt_torch.torch_private.dynamo import BackendCompilerFailed

MASK, PLACE = torch.tensor([True, False, True]), torch.tensor([0, 2])
OPS: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "full": lambda x, n: torch.full((3,), n, dtype=x.dtype),
    "full_like": torch.full_like,
    "new_full": lambda x, n: x.new_full((3,), n),
    "fill": torch.fill,
    "fill_": lambda x, n: x.clone().fill_(n),
    "fill_diagonal_": lambda x, n: x.reshape(3, 1).clone().fill_diagonal_(n),
    "masked_fill": lambda x, n: x.masked_fill(MASK, n),
    "index_fill": lambda x, n: x.index_fill(0, PLACE, n),
    "scatter": lambda x, n: x.scatter(0, PLACE, n),
    "scatter of one": lambda x, n: x.scatter(0, PLACE[:1], n),
    "alpha": lambda x, n: x.add(x + 1, alpha=n),
    "alpha of sub": lambda x, n: x.sub(x + 1, alpha=n),
    "pad": lambda x, n: torch.nn.functional.pad(x, (1, 1), value=n),
    "clamp": lambda x, n: x.clamp(max=n),
    "pow": torch.pow,
}
NUMBERS = {
    torch.uint8: (255, 256, -1, -256, 1.5, 1e10),
    torch.int16: (2**15 - 1, 2**15, -(2**15) - 1),
    torch.float16: (65504, 70000.0),
    torch.float32: (1e300, float("inf")),
}


@pytest.mark.parametrize("name", OPS)
def test_the_same_numbers_are_taken_as_in_eager(name: str) -> None:
    refused = 0
    for dtype, numbers in NUMBERS.items():
        x, taken = torch.zeros(3, dtype=dtype), {}
        for number in numbers:
            try:
                taken[number] = OPS[name](x, number)
            except RuntimeError:
                refused += 1
                torch._dynamo.reset()
                run = torch.compile(lambda x, n=number: OPS[name](x, n), backend=tt_torch.backend)
                with pytest.raises(
                    (BackendCompilerFailed, RuntimeError), match=r"does not take|cannot be (converted|safely cast)"
                ):
                    run(x)
        torch._dynamo.reset()
        run = torch.compile(lambda x, taken=tuple(taken): [OPS[name](x, n) for n in taken], backend=tt_torch.backend)
        torch.testing.assert_close(run(x), [*taken.values()])
    assert refused >= 5


@pytest.mark.parametrize("name", ["clamp", "pow", "alpha"])
def test_only_fills_of_a_single_element_of_float16_take_any_number(name: str) -> None:
    x = torch.ones(1, dtype=torch.float16)
    filled = torch.compile(torch.fill, backend=tt_torch.backend)(x, 1e10)
    assert filled.tolist() == torch.fill(x, 1e10).tolist() == [float("inf")]
    with pytest.raises(RuntimeError, match="cannot be converted"):
        OPS[name](x, 10**10)
    with pytest.raises(BackendCompilerFailed, match="does not take 10000000000"):
        torch.compile(lambda x: OPS[name](x, 10**10), backend=tt_torch.backend)(x)


def test_the_error_names_op_number_and_line() -> None:
    run = torch.compile(lambda x: torch.full_like(x, 300), backend=tt_torch.backend)
    with pytest.raises(BackendCompilerFailed) as raised:
        run(torch.zeros(3, dtype=torch.uint8))
    assert isinstance(raised.value.inner_exception, NumberError)
    message = r"aten.full_like.default does not take 300 for torch.uint8\n  at .*test_numbers.py:\d+"
    assert raised.match(message)


EDGES = (
    torch.tensor([1, 2, 5, 200], dtype=torch.uint8), torch.tensor([-100, 1, 2], dtype=torch.int8),
    torch.tensor([1, 2, 5]), *(torch.tensor([1, 2, 5]).to(x) for x in (torch.float32, torch.half, torch.bfloat16)),
)  # fmt: skip
PLACED = (
    666,
    2.5,
    -3,
    True,
    2.0000001,
    torch.tensor(666),
    torch.tensor(2.5),
    torch.tensor(2**40),
    torch.tensor([257, 3]),
)


@pytest.mark.filterwarnings("ignore")  # 2**40 beside edges of 64 bits is computed on the host
@pytest.mark.parametrize("value", PLACED, ids=str)
@pytest.mark.parametrize("edges", EDGES, ids=lambda edges: str(edges.dtype))
def test_places_among_edges_of_another_dtype(edges: torch.Tensor, value: float | torch.Tensor) -> None:
    """Eager PyTorch compares in the common dtype. In this dtype, a single value has the type of the edges."""
    torch._dynamo.reset()
    got = torch.compile(torch.searchsorted, backend=tt_torch.backend)(edges, value)
    assert torch.equal(got, torch.searchsorted(edges, value))

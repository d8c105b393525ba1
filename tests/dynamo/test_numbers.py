"""Numbers that eager PyTorch refuses, because the dtype of the elements does not have them, are errors here, too."""

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
        x = torch.zeros(3, dtype=dtype)
        for number in numbers:
            torch._dynamo.reset()
            run = torch.compile(lambda x, n=number: OPS[name](x, n), backend=tt_torch.backend)
            try:
                expected = OPS[name](x, number)
            except RuntimeError:
                refused += 1
                with pytest.raises(
                    (BackendCompilerFailed, RuntimeError), match=r"does not take|cannot be (converted|safely cast)"
                ):
                    run(x)
            else:
                torch.testing.assert_close(run(x), expected)
    assert refused >= 5


def test_the_error_names_op_number_and_line() -> None:
    run = torch.compile(lambda x: torch.full_like(x, 300), backend=tt_torch.backend)
    with pytest.raises(BackendCompilerFailed) as raised:
        run(torch.zeros(3, dtype=torch.uint8))
    assert isinstance(raised.value.inner_exception, NumberError)
    message = r"aten.full_like.default does not take 300 for torch.uint8\n  at .*test_numbers.py:\d+"
    assert raised.match(message)

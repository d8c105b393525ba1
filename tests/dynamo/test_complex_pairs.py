"""Complex numbers as pairs of real tensors: the op table has the ops, this file the pairs themselves."""

from __future__ import annotations

import pytest
import torch

from tt_torch.dynamo.complex_pairs.pairs import Pair, pair


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("x", [2, 0.1, 0.1 + 0.3j, torch.tensor([1, 2])], ids=str)
def test_numbers_and_real_tensors_take_the_dtype_of_a_pair(x: complex | torch.Tensor, dtype: torch.dtype) -> None:
    made = pair(x, Pair(torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=dtype)))
    expected = torch.as_tensor(x).to(torch.complex128)
    assert made.re.dtype is made.im.dtype is dtype
    torch.testing.assert_close(torch.complex(made.re.double(), made.im.double()), expected, rtol=1e-3, atol=0)

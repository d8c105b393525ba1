"""Rounding to bfloat16 gives PyTorch's numbers."""

from __future__ import annotations

import numpy as np
import torch

from tt_torch.wire.bfloat16 import rounded


def test_numbers_are_rounded_to_the_nearest_one() -> None:
    drawn = np.random.default_rng(5).integers(0, 2**32, 3000, dtype=np.uint64).astype(np.uint32)
    ties = drawn & 0xFFFF0000 | 0x8000
    ends = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7F800001, 0x7F7FFFFF, 0xFF7FFFFF, 1], np.uint32)
    values = np.concatenate([drawn, ties, ends]).view(np.float32)
    expected = torch.from_numpy(values).bfloat16().double()
    found = torch.tensor([rounded(x) for x in values], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(found.signbit()[~found.isnan()], expected.signbit()[~expected.isnan()])

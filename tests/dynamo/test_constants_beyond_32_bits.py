"""The host computes constants. Integers beyond 32 bits in these computations are therefore no reason to refuse."""

from __future__ import annotations

import torch

import tt_torch


def test_a_logarithm_of_zero_becomes_an_integer() -> None:
    """The buckets of relative positions in T5: the logarithm of 0 becomes -2**63, which a condition leaves out."""

    def buckets(x: torch.Tensor) -> torch.Tensor:
        position = torch.arange(6)[None, :] - torch.arange(6)[:, None]
        large = 2 + (torch.log(position.abs().float() / 2) * 3).to(torch.long).clamp(max=5)
        return x[torch.where(position.abs() < 2, position.abs(), large)]

    x = torch.randn(8)
    compiled = torch.compile(buckets, backend=tt_torch.backend, options={"fallback": "error"})
    torch.testing.assert_close(compiled(x), buckets(x), rtol=0, atol=0)

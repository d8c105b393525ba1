"""Decompositions of custom ops that other packages define."""

from __future__ import annotations

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.dynamo.decompositions.custom_ops import grouped_matmul


@pytest.mark.parametrize("ends", [[2, 2, 5], [0, 0, 6], [1, 3, 4]])
def test_grouped_matmul_is_what_transformers_defines(ends: list[int]) -> None:
    pytest.importorskip("transformers.integrations.moe")
    x, weight, offs = torch.randn(6, 4), torch.randn(3, 4, 2), torch.tensor(ends, dtype=torch.int32)
    op = torch.ops.transformers.grouped_mm_fallback
    torch.testing.assert_close(grouped_matmul(x, weight, offs), op(x, weight, offs))
    strict = {"compiler_config": CompilerConfig(fallback="error")}
    compiled = torch.compile(lambda *a: op(*a), backend=tt_torch.backend, fullgraph=True, options=strict)
    torch.testing.assert_close(compiled(x, weight, offs), op(x, weight, offs))


def test_the_permutation_of_a_sort_is_inverted_on_the_device() -> None:
    """Mixtures of experts write indices into an empty tensor, then read by them."""

    def inverse(x: torch.Tensor) -> torch.Tensor:
        permutation = x.argsort()
        inverted = torch.empty_like(permutation)
        inverted[permutation] = torch.arange(permutation.shape[0])
        return x[permutation][inverted]

    strict = {"compiler_config": CompilerConfig(fallback="error")}
    compiled = torch.compile(inverse, backend=tt_torch.backend, fullgraph=True, options=strict)
    x = torch.randn(7)
    assert torch.equal(compiled(x), x)

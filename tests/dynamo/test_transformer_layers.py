"""torch.nn's transformer layers. In inference, eager PyTorch runs each of them as one fused op."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.config import CompilerConfig

PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
ALL_OF_ONE = torch.tensor([[True] * 5, [False] * 3 + [True] * 2])  # eager gives NaN for the first text
CAUSAL = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float32) == -torch.inf


def check(module: nn.Module, *inputs: torch.Tensor, **keywords: object) -> None:
    strict = {"compiler_config": CompilerConfig(fallback="error")}
    compiled = torch.compile(module, backend=tt_torch.backend, fullgraph=True, options=strict)
    with torch.no_grad():
        torch.testing.assert_close(
            compiled(*inputs, **keywords), module(*inputs, **keywords), rtol=1e-4, atol=1e-5, equal_nan=True
        )


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(activation: str, norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(
        8, 2, dim_feedforward=16, activation=activation, norm_first=norm_first, batch_first=True
    ).eval()
    nn.init.normal_(layer.norm1.bias)
    check(layer, torch.randn(2, 5, 8))


@pytest.mark.parametrize(
    "masks", [{"src_key_padding_mask": PADDING}, {"src_mask": CAUSAL}, {"src_key_padding_mask": ALL_OF_ONE}]
)
def test_masks(masks: dict[str, torch.Tensor]) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True).eval()
    check(layer, torch.randn(2, 5, 8), **masks)


@pytest.mark.parametrize("options", [{}, {"need_weights": False}, {"average_attn_weights": False}])
def test_attention(options: dict[str, bool]) -> None:
    x = torch.randn(2, 5, 8)
    check(nn.MultiheadAttention(8, 2, batch_first=True).eval(), x, x, x, key_padding_mask=PADDING, **options)

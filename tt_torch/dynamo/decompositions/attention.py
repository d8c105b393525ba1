"""Attention: its backward pass, and the fused ops of torch.nn's transformer layers in inference. The fused ops are
decomposed, so that a later pass finds TTNN's attention.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tt_torch.dynamo import composites
from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten

_PADDING = 1  # mask_type of a mask (batch, length); 0: (length, length), 2: (batch, heads, length, length)


@decomposes(aten._native_multi_head_attention.default)
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Query, key and value are (batch, length, embed_dim). Returns a result of this shape and, if needed, the weights
    (batch, [heads,] length, length)."""
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    projected = [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]
    q, k, v = (x.unflatten(-1, (num_head, -1)).transpose(1, 2) for x in projected)
    if mask is not None:
        mask = mask.to(torch.bool)  # true, or any nonzero number, marks a position that is left out
        mask = mask[:, None, None, :] if mask_type == _PADDING else mask
    if need_weights:
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
        attention = (scores if mask is None else scores.masked_fill(mask, -math.inf)).softmax(-1)
        heads = attention @ v
    else:
        attention = query.new_empty(0)
        # F.scaled_dot_product_attention gives 0 to a query that sees no key, but this op gives NaN.
        hidden = None if mask is None else torch.where(mask, -math.inf, 0.0).to(q.dtype)
        scale = 1 / math.sqrt(q.shape[-1])
        heads = composites.scaled_dot_product_attention(q, k, v, hidden, is_causal=False, scale=scale)
    if need_weights and average_attn_weights:
        attention = attention.mean(1)
    return F.linear(heads.transpose(1, 2).flatten(2), proj_weight, proj_bias), attention


@decomposes(aten._transformer_encoder_layer_fwd.default)
def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    def attend(x: Tensor) -> Tensor:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type)[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else hidden.relu(), ffn_weight_2, ffn_bias_2)

    norms = ((norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2))
    x = src
    for part, (weight, bias) in zip((attend, feed_forward), norms, strict=True):
        if norm_first:
            x = x + part(F.layer_norm(x, (embed_dim,), weight, bias, eps))
        else:
            x = F.layer_norm(x + part(x), (embed_dim,), weight, bias, eps)
    return x


@decomposes(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients. The attention weights are computed again from the operands, because the forward pass is one op of
    the device, which returns neither scores nor logsumexp. PyTorch uses this op only without dropout."""
    kind, heads, groups = query.dtype, query.shape[1], key.shape[1]
    q, k, v, grad, out = (x.to(torch.promote_types(kind, torch.float32)) for x in (query, key, value, grad, out))
    k, v = (x.repeat_interleave(heads // groups, 1) if heads != groups else x for x in (k, v))
    scale = scale if scale is not None else 1 / math.sqrt(q.shape[-1])
    weights = aten._safe_softmax(_masked(q @ k.mT * scale, attn_mask, is_causal), -1)  # 0 if no key is seen
    grad_weights = grad @ v.mT
    grad_scores = weights * (grad_weights - (grad * out).sum(-1, keepdim=True)) * scale
    results = [grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad]
    if heads != groups:
        results[1:] = (x.unflatten(1, (groups, heads // groups)).sum(2) for x in results[1:])
    return tuple(x.to(kind) for x in results)


def _masked(scores: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    if is_causal:
        rows, columns = scores.shape[-2:]
        hidden = torch.arange(columns).unsqueeze(0) > torch.arange(rows).unsqueeze(1)
        scores = torch.where(hidden, -math.inf, scores)
    if mask is None:
        return scores
    return torch.where(mask, scores, -math.inf) if mask.dtype is torch.bool else scores + mask

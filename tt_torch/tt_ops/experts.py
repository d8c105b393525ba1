"""Ops of mixtures of experts on several chips, as a program on one chip sees them: all experts are here.

`expert_mapping` (1, 1, experts, chips) says which chip has which expert, and `cluster_axis` along which axis of a mesh
the chips are; on one chip, neither is read. `metadata` has the experts of each token: (..., chosen).
"""

from __future__ import annotations

import torch

from tt_torch.tt_ops.registry import formula, require, sizes

Tensor = torch.Tensor


@formula
def all_to_all_dispatch(
    input_tensor: Tensor, expert_indices: Tensor, expert_mapping: Tensor, num_devices: int = 1, cluster_axis: int = 0
) -> tuple[Tensor, Tensor]:
    """The tokens (1, batch * num_devices, length, width) and their experts, as each of the chips gets them."""
    name, got = "all_to_all_dispatch", sizes(input_tensor=input_tensor, expert_indices=expert_indices)
    three = input_tensor.dim() == 3 or (input_tensor.dim() == 4 and input_tensor.shape[1] == 1)
    require(three, name, got, "input_tensor (batch, length, width) or (batch, 1, length, width)")
    batch, length, width = input_tensor.shape[0], input_tensor.shape[-2], input_tensor.shape[-1]
    chosen = expert_indices.shape[-1] if expert_indices.dim() else 0
    forms = [(batch * length, chosen), (batch, length, chosen), (batch, 1, length, chosen)]
    require(tuple(expert_indices.shape) in forms, name, got, "expert_indices with the experts of each token")
    tokens = input_tensor.reshape(1, batch, length, width).repeat(1, num_devices, 1, 1)
    return tokens, expert_indices.reshape(1, batch, length, chosen).repeat(1, num_devices, 1, 1)


@formula
def all_to_all_combine(
    input_tensor: Tensor,
    expert_metadata: Tensor,
    expert_mapping: Tensor,
    num_devices: int = 1,
    cluster_axis: int = 0,
    num_experts_per_tok: int = 2,
    output_shard_dim: int = 1,
) -> Tensor:
    """The results of each token's experts, of shape (chosen, tokens, 1, width) or (chosen, 1, tokens, width).

    With several chips, these are the tokens of the first chip. An expert that is not here gives zeros.
    """
    name, chosen = "all_to_all_combine", num_experts_per_tok
    got = sizes(input_tensor=input_tensor, expert_metadata=expert_metadata)
    require(output_shard_dim in (1, 2), name, f"output_shard_dim={output_shard_dim}", "1 or 2")
    _require_metadata(name, got, expert_metadata)
    tokens = expert_metadata.shape[2]
    require(chosen <= expert_metadata.shape[3], name, f"num_experts_per_tok={chosen} and {got}", "as many experts")
    require(tokens % num_devices == 0, name, f"num_devices={num_devices} and {got}", "as many tokens on each chip")
    fits = input_tensor.dim() == 4 and input_tensor.shape[1] * input_tensor.shape[2] == tokens
    require(fits, name, got, "input_tensor (experts, batch, length, width) of all tokens")
    own = tokens // num_devices
    experts = expert_metadata[0, 0, :own, :chosen].long().t()
    here = (experts >= 0) & (experts < input_tensor.shape[0])
    known = experts.clamp(0, input_tensor.shape[0] - 1)
    found = input_tensor.flatten(1, 2)[known, torch.arange(own, device=known.device)]
    return torch.where(here.unsqueeze(2), found, 0).unsqueeze(3 - output_shard_dim)


@formula
def moe_expert_token_remap(
    topk_tensor: Tensor,
    expert_mapping: Tensor,
    expert_metadata: Tensor,
    num_devices: int = 1,
    reduction_size: int = 32,
) -> tuple[Tensor, Tensor]:
    """The scores of the chosen experts (1, 1, tokens, experts), and zeros for the others; and which experts are chosen.

    The second result (1, 1, blocks, experts) has a one for each expert that a token of the block chose. A block has
    `reduction_size` tokens. It is a sparsity for `sparse_matmul`.
    """
    name, got = "moe_expert_token_remap", sizes(topk_tensor=topk_tensor, expert_metadata=expert_metadata)
    _require_metadata(name, got, expert_metadata)
    require(reduction_size > 0, name, f"reduction_size={reduction_size}", "at least 1")
    tokens, experts = expert_metadata.shape[2], topk_tensor.shape[-1] if topk_tensor.dim() else 0
    repeated = topk_tensor if topk_tensor.dim() == 4 else topk_tensor.reshape(-1, experts).repeat(num_devices, 1)
    require(repeated.numel() == tokens * experts, name, got, "topk_tensor with the scores of all tokens")
    scores, chosen = repeated.reshape(tokens, experts), expert_metadata[0, 0].long()
    mapping = torch.zeros_like(scores).scatter(1, chosen, scores.gather(1, chosen))
    ones = scores.new_zeros(tokens, experts).scatter(1, chosen, 1.0)
    padded = torch.nn.functional.pad(ones, (0, 0, 0, -tokens % reduction_size))
    return mapping[None, None], padded.reshape(-1, reduction_size, experts).amax(1)[None, None]


def _require_metadata(name: str, got: str, metadata: Tensor) -> None:
    require(metadata.dim() == 4 and metadata.shape[:2] == (1, 1), name, got, "expert_metadata (1, 1, tokens, chosen)")

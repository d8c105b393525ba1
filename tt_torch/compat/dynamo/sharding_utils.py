"""Old names: `tt_torch.dynamo.sharding_utils`. No tensor is ever sharded, because a program runs on one chip."""

import torch

from tt_torch.compat import refused

__all__ = ["get_shard_map_size", "get_sharding", "mark_sharding", "setup_xla_spmd_environment"]

_WHY = "A tensor is on one chip; device_map puts the parts of a model on several chips: docs/stages.md."
mark_sharding = refused("tt_torch.dynamo.sharding_utils.mark_sharding", _WHY)
setup_xla_spmd_environment = refused("tt_torch.dynamo.sharding_utils.setup_xla_spmd_environment", _WHY)


def get_sharding(tensor: torch.Tensor) -> None:
    """The sharding of a tensor, which is always None."""


def get_shard_map_size() -> int:
    """The number of tensors with a sharding, which is always 0."""
    return 0

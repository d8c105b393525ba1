"""Old names: `tt_torch.dynamo.sharding_utils`, which belong to torch_xla. Tensors are split as DTensors here."""

import torch

from tt_torch.compat import refused

__all__ = ["get_shard_map_size", "get_sharding", "mark_sharding", "setup_xla_spmd_environment"]

_WHY = "tt_torch.mark_sharding(tensor, mesh, spec) splits a tensor over a mesh of chips: docs/many_chips.md."
mark_sharding = refused("tt_torch.dynamo.sharding_utils.mark_sharding", _WHY)
setup_xla_spmd_environment = refused("tt_torch.dynamo.sharding_utils.setup_xla_spmd_environment", _WHY)


def get_sharding(tensor: torch.Tensor) -> None:
    """The sharding that torch_xla has for a tensor, which is always None."""


def get_shard_map_size() -> int:
    """The number of tensors with a sharding of torch_xla, which is always 0."""
    return 0

"""Steps of optimizers with fused=True: on a CPU they change parameters without a new version.

Tensors that are kept on a device are found to be changed by their version. So it is counted up after such a step, for
tensors that were ever put on a device; those of other programs are left as PyTorch leaves them.
"""

from __future__ import annotations

import functools

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tt_torch.torch_private.marks import never_traced


def watch(tensor: torch.Tensor) -> None:
    """From now on fused steps count up the tensor's version."""
    _register_hook()
    tensor.tt_resident = True  # type: ignore[attr-defined]


@functools.cache
def _register_hook() -> None:
    register_optimizer_step_post_hook(_count_up)


def _count_up(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """Dynamo traces this with a compiled step of any backend: it is in words that Dynamo knows."""
    for group in optimizer.param_groups:
        if group.get("fused") and (resident := [p for p in group["params"] if hasattr(p, "tt_resident")]):
            count_up(resident)


@never_traced("versions are counted up after the step")  # in a graph of AOTAutograd it would be lost
def count_up(tensors: list[torch.Tensor]) -> None:
    torch.autograd.graph.increment_version(tensors)

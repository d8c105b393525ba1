"""Counts up versions after the steps of optimizers with fused=True, which change parameters without a new version.

The version of a tensor that is kept on a device shows whether it has changed. So the version is counted up after such a
step, but only for tensors that were once put on a device. All other tensors are left unchanged.
"""

from __future__ import annotations

import functools

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tt_torch.torch_private.marks import never_traced


def watch(tensor: torch.Tensor) -> None:
    """Makes fused steps count up the tensor's version from now on."""
    _register_hook()
    tensor.tt_resident = True  # type: ignore[attr-defined]


@functools.cache
def _register_hook() -> None:
    register_optimizer_step_post_hook(_count_up)


def _count_up(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """The hook after a step. Dynamo traces it in a compiled step of any backend, so it uses only what Dynamo knows."""
    for group in optimizer.param_groups:
        if group.get("fused") and (resident := [p for p in group["params"] if hasattr(p, "tt_resident")]):
            count_up(resident)


@never_traced("versions are counted up after the step")  # AOTAutograd would drop it from a graph
def count_up(tensors: list[torch.Tensor]) -> None:
    torch.autograd.graph.increment_version(tensors)

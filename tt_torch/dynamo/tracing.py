"""How PyTorch traces for the device where it would trace otherwise for a CPU.

Recurrent layers unroll, optimizers with fused=True are traced in their foreach form, operands on the CPU are copied
where others are on the device, and seeds of random numbers are kept for the backward pass. The first three are
settings of Dynamo. They hold only while it traces a frame for a backend that `traced_for_device` marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.optim import adagrad, adam, sgd
from torch.utils.checkpoint import CheckpointPolicy

from tt_torch.dynamo.decompositions.random import SEED
from tt_torch.dynamo.mixed_devices import run_node
from tt_torch.runtime import fused_steps
from tt_torch.torch_private import dynamo
from tt_torch.torch_private.aot import default_partition

FUSED = (adagrad, adam, sgd)  # modules of the optimizers that have a fused form


@contextmanager
def _settings() -> Iterator[None]:
    instead = {dynamo.fused_step(module): _step_of(dynamo.for_each_step(module)) for module in FUSED}
    instead[fused_steps.count_up] = lambda tensors: None  # a program of ours counts up what it changes
    with dynamo.recurrent_layers_unrolled(), dynamo.nodes_run_by(run_node), dynamo.traced_instead(instead):
        yield


traced_for_device = dynamo.traced_within(_settings)


def partition(joint: GraphModule, inputs: Sequence[Any], **facts: Any) -> tuple[GraphModule, GraphModule]:
    """AOTAutograd's, which keeps the seeds: random numbers that checkpointing computes anew must be the same."""
    for node in joint.graph.find_nodes(op="call_function", target=SEED):
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return default_partition(joint, inputs, **facts)


def _step_of(for_each: Callable[..., None]) -> Callable[..., None]:
    """Dynamo leaves the CPU's fused kernels to eager PyTorch; for a device that is a detour through the host."""

    def step(params: Any, grads: Any, *state: Any, grad_scale: Any, found_inf: Any, **options: Any) -> None:
        """`grad_scale` and `found_inf` are a gradient scaler's: gradients are divided, and infinite ones ignored."""
        if grad_scale is not None:
            for gradient in grads:
                gradient.div_(grad_scale)
        changed = [t for tensors in (params, *state) for t in tensors if isinstance(t, Tensor)]
        before = [t.clone() for t in changed] if found_inf is not None else []
        for_each(params, grads, *state, grad_scale=None, found_inf=None, **options)
        for now, earlier in zip(changed, before, strict=False):
            now.copy_(torch.where(found_inf > 0, earlier, now))

    return step

"""What PyTorch's tracing does otherwise for the device than it would for a CPU.

Recurrent layers unroll, optimizers with fused=True are traced in their foreach form, operands on the CPU are copied
where others are on the device, and seeds of random numbers are kept for the backward pass. The first three are
settings of Dynamo: they hold for every backend of the process once this module is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from functorch.compile import default_partition
from torch import Tensor
from torch._dynamo.eval_frame import TorchPatcher
from torch.fx import GraphModule
from torch.optim import adagrad, adam, sgd
from torch.utils.checkpoint import CheckpointPolicy

from tt_torch.dynamo.decompositions.random import SEED
from tt_torch.dynamo.mixed_devices import run_node

torch._dynamo.config.allow_rnn = True
torch._dynamo.utils.run_node = run_node


@contextmanager
def without_mkldnn() -> Iterator[None]:
    """For AOTAutograd: mkldnn has recurrent layers whole, as ops that only the CPU has."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


def partition(joint: GraphModule, inputs: Sequence[Any], **facts: Any) -> tuple[GraphModule, GraphModule]:
    """AOTAutograd's, which keeps the seeds: random numbers that checkpointing computes anew must be the same."""
    for node in joint.graph.find_nodes(op="call_function", target=SEED):
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return default_partition(joint, inputs, **facts)


def _trace_fused(module: ModuleType, name: str) -> None:
    """Dynamo leaves the CPU's fused kernels to eager PyTorch; for a device that is a detour through the host."""
    for_each = getattr(module, f"_multi_tensor_{name}")

    @torch.compiler.substitute_in_graph(getattr(module, f"_fused_{name}"), skip_signature_check=True)
    def step(params: Any, grads: Any, *state: Any, grad_scale: Any, found_inf: Any, **options: Any) -> None:
        """`grad_scale` and `found_inf` are a gradient scaler's: gradients are divided, and infinite ones ignored."""
        if grad_scale is not None:
            torch._foreach_div_(grads, grad_scale)
        changed = [t for tensors in (params, *state) for t in tensors if isinstance(t, Tensor)]
        before = [t.clone() for t in changed] if found_inf is not None else []
        for_each(params, grads, *state, grad_scale=None, found_inf=None, **options)
        for now, earlier in zip(changed, before, strict=False):
            now.copy_(torch.where(found_inf > 0, earlier, now))


TorchPatcher.patch()  # marks the fused functions, which are replaced as it leaves them
for module in (adagrad, adam, sgd):
    _trace_fused(module, module.__name__.rpartition(".")[2])

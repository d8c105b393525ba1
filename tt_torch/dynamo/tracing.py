"""Differences between tracing for the device and tracing for a CPU.

Recurrent layers are unrolled. Optimizers with fused=True are traced in their foreach form. Operands on the CPU are
copied if others are on the device. Booleans are shifted. Dropout that drops nothing gives its operand. A shape that
changes in place is known from there on. Seeds of random numbers are kept for the backward pass. On a mesh of chips,
each shape has its own graph. Except for the seeds, these differences are settings of Dynamo. The settings hold only
while Dynamo compiles a frame for a backend that `traced_for_device` marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.optim import adagrad, adam, sgd
from torch.utils.checkpoint import CheckpointPolicy

from tt_torch.dynamo.boolean_shifts import accept_boolean_shift
from tt_torch.dynamo.decompositions.random import SEED
from tt_torch.dynamo.idle_dropout import is_idle
from tt_torch.dynamo.mixed_devices import run_node
from tt_torch.dynamo.types import Argument, Arguments, Result
from tt_torch.runtime import fused_steps
from tt_torch.torch_private import dynamo
from tt_torch.torch_private.aot import default_partition
from tt_torch.torch_private.distributed import one_process

FUSED = (adagrad, adam, sgd)  # modules of the optimizers that have a fused form


@contextmanager
def tracing_for_device() -> Iterator[None]:
    """Dynamo's settings while it captures for the device."""
    instead = {dynamo.fused_step(module): _step_of(dynamo.for_each_step(module)) for module in FUSED}
    # our programs increment the versions of tensors that they change
    instead[fused_steps.count_up] = lambda tensors: None
    sizes = dynamo.sizes_static() if one_process() else nullcontext()
    with (
        sizes,
        dynamo.guards_not_timed(),
        dynamo.changes_known(),
        dynamo.recurrent_layers_unrolled(),
        dynamo.nodes_run_by(_run_node),
        dynamo.traced_instead(instead),
    ):
        yield


traced_for_device = dynamo.compiled_within(lambda frame: tracing_for_device())


def partition(joint: GraphModule, inputs: Sequence[object], **facts: object) -> tuple[GraphModule, GraphModule]:
    """AOTAutograd's partition, which keeps the seeds, so that checkpointing draws the same random numbers again."""
    seeds = joint.graph.find_nodes(op="call_function", target=SEED)
    of_gradients = _gradients(joint) if seeds else set()
    for node in seeds:
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        if of_gradients.intersection(node.args):  # the forward pass, which draws the seed, has no gradients
            node.args = ()
    return default_partition(joint, inputs, **facts)


def _gradients(joint: GraphModule) -> set[Node]:
    """The nodes of a joint graph whose values follow from the gradients of its results."""
    found: set[Node] = set()
    for node in joint.graph.nodes:
        given = node.op == "placeholder" and node.name.startswith("tangents")
        if given or found.intersection(node.all_input_nodes):
            found.add(node)
    return found


def _run_node(tracer: object, node: Node, args: tuple[Argument, ...], kwargs: Arguments, nnmodule: object) -> Result:
    accept_boolean_shift(node, args)
    if is_idle(node):
        return args[0] if args else kwargs["input"]  # so that Dynamo knows that the result is the operand itself
    return run_node(tracer, node, args, kwargs, nnmodule)


def _step_of(for_each: Callable[..., None]) -> Callable[..., None]:
    """The foreach form of a fused step. Dynamo would run the CPU's fused kernel in eager PyTorch, on the host."""

    def step(params: Any, grads: Any, *state: Any, grad_scale: Any, found_inf: Any, **options: Any) -> None:
        """`grad_scale` and `found_inf` come from a gradient scaler. Gradients are divided by `grad_scale`. If
        `found_inf` says that a gradient is infinite, parameters and states keep their values."""
        if grad_scale is not None:
            for gradient in grads:
                gradient.div_(grad_scale)
        changed = [t for tensors in (params, *state) for t in tensors if isinstance(t, Tensor)]
        before = [t.clone() for t in changed] if found_inf is not None else []
        for_each(params, grads, *state, grad_scale=None, found_inf=None, **options)
        for now, earlier in zip(changed, before, strict=False):
            now.copy_(torch.where(found_inf > 0, earlier, now))

    return step

"""How DTensor splits ops for which it has no rule, or a wrong one, while this process has a mesh of chips.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.debug import _clear_sharding_prop_cache  # 2.13.0: for put_in
from torch.distributed.tensor.experimental import register_sharding

from tt_torch.errors import CollectiveError

aten = torch.ops.aten
BATCH, HEADS, MEAN = 0, 1, 1
Sharding: TypeAlias = tuple[list[Any], list[Any]]  # the placements of the results, and those of the arguments
CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default)
# PyTorch's rules divide by the number of elements of a chip, not by that of the whole tensor.
LOSS_GRADIENTS = [
    aten.mse_loss_backward.default,
    aten.smooth_l1_loss_backward.default,
    aten.huber_loss_backward.default,
    aten.soft_margin_loss_backward.default,
    aten.binary_cross_entropy_backward.default,
]


def _mask(mask: Any, dim: int) -> Any:
    """The placement of a mask of 2 or 4 dimensions if the other tensors are split along `dim`."""
    return Shard(dim) if len(mask.shape) == 4 and mask.shape[dim] > 1 else Replicate()


def _attention(tensors: int, results: int, options: int, mask: Any) -> list[Sharding]:
    """All tensors whole, or all split along batch or heads. Arguments are tensors, then options, then the mask."""
    found = []
    for one, of_mask in ((Replicate(), None), (Shard(BATCH), BATCH), (Shard(HEADS), HEADS)):
        given = [one] * tensors + [None] * options
        if mask is not None:
            given.append(one if of_mask is None else _mask(mask, of_mask))
        found.append(([one] * results, given))
    return found


def _attention_forward(
    q: Any, k: Any, v: Any, *options: Any, attn_mask: Any = None, scale: Any = None
) -> list[Sharding]:
    return _attention(3, 2, len(options), attn_mask)


def _attention_backward(
    gradient: Any, q: Any, k: Any, v: Any, result: Any, logsumexp: Any, *options: Any, attn_mask: Any = None,
    scale: Any = None,
) -> list[Sharding]:  # fmt: skip
    return _attention(6, 3, len(options), attn_mask)


def _loss_gradient(gradient: Any, x: Any, target: Any, *options: Any) -> list[Sharding]:
    """Split along any dimension, but whole for a mean. `options` are the reduction and numbers, or a weight first."""
    reduction = next((option for option in options if isinstance(option, int)), MEAN)
    tensors = [x, target, *(option for option in options if hasattr(option, "shape"))]
    rest = [None for option in options if not hasattr(option, "shape")]
    found: list[Sharding] = [([Replicate()], [Replicate()] * (1 + len(tensors)) + rest)]
    if reduction != MEAN and all(t.shape == x.shape for t in tensors):
        for dim in range(len(x.shape)):
            of_gradient = Shard(dim) if gradient.shape else Replicate()
            found.append(([Shard(dim)], [of_gradient, *[Shard(dim)] * len(tensors), *rest]))
    return found


def _refuse_random(op_call: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    advice = "draw before `distribute_tensor`; model.eval() turns dropout off"
    raise CollectiveError(f"{op_call} of a DTensor: all chips would draw the same numbers for different parts", advice)


# 2.13.0: without it attention of tensors on the CPU would be planned without end, convolutions of split channels would
# fail, the gradients of means would be too large, and a plain tensor could not be combined with a DTensor.
def put_in() -> Callable[[], None]:
    """Gives DTensor these rules, and returns a function that takes them out again."""
    dispatcher = DTensor._op_dispatcher
    rules = dispatcher.sharding_propagator
    tables: list[dict[Any, Any]] = [
        dispatcher._custom_op_handlers,
        rules.op_strategy_funcs,
        rules.op_single_dim_strategy_funcs,
        rules.op_to_schema_info,
        rules.op_to_schema_info_for_single_dim_strategy,
    ]
    before = [dict(table) for table in tables]
    for op in CONVOLUTIONS:
        del dispatcher._custom_op_handlers[op]
    for op in dispatcher._random_ops:
        dispatcher._custom_op_handlers[op] = _refuse_random
    for op in LOSS_GRADIENTS:
        rules.op_single_dim_strategy_funcs.pop(op, None)
        rules.op_to_schema_info_for_single_dim_strategy.pop(op, None)
    register_sharding(aten._scaled_dot_product_flash_attention_for_cpu.default)(_attention_forward)
    register_sharding(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)(_attention_backward)
    register_sharding(LOSS_GRADIENTS)(_loss_gradient)
    dispatcher._allow_implicit_replication = True
    _clear_sharding_prop_cache()

    def take_out() -> None:
        dispatcher._allow_implicit_replication = False
        for table, old in zip(tables, before, strict=True):
            table.clear()
            table.update(old)
        _clear_sharding_prop_cache()

    return take_out

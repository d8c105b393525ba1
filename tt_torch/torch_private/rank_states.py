"""The states of random generators while PyTorch runs an op for one chip after the other.

PyTorch sets all generators back before each chip, so that chips draw the same numbers. For an op that draws no numbers,
this took two thirds of the op's time on eight chips. Importing this module imports torch.distributed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.distributed import _local_tensor  # 2.13.0: for the functions that PATCHES replaces

from tt_torch.torch_private.chips import EXCHANGES, Chips
from tt_torch.torch_private.ops import OpOverload, is_random

# Ops of these namespaces have PyTorch's tag for random numbers if they draw any. A user's op may lack it.
TAGGED = ("aten", "prims", *EXCHANGES)
_reads: list[bool] = []  # whether the ops that run now read the states, the innermost op last


def may_draw(op: object) -> bool:
    """Whether an op or a function may draw random numbers."""
    return not isinstance(op, OpOverload) or op.namespace not in TAGGED or is_random(op)


# 2.13.0: these three replace functions with which PyTorch keeps the states.
def _noting(of: Callable[..., Any]) -> Callable[..., Any]:
    def _for_each_rank_run_func(op: object, *args: Any, **named: Any) -> Any:
        _reads.append(may_draw(op))
        try:
            return of(op, *args, **named)
        finally:
            _reads.pop()

    return _for_each_rank_run_func


def _if_read(of: Callable[[], Any]) -> Callable[[], Any]:
    def _get_rng_state() -> Any:
        skipped = bool(_reads) and not _reads[-1] and isinstance(_local_tensor.enabled_local_tensor_mode(), Chips)
        return () if skipped else of()

    return _get_rng_state


def _if_there(of: Callable[..., None]) -> Callable[..., None]:
    def _set_rng_state(*states: Any) -> None:
        if states:
            of(*states)

    return _set_rng_state


PATCHES = (
    (_local_tensor, "_for_each_rank_run_func", _noting),
    (_local_tensor, "_get_rng_state", _if_read),
    (_local_tensor, "_set_rng_state", _if_there),
)

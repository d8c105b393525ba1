"""Private names of AOTAutograd. Importing this module imports Dynamo, which takes longer than importing torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from functorch.compile import (
    default_partition,  # 2.13.0: without it forward and backward of a model would be one graph
    make_boxed_func,  # 2.13.0: without it AOTAutograd would not take a plain function for a program
)
from torch._dynamo.backends.common import aot_autograd  # 2.13.0: without it there is no functional graph, no backward
from torch._functorch._aot_autograd.descriptors import (
    PlainAOTInput,  # 2.13.0: without it messages call inputs by number
)
from torch._guards import (
    TracingContext,  # 2.13.0: without it parameters cannot be distinguished from inputs
    tracing,  # 2.13.0: without it a graph is not compiled again for another shape at a later call
)

__all__ = ["PlainAOTInput", "TracingContext", "aot_autograd", "default_partition", "make_boxed_func", "tracing"]

# A function that AOTAutograd calls. It takes its inputs in a list, which it empties.
Boxed = Callable[[list[Any]], Sequence[Any]]


# 2.13.0: without it inputs would live until the program is done, and AOTAutograd would warn.
def boxed(run: Boxed) -> Boxed:
    """Marks a function for AOTAutograd as one that takes its inputs in a list and empties the list."""

    def call(inputs: list[Any]) -> Sequence[Any]:
        return run(inputs)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


# 2.13.0: without it a recurrent layer is one op, which only the CPU has. The public `torch.backends.mkldnn.flags` also
# sets precisions, and does not restore those that were inherited.
@contextmanager
def without_mkldnn() -> Iterator[None]:
    """While this context is active, PyTorch does not use mkldnn."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)

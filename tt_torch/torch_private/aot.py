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
from torch._functorch._aot_autograd.schemas import (
    OutputType,  # 2.13.0: for is_plain_inference
    PlainTensorMeta,  # 2.13.0: the same
    ViewAndMutationMeta,  # 2.13.0: the same
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


# 2.13.0: without it the compile cache would keep programs that need what AOTAutograd does around them.
def is_plain_inference(metadata: ViewAndMutationMeta) -> bool:
    """Whether a traced graph only computes: its results are new tensors without gradients, and it writes to no input,
    so that AOTAutograd does nothing at a call but run the program."""
    writes = any(
        given.mutates_data or given.mutates_metadata or given.mutation_inductor_storage_resize
        for given in metadata.input_info
    )
    new = all(made.output_type is OutputType.non_alias and not made.requires_grad for made in metadata.output_info)
    subclasses = any(not isinstance(given, PlainTensorMeta) for given in metadata.subclass_inp_meta)
    extra = metadata.tokens or metadata.num_intermediate_bases or metadata.traced_tangents
    return new and not (writes or subclasses or extra)

"""Gradients of the results of compiled graphs, while this process has a mesh: what backward graphs take of them.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch._functorch.aot_autograd  # 2.13.0: without it the next import would be circular
from torch._functorch._aot_autograd.runtime_wrappers import (
    AOTDispatchAutograd,  # 2.13.0: for PATCHES
    coerce_to_expected_memory_format,  # 2.13.0: for _also_of_each_chip
)
from torch.distributed._local_tensor import LocalTensor  # 2.13.0: for _zero_part
from torch.distributed.tensor import DTensor

from tt_torch.errors import MeshError
from tt_torch.torch_private.chips import of_parts, parts_of


# 2.13.0: without it a gradient with a value per chip would be refused for a plain tensor of the traced graph. So would
# a gradient for a DTensor that the loss does not use: autograd makes it as a plain tensor of zeros.
def _also_of_each_chip(of: Any) -> Any:
    def process_runtime_tangent(x: Any, meta: Any, *rest: Any, **named: Any) -> tuple[Any, list[Any]]:
        if getattr(meta, "original_subclass_type", None) is DTensor and not isinstance(x, DTensor):
            return x, _zero_part(x, meta)
        parts = parts_of(x)
        if parts is None:
            return of(x, meta, *rest, **named)
        fitting = of_parts([coerce_to_expected_memory_format(part, meta.memory_format) for part in parts])
        return fitting, [fitting]

    return staticmethod(process_runtime_tangent)


def _zero_part(x: torch.Tensor, meta: Any) -> list[Any]:
    """A chip's part of a gradient that is zero, and None for the mesh, which the backward graph does not read.

    Raises MeshError if `x` is not zero, or has a value per chip: nothing says here which mesh it lies on, and how.
    """
    if isinstance(x, LocalTensor) or x.any():
        shape = tuple(x.shape)
        raise MeshError(f"the gradient of a DTensor {shape} is no DTensor; give it to `distribute_tensor` before")
    part = meta.attrs["_local_tensor"].memory_format
    zeros = torch.empty_strided(part.size, part.stride, dtype=x.dtype, device=x.device).zero_()
    return [zeros if name == "_local_tensor" else None for name in meta.attrs]


PATCHES: Sequence[tuple[Any, str, Callable[[Any], Any]]] = (
    (AOTDispatchAutograd, "process_runtime_tangent", _also_of_each_chip),
)

"""Private names for tensors: their memory and versions, fake tensors, and modes under which ops run."""

from __future__ import annotations

from operator import attrgetter

import torch
from torch._C._functorch import (
    get_unwrapped,  # 2.13.0: without it a graph that has views inside of jvp or hessian is refused
    is_functorch_wrapped_tensor,  # 2.13.0: the same
)
from torch._guards import detect_fake_mode  # 2.13.0: without it new fake tensors have another mode than the graph's
from torch._prims_common import (
    is_non_overlapping_and_dense_or_false,  # 2.13.0: without it results with gaps in memory lose their strides
    suggest_memory_format,  # 2.13.0: without it interpolated images would not be channels last where eager's are
)
from torch._subclasses import FakeTensorMode  # 2.13.0: without it graphs cannot be traced again for other purposes
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,  # 2.13.0: without it a graph that reads a value is not specialized for it
    DynamicOutputShapeException,  # 2.13.0: without it shapes that depend on values look like an error of ours
    FakeTensor,  # 2.13.0: without it fake tensors as examples would be refused
    unset_fake_temporarily,  # 2.13.0: without it constants could not be computed while a model is captured
)
from torch.fx.experimental.symbolic_shapes import ShapeEnv  # 2.13.0: for mode_of_a_chip
from torch.utils._python_dispatch import (
    TorchDispatchMode,  # 2.13.0: without it the fuzzer cannot tell rounding from error
)

from tt_torch.torch_private.modes import without_modes

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "TorchDispatchMode",
    "detect_fake_mode",
    "is_non_overlapping_and_dense_or_false",
    "mode_of_a_chip",
    "suggest_memory_format",
    "unset_fake_temporarily",
    "without_modes",
]


# 2.13.0: without it a program would take the place of the first chip in its row for that of all chips. The place is a
# symbol, and other sizes are numbers.
def mode_of_a_chip() -> FakeTensorMode:
    """A mode in which a graph of one chip of a mesh is captured."""
    shapes = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
    return FakeTensorMode(shape_env=shapes, static_shapes=True)


# 2.13.0: without it a stale weight on the device would not be noticed. PyTorch counts it up when the tensor is written.
version = attrgetter("_version")


# 2.13.0: without it outputs that are views of the same memory would be separate. Fake tensors have no address.
def storage_of(tensor: torch.Tensor) -> int:
    """A number that is the same for tensors that share memory, also inside of functorch's transforms."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor.untyped_storage()._cdata


# 2.13.0: without it a result that is a view of an input, and has its gradients, would look like one that has lost them.
def root_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor of which this tensor is a view for autograd, or this tensor itself."""
    return tensor if tensor._base is None else tensor._base

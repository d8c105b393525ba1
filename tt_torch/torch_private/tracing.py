"""Private names for tracing functions into graphs, and PyTorch's own decompositions."""

import torch
from torch._decomp import get_decompositions  # 2.13.0: without it we would have to write these decompositions
from torch._decomp.decompositions import (
    pw_cast_for_int_to_real,  # 2.13.0: without it real functions of integers would have integer results
    pw_cast_for_opmath,  # 2.13.0: without it bfloat16 would be rounded at each step
)
from torch._inductor.inductor_prims import fma  # 2.13.0: without it addcmul with a tensor as factor runs on the host
from torch.fx.experimental.proxy_tensor import make_fx  # 2.13.0: without it a graph cannot be traced with other inputs
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,  # 2.13.0: without it shapes that depend on values look like an error of ours
    PendingUnbackedSymbolNotFound,  # 2.13.0: the same, where an op selects elements in several steps
    has_free_symbols,  # 2.13.0: without it symbolic strides would be treated as numbers
)

__all__ = [
    "GuardOnDataDependentSymNode",
    "PendingUnbackedSymbolNotFound",
    "data_of",
    "fma",
    "get_decompositions",
    "has_free_symbols",
    "make_fx",
    "pw_cast_for_int_to_real",
    "pw_cast_for_opmath",
    "set_grad_enabled",
]

# 2.13.0: without it a pass would not know which calls of a captured graph record gradients.
set_grad_enabled = torch._C._set_grad_enabled
# 2.13.0: without it a pass would not know that `x.data` of a captured graph has no gradients.
data_of = torch._C._autograd._get_data_attr  # type: ignore[attr-defined]

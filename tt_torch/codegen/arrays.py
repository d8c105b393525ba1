"""The values of PyTorch's tensors as arrays for the `ttnn` package."""

from __future__ import annotations

import numpy as np
import torch

from tt_torch.codegen.program import Tensor, numpy_dtype
from tt_torch.errors import InputDtypeError


def to_array(described: Tensor, value: torch.Tensor, who: str = "input") -> np.ndarray:
    """The values of a tensor as the array that the package takes for the described tensor; bfloat16 becomes float32.

    Raises InputDtypeError if floats would become integers or integers would become floats, and for complex numbers.
    """
    floats = numpy_dtype(described.dtype).kind == "f"
    if value.is_complex() or (value.dtype != torch.bool and value.is_floating_point() != floats):
        raise InputDtypeError(f"{who}: got {value.dtype}, expected {described.dtype}")
    value = value.detach().cpu().resolve_neg()
    if described.dtype == "BFloat16":
        value = value.to(torch.bfloat16)
    return value.to(getattr(torch, numpy_dtype(described.dtype).name)).contiguous().numpy()

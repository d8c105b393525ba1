"""Custom ops by name: they exist only after the package that defines them has been imported."""

from __future__ import annotations

from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS, decomposes
from tt_torch.dynamo.types import Function


def grouped_matmul(x: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """Multiplies each row of `x` (rows, in) by the weight (in, out) of its group.

    Rows are sorted by group, and `offs` (groups,) has the end of each group. Rows after the last group give zero.
    """
    rows = torch.arange(x.shape[0], device=x.device)
    group = (rows[:, None] >= offs).sum(1)
    chosen = weight[group.clamp(max=weight.shape[0] - 1)]
    result = torch.bmm(x[:, None], chosen)[:, 0]
    return torch.where((group < weight.shape[0])[:, None], result, 0)


@decomposes(torch.ops.aten._grouped_mm.default)
def grouped_mm(
    x: Tensor,
    weight: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor | NotImplementedType:
    if weight.dim() != 3 or offs is None or bias is not None:
        return NotImplemented
    return grouped_matmul(x, weight, offs).to(out_dtype or x.dtype)


def linear_activation(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "relu") -> Tensor:
    """A linear layer and an activation, which the compiler fuses."""
    from tt_torch.device.ops import ACTIVATIONS

    return ACTIVATIONS[activation](torch.nn.functional.linear(x, weight, bias))


_BY_NAME: dict[str, Function] = {
    "transformers::grouped_mm_fallback": grouped_matmul,
    "tt::linear_activation": linear_activation,
}


def register_late_ops() -> None:
    """Adds the ops that exist by now to the table."""
    for name, function in _BY_NAME.items():
        namespace, op = name.split("::")
        if hasattr(getattr(torch.ops, namespace), op):
            DECOMPOSITIONS[getattr(getattr(torch.ops, namespace), op).default] = function

"""The op that gives a weight a data type on the device."""

from __future__ import annotations

import torch

from tt_torch.tt_ops.registry import Arguments, Attributes, op, require

Tensor = torch.Tensor
DTYPES = ("bf16", "bfp_bf8", "bfp_bf4")  # tt-mlir's names


def _check(tensor: Tensor, dtype: str) -> list[int]:
    require(dtype in DTYPES, "weight_dtype_override", f"dtype {dtype!r}", " or ".join(map(repr, DTYPES)))
    return list(tensor.shape)


def _attributes(a: Arguments) -> Attributes:
    return {"ttcore.weight_dtype": a["dtype"]}


@op(_check, _attributes)
def weight_dtype_override(tensor: Tensor, dtype: str) -> Tensor:
    """The weight itself. A compiled matrix product has it in the data type `dtype` on the device."""
    return tensor.clone()

"""Ops that say something about a tensor: the data type of a weight, the role of an argument, a sharding."""

from __future__ import annotations

import torch

from tt_torch.tt_ops.registry import Arguments, Attributes, formula, op, require

Tensor = torch.Tensor
DTYPES = ("bf16", "bfp_bf8", "bfp_bf4")  # tt-mlir's names
ROLES = ("input", "parameter", "constant")


def _check(tensor: Tensor, dtype_str: str) -> list[int]:
    require(dtype_str in DTYPES, "weight_dtype_override", f"dtype_str {dtype_str!r}", " or ".join(map(repr, DTYPES)))
    return list(tensor.shape)


def _attributes(a: Arguments) -> Attributes:
    return {"ttcore.weight_dtype": a["dtype_str"]}


@op(_check, _attributes, gradient=lambda context, gradient: (gradient, None))
def weight_dtype_override(tensor: Tensor, dtype_str: str) -> Tensor:
    """The weight itself. A compiled matrix product has it in the data type `dtype_str` on the device."""
    return tensor.clone()


@formula
def mark_argument_attributes(tensor: Tensor, argument_type: str, name: str | None = None) -> Tensor:
    """The tensor itself. Our compiler finds the roles and names of arguments by itself."""
    accepted = " or ".join(map(repr, ROLES))
    require(argument_type in ROLES, "mark_argument_attributes", f"argument_type {argument_type!r}", accepted)
    return tensor.clone()


@formula
def sharding_constraint(tensor: Tensor, sdy_sharding: str) -> Tensor:
    """The tensor itself. On one chip there is nothing to split; `tt_torch.sharding_constraint` is for several chips."""
    return tensor.clone()

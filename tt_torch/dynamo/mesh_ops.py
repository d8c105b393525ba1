"""Ops that exchange values between the chips of a mesh, in a graph that is the program of each chip.

`axes` are the axes of the mesh (rows, columns) along which groups of chips lie: [1] for the chips of a row, [0] for the
chips of a column, [0, 1] for all chips, row by row. In StableHLO, each op becomes the collective of the same name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tt_torch.dynamo.types import Function
from tt_torch.errors import CollectiveError
from tt_torch.torch_private.ops import OpOverload

LIBRARY = torch.library.Library("tt_mesh", "DEF")
OPS: list[OpOverload] = []
TARGET = "tt_mesh."  # the beginning of the names of custom calls
ALWAYS = -1  # stands for an op that makes values differ from chip to chip; it is not the position of an input
AXES = "tt_axes"  # in the `meta` of an input: the axes of the mesh along which its values vary; all if it is not there


def _exchange(signature: str) -> Callable[[Function], OpOverload]:
    """Registers the shape rule of an op, and returns the op. One chip alone cannot compute it."""

    def register(shape_rule: Function) -> OpOverload:
        name = shape_rule.__name__

        def refuse(*args: Any, **kwargs: Any) -> torch.Tensor:
            raise CollectiveError(f"{name} of the chips of a mesh was called on the host")

        LIBRARY.define(f"{name}{signature}")
        LIBRARY.impl(name, shape_rule, "Meta")
        LIBRARY.impl(name, refuse, "CompositeExplicitAutograd")
        op = getattr(torch.ops.tt_mesh, name).default
        OPS.append(op)
        return op

    return register


def _resized(x: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    return x.new_empty([*x.shape[:dim], size, *x.shape[dim + 1 :]])


@_exchange("(Tensor self, *, int dim, int[] axes, int count) -> Tensor")
def all_gather(x: torch.Tensor, *, dim: int, axes: list[int], count: int) -> torch.Tensor:
    """The values of the `count` chips of a group, one after the other along `dim`."""
    return _resized(x, dim, x.shape[dim] * count)


@_exchange("(Tensor self, *, str reduce, int[] axes, int count) -> Tensor")
def all_reduce(x: torch.Tensor, *, reduce: str, axes: list[int], count: int) -> torch.Tensor:
    """The sum, or another reduction, of the values of a group."""
    return x.new_empty(x.shape)


@_exchange("(Tensor self, *, str reduce, int dim, int[] axes, int count) -> Tensor")
def reduce_scatter(x: torch.Tensor, *, reduce: str, dim: int, axes: list[int], count: int) -> torch.Tensor:
    """The chip's part, along `dim`, of the reduction over a group."""
    return _resized(x, dim, x.shape[dim] // count)


@_exchange("(Tensor self, *, int split, int join, int[] axes, int count) -> Tensor")
def all_to_all(x: torch.Tensor, *, split: int, join: int, axes: list[int], count: int) -> torch.Tensor:
    """Each chip sends a part along `split` to each chip of its group, and puts what it gets together along `join`."""
    parts = _resized(x, split, x.shape[split] // count)
    return _resized(parts, join, parts.shape[join] * count)


@_exchange("(Tensor self, *, int dim, int[] axes, int count) -> Tensor")
def mesh_partition(x: torch.Tensor, *, dim: int, axes: list[int], count: int) -> torch.Tensor:
    """The chip's own part of a tensor that all chips have."""
    return _resized(x, dim, x.shape[dim] // count)


def chips_along(axes: Sequence[int], mesh: tuple[int, int]) -> int:
    """The number of chips in a group along these axes of the mesh (rows, columns)."""
    return math.prod(mesh[axis] for axis in axes)

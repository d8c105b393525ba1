"""How a tensor is made by plain views of its memory, such as `narrow` and `unflatten`, and not by `as_strided`.

PyTorch's capture refuses writes to an `as_strided` of another view. It also loses the offset of an input in its memory,
from which `as_strided` counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

Step = tuple[object, ...]  # the name of a method, and its arguments


@dataclass(frozen=True)
class Window:
    """A part of a memory, and the views by which a tensor is made of it. `begin` and `size` count elements."""

    begin: int
    size: int
    steps: tuple[Step, ...]


def window_of(x: torch.Tensor) -> Window | None:
    """The window of a tensor's memory that has its elements; None if plain views cannot make the tensor of it."""
    memory = x.untyped_storage().nbytes() // x.element_size()
    return window(tuple(x.shape), x.stride(), int(x.storage_offset()), memory)


def window(shape: tuple[int, ...], strides: tuple[int, ...], begin: int, memory: int) -> Window | None:
    """The window of a memory of so many elements in which a tensor with this shape and these strides begins at the
    place `begin`; None if plain views cannot make the tensor of it.

    The window has whole steps of the outermost dimension. So it may have a few elements more than the tensor, behind
    its last element, or before its first one if the memory ends there.
    """
    if 0 in shape:
        return Window(0, 0, (("view", shape),))
    dims = sorted((d for d, n in enumerate(shape) if n > 1 and strides[d]), key=strides.__getitem__, reverse=True)
    steps = [(shape[d], strides[d]) for d in dims]
    sizes = [count * stride for count, stride in steps] + [1]
    if any(inner > stride for inner, (_, stride) in zip(sizes[1:], steps, strict=True)):
        return None
    behind = sizes[0] - 1 - sum((count - 1) * stride for count, stride in steps)
    at_end = begin + sizes[0] > memory
    if at_end and begin < behind:
        return None
    return Window(begin - behind if at_end else begin, sizes[0], (*_split(steps, at_end), *_in_order(shape, dims)))


def _split(steps: list[tuple[int, int]], at_end: bool) -> list[Step]:
    """The views that give a window a dimension for each step. `at_end` says whether the elements of a tensor are at the
    end of each step. Otherwise they are at its begin."""
    made: list[Step] = []
    for i, (count, stride) in enumerate(steps):
        inner = steps[i + 1][0] * steps[i + 1][1] if i + 1 < len(steps) else 1
        made.append(("unflatten", -1, (count, stride)))
        if inner < stride:
            made.append(("narrow", -1, stride - inner if at_end else 0, inner))
    return [*made, ("squeeze", -1)]


def _in_order(shape: tuple[int, ...], dims: list[int]) -> list[Step]:
    """The views that put dimensions in the order of the tensor, and add those of one element and repeated ones.

    PyTorch's capture adds and subtracts in writes to an `expand`, even if it repeats nothing."""
    order = tuple(dims.index(d) for d in sorted(dims))
    kept = tuple(size if d in dims else 1 for d, size in enumerate(shape))
    repeated: list[Step] = [("expand", shape)] if kept != shape else []
    return [("permute", order), ("view", kept), *repeated]

"""Turns calls of a graph into calls of its program. This imports no compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

import torch

from tt_torch.errors import BinaryFormatError, InexactError
from tt_torch.torch_private.tensors import root_of

Argument: TypeAlias = Any  # of a graph: a tensor or a number
Result: TypeAlias = Any  # of a graph: a tensor, a number or None
INTEGERS = -(2**31), 2**31  # the range of seeds
OUT_OF_RANGE = "a float does not fit into the integer that it becomes, or an index is out of range"


def require_in_32_bits(number: torch.Tensor, *nodes: str) -> None:
    """Raises InexactError if the number of a node is not 0, because its 64-bit integers left 32 bits. Each chip of a
    mesh gives such a number. Raises BinaryFormatError for a number that no node has, which a changed file may give."""
    place = int(number.max()) if number.numel() else -1
    if not 0 <= place <= len(nodes):
        raise BinaryFormatError("a check of 64-bit integers has another result than the number of a node")
    if place:
        what = f"64-bit integers of the node {nodes[place - 1]} leave the device's 32 bits"
        raise InexactError(f"the device would not compute this call exactly: {what}")


def require_in_range(flag: torch.Tensor) -> None:
    """Raises InexactError if the flag of a program with loops is false."""
    if not flag.all():
        raise InexactError(f"the device would not compute this call exactly: {OUT_OF_RANGE}")


# What checks values on the host: an op of eager PyTorch or a function of ours. Its name is that in files.
CHECKS = {
    torch.ops.aten._linalg_check_errors.default: "_linalg_check_errors",
    require_in_32_bits: "in_32_bits",
    require_in_range: "in_range",
}


@dataclass(frozen=True)
class View:
    """An output as a view of one of the program's results."""

    result: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int  # elements from the start of the result's memory

    def of(self, results: Sequence[torch.Tensor] | Mapping[int, torch.Tensor]) -> torch.Tensor:
        return results[self.result].as_strided(self.shape, self.strides, self.offset)


@dataclass(frozen=True)
class Reading:
    """An output that reads a result's memory in another dtype, conjugated or negated. `view` counts in this dtype.

    The conjugate and the negative are lazy, as in eager PyTorch, so that a write reaches the memory.
    """

    view: View
    dtype: torch.dtype
    conj: bool
    neg: bool

    @property
    def result(self) -> int:
        return self.view.result

    def of(self, results: Sequence[torch.Tensor] | Mapping[int, torch.Tensor]) -> torch.Tensor:
        base = results[self.result]
        together = max(1, self.dtype.itemsize // base.element_size())  # elements of the base per element of `dtype`
        memory = _in_dtype(base.as_strided((base.numel() // together * together,), (1,)), self.dtype)
        read = memory.as_strided(self.view.shape, self.view.strides, self.view.offset)
        read = read.conj() if self.conj else read
        return torch.ops.aten._neg_view(read) if self.neg else read


def _in_dtype(memory: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same bytes in another dtype. Gradients pass between a complex number and its parts."""
    if memory.dtype == dtype:
        return memory
    if memory.is_complex() and memory.dtype.to_real() == dtype:
        return torch.view_as_real(memory).view(-1)
    if dtype.is_complex and dtype.to_real() == memory.dtype:
        return torch.view_as_complex(memory.view(-1, 2))
    return memory.view(dtype)


def read_as(view: View, base: torch.Tensor, value: torch.Tensor) -> View | Reading:
    """The view as it is read for `value`, which shares the memory of `base`."""
    plain = value.dtype == base.dtype and not value.is_conj() and not value.is_neg()
    return view if plain else Reading(view, value.dtype, value.is_conj(), value.is_neg())


@dataclass(frozen=True)
class ViewOfInput:
    """An output as a view of one of the graph's inputs."""

    input: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int  # elements from the start of the input

    def of(self, input: torch.Tensor) -> torch.Tensor:
        return input.as_strided(self.shape, self.strides, input.storage_offset() + self.offset)


@dataclass(frozen=True)
class Check:
    """A check of a tensor, which is an extra result of the program."""

    op: str  # one of the names in CHECKS
    arguments: tuple[str, ...]
    options: dict[str, bool]

    def __call__(self, read: torch.Tensor) -> None:
        """Raises an error if the check fails. If the op is PyTorch's, it is the error of eager PyTorch."""
        (op,) = (op for op, name in CHECKS.items() if name == self.op)
        op(read, *self.arguments, **self.options)


def passed(results: Sequence[Result], checks: Sequence[Check]) -> list[Result]:
    """The results for the caller, without results for checks. A check that fails raises its error."""
    count = len(results) - len(checks)
    for check, read in zip(checks, results[count:], strict=True):
        check(read)
    return list(results[:count])


@dataclass
class Interface:
    """Turns calls of a graph into calls of its program."""

    inputs: list[int]  # positions of the tensors among the graph's inputs
    outputs: list[Result]  # the results of the graph that are not tensors, with Ellipsis for each tensor
    seeds: list[torch.device]  # one per random op; if there are any, the last input of the program has their seeds
    complex_inputs: list[int]  # positions among the program's tensors, which have a last dimension of 2 for the parts
    complex_outputs: list[int]
    strides: dict[int, tuple[int, ...]]  # of results with gaps in memory, or with elements that share memory
    places: list[int | View | Reading]  # where each output that is a tensor is among the results

    def with_results(self, count: int) -> Interface:
        """The interface of a program that has `count` more results, which are results of the graph, too."""
        own = [place if isinstance(place, int) else place.result for place in self.places]
        first = max(own, default=-1) + 1
        return replace(
            self, outputs=[*self.outputs, *[...] * count], places=[*self.places, *range(first, first + count)]
        )

    def arguments(self, inputs: Sequence[Argument]) -> list[torch.Tensor]:
        """The inputs of the program: the graph's tensors, complex ones as real pairs, and new int32 seeds (ops, 2)."""
        tensors = [inputs[i] for i in self.inputs]
        for i in self.complex_inputs:
            tensors[i] = torch.view_as_real(tensors[i].resolve_conj())
        drawn = [draw_seeds(len(list(ops)), device).cpu() for device, ops in groupby(self.seeds)]
        return tensors + ([torch.cat(drawn)] if drawn else [])

    def roles(self, roles: Sequence[str]) -> list[str]:
        """The roles of the program's inputs, from those of the graph's inputs."""
        return [roles[i] for i in self.inputs] + ["input"] * bool(self.seeds)

    def results(self, tensors: Sequence[torch.Tensor]) -> list[Result]:
        """The results of the graph, from the results of the program."""
        tensors = list(tensors)
        for i in self.complex_outputs:
            tensors[i] = torch.view_as_complex(tensors[i])
        for i, strides in self.strides.items():
            tensors[i] = with_strides(tensors[i], strides)
        # Without detach, a view would require gradients when AOTAutograd gives some to another result in its memory.
        remaining = iter([tensors[p] if isinstance(p, int) else p.of(tensors).detach() for p in self.places])
        return [next(remaining) if value is ... else value for value in self.outputs]


def draw_seeds(count: int, device: torch.device | None = None) -> torch.Tensor:
    """Two int32 per random op of a program, drawn from the default generator of the device, on the device."""
    return torch.randint(*INTEGERS, (count, 2), dtype=torch.int32, device=device)


def in_strides(x: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The tensor itself if it has these strides; otherwise the same elements in new memory with these strides.

    Strides of dimensions of one element do not matter. Gradients pass.
    """
    if x.stride() == strides or all(a == b or n == 1 for a, b, n in zip(x.stride(), strides, x.shape, strict=True)):
        return x
    if all(stride or size == 1 for stride, size in zip(strides, x.shape, strict=True)):
        return torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device).copy_(x)
    # `copy_` writes to no dimension that repeats its elements.
    return _Moved.apply(x, strides) if x.requires_grad else with_strides(x, strides)  # type: ignore[no-untyped-call]


class _Moved(torch.autograd.Function):
    """`with_strides` with a gradient that passes unchanged. Autograd's own gradient would give each element the
    gradients of all elements that share its place."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
        return with_strides(x, strides)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradients[0], None


def with_strides(x: torch.Tensor, strides: Sequence[int], offset: int = 0) -> torch.Tensor:
    """The same elements in new memory with these strides. Several elements may share a place."""
    (moved,) = in_one_memory([x], [(strides, offset)])
    return moved


def in_one_memory(values: Sequence[torch.Tensor], places: Sequence[tuple[Sequence[int], int]]) -> list[torch.Tensor]:
    """The same tensors in one new memory, each with its strides and its offset, in elements of its dtype.

    Several elements may share a place, if they are equal.
    """
    parts = []
    for x, (strides, offset) in zip(values, places, strict=True):
        x = x[tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)]  # elements of an expanded view once
        span = offset + 1 + sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True)) if x.numel() else 0
        parts.append((x.reshape(-1), torch.arange(span).as_strided(x.shape, strides, offset).reshape(-1), span))
    widest = max(values, key=torch.Tensor.element_size)
    sizes = [-(-span * elements.element_size() // widest.element_size()) for elements, _, span in parts]
    memory = widest.new_empty(max(sizes))
    for elements, numbers, _ in parts:
        memory.view(elements.dtype)[numbers] = elements
    return [memory.view(x.dtype).as_strided(x.shape, *place) for x, place in zip(values, places, strict=True)]


def place_in_memory(x: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The shape, the strides and the offset of a tensor."""
    return tuple(x.shape), x.stride(), int(x.storage_offset())


def has_memory_of_autograd(x: torch.Tensor) -> bool:
    """Whether autograd decides on the memory of a result: it has gradients, and is a view or a lazy conjugate."""
    return x.requires_grad and (root_of(x) is not x or x.is_conj() or x.is_neg())


def in_memory(x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """`memory`, which has the elements of `x`. A tensor with gradients is moved there itself, and so it keeps these."""
    if not x.requires_grad:
        return memory
    x.data = memory
    return x

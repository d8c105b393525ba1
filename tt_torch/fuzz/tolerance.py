"""How far a result may be from eager's: as far as eager itself moves when it rounds otherwise.

A fixed tolerance is too strict for the difference of nearly equal numbers, and too lax for everything else. So a
program runs in eager several times more, with a relative error of a few units in the last place added to each result
of each op that computes. An element may differ by a multiple of its movement in these runs. A comparison or an integer
that changes in them says nothing, and is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import Fact
from tt_torch.torch_private.ops import OpOverload, schema
from tt_torch.torch_private.tensors import TorchDispatchMode
from tt_torch.torch_private.trees import tree_map_only

RUNS = 4
_ROUNDINGS = 4  # units in the last place of one result; our kernels and eager's may be of different algorithms
_MOVEMENTS = 16  # what an element may differ by, in its largest movement: few runs do not show the worst
_RTOL = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
_EXACT = Fact.KEEPS | Fact.FILLS | Fact.ALLOCATES | Fact.VIEW


class OtherRoundings(TorchDispatchMode):
    """Adds errors to the floats that ops compute. Results that only move numbers, and views, stay as they are."""

    def __init__(self, seed: int, least: float = 0.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._least = least  # relative precision, if that of a dtype is better
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, op: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = op(*args, **(kwargs or {}))
        if facts.of(op) & _EXACT or any(returned.alias_info for returned in schema(op).returns):
            return result
        return tree_map_only(torch.Tensor, self._moved, result)

    def _moved(self, value: torch.Tensor) -> torch.Tensor:
        if not value.dtype.is_floating_point:
            return value
        error = torch.rand(value.shape, generator=self._generator) * 2 - 1
        error *= _ROUNDINGS * max(self._least, torch.finfo(value.dtype).eps)
        return (value.float() * (1 + error)).to(value.dtype)


def difference(got: torch.Tensor, expected: torch.Tensor, others: Sequence[torch.Tensor]) -> str:
    """Says where `got` is not what eager computes, in one line; an empty string if it is. `others` are eager's results
    with other roundings."""
    for name in ("dtype", "shape"):
        if getattr(got, name) != getattr(expected, name):
            return f"{name} {getattr(got, name)}, expected {getattr(expected, name)}"
    allowed, known = _allowed(expected, others)
    a, b = got.detach().double(), expected.detach().double()
    wrong = known & (a != b) & ~(a.isnan() & b.isnan()) & ~((a - b).abs() <= allowed)
    if not wrong.any():
        return ""
    place = wrong.nonzero()[0].tolist()
    at = f" at {place}" if place else ""
    return f"{got[tuple(place)].item()}{at}, expected {expected[tuple(place)].item()} ({int(wrong.sum())} wrong)"


def _allowed(expected: torch.Tensor, others: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest difference that is allowed for each element, and which elements are to be compared."""
    base = expected.detach().double()
    moved = torch.zeros_like(base)
    known = torch.ones_like(base, dtype=torch.bool)
    for other in others:
        if other.shape != expected.shape:
            return moved, torch.zeros_like(known)
        now = other.detach().double()
        known &= (now.isfinite() == base.isfinite()) & (base.isfinite() | (now == base) | (now.isnan() & base.isnan()))
        moved = torch.maximum(moved, (now - base).abs().nan_to_num(0.0, 0.0, 0.0))
    if not expected.dtype.is_floating_point:
        return torch.zeros_like(base), known & (moved == 0)
    largest = base[base.isfinite()].abs().max() if base.isfinite().any() else torch.zeros(())
    rtol = _RTOL[expected.dtype]
    return _MOVEMENTS * moved + rtol * base.abs().nan_to_num(0.0, 0.0, 0.0) + rtol * 1e-2 * largest, known

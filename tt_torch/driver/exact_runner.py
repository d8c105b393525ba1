"""Runs a program if the device computes a call exactly, and otherwise eager PyTorch. This imports no compiler."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch

from tt_torch import user_code
from tt_torch.driver.program import Runner
from tt_torch.dynamo.calls import OUT_OF_RANGE
from tt_torch.dynamo.exactness.interval import Interval, of_values
from tt_torch.dynamo.exactness.limits import Limit, Plan
from tt_torch.dynamo.types import Function
from tt_torch.errors import InexactError, KernelError, add_note
from tt_torch.torch_private.distributed import of_all_chips
from tt_torch.torch_private.tensors import version


class ExactnessWarning(UserWarning):
    """A call ran in eager PyTorch, because the device would not have computed its integers exactly. For a StableHLO
    module, the host computed its 64-bit integers."""


class ExactRunner:
    """Runs a program on the device if that is exact; otherwise runs the graph in eager PyTorch on the host."""

    def __init__(
        self,
        runner: Runner,
        eager: Function | None,
        plan: Plan,
        resident: Sequence[int],
        check: Runner | None = None,
    ) -> None:
        """`check` runs the graph `plan.check` before the program. Without `eager`, an inexact call raises
        InexactError."""
        self.runner, self.eager, self.plan, self.check = runner, eager, plan, check
        self.resident = frozenset(resident)
        self._seen: dict[int, tuple[Any, ...]] = {}  # resident inputs that are known to fit
        self._warned = False

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        for position, limit in self.plan.limits.items():
            if not self._fits(position, inputs[position], limit.interval):
                return self._on_host(inputs, _excess(inputs[position], limit))
        try:
            if self.check and not _holds(self.check([inputs[i] for i in self.plan.checked])[0]):
                return self._on_host(inputs, OUT_OF_RANGE)
            results = self.runner(inputs)
        except KernelError as error:
            self._raise_as_eager(inputs, error)
            raise
        except InexactError as error:
            if self.eager is None:
                raise
            return self._on_host(inputs, str(error))
        if not self.plan.flagged:
            return results
        if not _holds(results[-1]):
            return self._on_host(inputs, OUT_OF_RANGE)
        return results[:-1]

    def _fits(self, position: int, x: torch.Tensor, interval: Interval) -> bool:
        """Whether an input has values in the interval only. An input that stays on the device is read
        again only after a change."""
        if position not in self.resident or x.is_inference() or of_all_chips(x) is not x:
            return _finite(x).within(interval)
        now, (known, *seen) = [x.data_ptr(), version(x)], self._seen.get(position, (None,))
        if known is not None and known() is x and seen == now:
            return True
        fits = _finite(x).within(interval)
        if fits:
            self._seen[position] = (weakref.ref(x), *now)
        return fits

    def _raise_as_eager(self, inputs: Sequence[torch.Tensor], error: KernelError) -> None:
        """Raises PyTorch's own error, if it has one, for an index out of range, a division by zero and so on."""
        if self.eager is None:
            return
        try:
            self.eager(*inputs)
        except Exception as eager:
            add_note(eager, str(error))
            raise eager from error

    def _on_host(self, inputs: Sequence[torch.Tensor], reason: str) -> Sequence[torch.Tensor]:
        if self.eager is None:
            raise InexactError(f"the device would not compute this call exactly: {reason}")
        if not self._warned:
            self._warned = True
            user_code.warn(ExactnessWarning(f"a call runs in eager PyTorch: {reason}"))
        with torch.no_grad():
            return list(self.eager(*inputs))


def _holds(flag: torch.Tensor) -> bool:
    return bool(of_all_chips(flag).all())


def _finite(x: torch.Tensor) -> Interval:
    """The interval of the finite values: 1, 3 and NaN give 1 .. 3."""
    x = of_all_chips(x)
    return of_values(x[x.isfinite()] if x.is_floating_point() else x)


def _excess(x: torch.Tensor, limit: Limit) -> str:
    low, high = _finite(x)
    if x.is_floating_point():
        return f"{limit.name} ({x.dtype}) has values in {low:g} .. {high:g}, and the device has them in float32"
    because = f", beyond which {limit.cause} may leave the device's 32 bits" if limit.cause else ""
    span = f"{limit.interval.low:.0f} .. {limit.interval.high:.0f}"
    values = f"{limit.name} ({x.dtype}) has values in {low:.0f} .. {high:.0f}"
    return f"{values}; the device is exact only in {span}{because}"

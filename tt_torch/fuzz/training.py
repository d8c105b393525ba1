"""A program as a module that is trained: forward, backward and an optimizer's write in place, twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from tt_torch.dynamo.types import Function

Tensors: TypeAlias = list[torch.Tensor]
Compiler: TypeAlias = Callable[[Function, Sequence[Any]], Function]  # takes a function and examples of its arguments
_RATE = 0.1


class Trained(torch.nn.Module):
    """`function` as a module. Its inputs of floats are parameters, and its other inputs are arguments of a call."""

    def __init__(self, function: Function, inputs: Tensors) -> None:
        super().__init__()
        self._function = function
        self._names = [f"input_{i}" if x.dtype.is_floating_point else None for i, x in enumerate(inputs)]
        for name, x in zip(self._names, inputs, strict=True):
            if name:
                self.register_parameter(name, torch.nn.Parameter(x))

    def forward(self, *others: torch.Tensor) -> tuple[torch.Tensor, ...]:
        remaining = iter(others)
        return self._function(*[getattr(self, name) if name else next(remaining) for name in self._names])


def train(function: Function, inputs: Tensors, compiled: Compiler, steps: int = 2) -> Tensors:
    """The outputs of the last step, the inputs after it, and the gradients of the floats among them.

    A gradient that does not exist counts as zeros. For an input that is only written without gradients, tracing gives
    zeros, and eager PyTorch gives no gradient. `inputs` are changed. Raises RuntimeError if PyTorch has no gradients of
    the function.
    """
    model = Trained(function, inputs)
    parameters = list(model.parameters())
    others = [x for x in inputs if not x.dtype.is_floating_point]
    forward, update = compiled(model, others), None
    for _ in range(steps):
        model.zero_grad()
        outputs = forward(*others)
        _loss(outputs).backward()
        moved = [p for p in parameters if p.grad is not None]
        gradients = [p.grad for p in moved if p.grad is not None]
        with torch.no_grad():
            update = update or compiled(_update, (moved, gradients))
            update(moved, gradients)
    return [*outputs, *inputs, *(torch.zeros_like(p) if p.grad is None else p.grad for p in parameters)]


def _loss(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """A sum of all floats, each with another weight."""
    loss = torch.zeros((), device=outputs[0].device)
    for x in outputs:
        if x.dtype.is_floating_point:
            loss = loss + (x.float() * torch.linspace(-1, 1, x.numel(), device=x.device).reshape(x.shape)).sum()
    return loss


def _update(parameters: Tensors, gradients: Tensors) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.sub_(gradient, alpha=_RATE)

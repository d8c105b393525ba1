"""Shapes and gradients of `torch.ops.tt`, whose kernels are in src/custom_ops.cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import tt_torch.device._device  # noqa: F401 - defines the ops

# The activations that the kernel of tt::linear_activation has.
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "": lambda x: x, "abs": torch.abs, "exp": torch.exp, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "hardsigmoid": F.hardsigmoid, "neg": torch.neg,
    "relu": F.relu, "relu6": F.relu6, "sigmoid": torch.sigmoid, "silu": F.silu, "softplus": F.softplus,
    "sqrt": torch.sqrt, "square": torch.square, "tanh": torch.tanh,
}  # fmt: skip


@torch.library.register_fake("tt::to_bfp8")  # type: ignore[untyped-decorator]
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


torch.library.register_autograd("tt::to_bfp8", lambda ctx, grad: grad)  # the gradient ignores the rounding


@torch.library.register_fake("tt::linear_activation")  # type: ignore[untyped-decorator]
def _(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, activation: str = "relu"
) -> torch.Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


def _save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, bias, ctx.activation = inputs
    ctx.save_for_backward(x, weight, bias)


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Computes the product again, because the forward pass does not keep it."""
    inputs: list[Any] = [None if value is None else value.detach().requires_grad_() for value in ctx.saved_tensors]
    wanted = [value for value, needs in zip(inputs, ctx.needs_input_grad, strict=False) if needs]
    with torch.enable_grad():
        result = ACTIVATIONS[ctx.activation](F.linear(*inputs))
    found = iter(torch.autograd.grad(result, wanted, grad))
    return tuple(next(found) if needs else None for needs in ctx.needs_input_grad)


torch.library.register_autograd("tt::linear_activation", _backward, setup_context=_save)

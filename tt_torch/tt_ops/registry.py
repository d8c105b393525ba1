"""How an op of `torch.ops.tt` is registered, and the custom call that stands for it in StableHLO."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from tt_torch import user_code
from tt_torch.errors import OpArgumentError
from tt_torch.torch_private.ops import OpOverload, overload_of

Tensor = torch.Tensor
Arguments = Mapping[str, Any]  # by name; tensors may be fake, or values of a graph
Attributes = dict[str, str]
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Tensor])
AnyFormula = TypeVar("AnyFormula", bound=Callable[..., Tensor | tuple[Tensor, ...]])


@dataclass(frozen=True)
class Call:
    """The custom call of an op: its target, its operands by the names of the op's parameters, and its attributes.

    An operand that is None is left out.
    """

    target: str
    operands: tuple[str, ...]
    attributes: Callable[[Arguments], Attributes]


CALLS: dict[OpOverload, Call] = {}


def op(
    check: Callable[..., list[int]],
    attributes: Callable[[Arguments], Attributes] = lambda a: {},
    operands: str = "",
    dtype: torch.dtype | None = None,
    gradient: Callable[..., tuple[Tensor | None, ...]] | None = None,
) -> Callable[[AnyFunction], AnyFunction]:
    """Registers a function as the op `tt::<its name>`, which gets the parameters and defaults of the function.

    The function computes the op on any device. `check` gets all arguments by name, defaults included. It raises
    OpArgumentError for arguments that the op does not take, and returns the shape of the result. The result has the
    dtype of the first argument, unless `dtype` is given. The operands of the custom call are all tensors in order,
    unless `operands` names them. `gradient` gets a context and the gradient of the result, and returns those of all
    arguments; without it, the op has none.
    """

    def register(function: AnyFunction) -> AnyFunction:
        name, signature = function.__name__, inspect.signature(function)

        def shape(*given: Any, **named: Any) -> list[int]:
            bound = signature.bind(*given, **named)
            bound.apply_defaults()
            return check(**bound.arguments)

        def compute(*given: Any, **named: Any) -> Tensor:
            shape(*given, **named)
            return function(*given, **named)

        def fake(first: Tensor, *given: Any, **named: Any) -> Tensor:
            return first.new_empty(shape(first, *given, **named), dtype=dtype or first.dtype)

        schema = torch.library.infer_schema(function, mutates_args=())
        made = torch.library.custom_op(f"tt::{name}", compute, mutates_args=(), schema=schema)
        made.register_fake(fake)
        if gradient is not None:
            made.register_autograd(gradient)
        found = overload_of(made)
        assert found is not None
        tensors = operands.split() or [p for p, kind in signature.parameters.items() if "Tensor" in kind.annotation]
        CALLS[found] = Call(f"tt.{name}", tuple(tensors), attributes)
        return function

    return register


def formula(function: AnyFormula) -> AnyFormula:
    """Registers a function as the op `tt::<its name>`, which compilers replace by the ops that the function calls.

    So it has the gradient of these ops. No result may share memory with an argument.
    """
    name = f"tt::{function.__name__}"
    torch.library.define(name, torch.library.infer_schema(function, mutates_args=()))
    torch.library.impl(name, "CompositeImplicitAutograd")(function)
    return function


def require(holds: bool, op: str, got: str, accepted: str) -> None:
    """Raises OpArgumentError, with the user's line, unless a condition of an op holds."""
    if not holds:
        raise OpArgumentError(f"torch.ops.tt.{op}", user_code.line(), got, accepted)


def sizes(**tensors: Tensor | None) -> str:
    """The shapes of tensors, for messages."""
    return ", ".join(f"{name} of shape {list(x.shape)}" for name, x in tensors.items() if x is not None)

"""The arguments of a call of a user's op, as JSON.

    {"arguments": [{"tensor": "float32"}, 2.0], "keywords": {"mode": "up"}, "results": ["float32"]}

A tensor is written as its dtype in the user's program. Tensors are counted in the order in which they are written.
`{"torch": ...}` is another value of PyTorch, such as a dtype, and `{"device": ...}` a device. A file may contain this
text, so `decoded` accepts nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import torch

from tt_torch.errors import BinaryFormatError

Value: TypeAlias = Any  # an argument: a tensor, a number, a text, a dtype, ..., or a list of these
Json: TypeAlias = Any
NAMED = (torch.dtype, torch.layout, torch.memory_format)  # values that are attributes of the module `torch`
PLAIN = (bool, int, float, str, type(None))


class UnknownArgument(Exception):
    """An argument has a type that cannot be written."""


@dataclass(frozen=True)
class Call:
    """The arguments of a call; a `Tensor` stands for each tensor. `results` are the dtypes of the results."""

    arguments: list[Value]
    keywords: dict[str, Value]
    results: list[torch.dtype]

    def tensors(self) -> list[Tensor]:
        return list(_tensors([self.arguments, *self.keywords.values()]))

    def filled(self, values: Sequence[Value]) -> tuple[list[Value], dict[str, Value]]:
        """Positional and keyword arguments with `values` in the places of the tensors."""
        rest = iter(values)
        positional = [_replaced(value, lambda: next(rest)) for value in self.arguments]
        return positional, {name: _replaced(value, lambda: next(rest)) for name, value in self.keywords.items()}


@dataclass(frozen=True)
class Tensor:
    """The place of a tensor among the arguments."""

    dtype: torch.dtype


def _tensors(value: Value) -> Iterator[Tensor]:
    if isinstance(value, list):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, Tensor):
        yield value


def _replaced(value: Value, tensor: Callable[[], Value]) -> Value:
    if isinstance(value, list):
        return [_replaced(part, tensor) for part in value]
    return tensor() if isinstance(value, Tensor) else value


def encoded(arguments: Sequence[Value], keywords: Mapping[str, Value], results: Sequence[torch.dtype]) -> str:
    """The text of a call, whose tensors can be fake. Raises UnknownArgument, with the type, for any other argument."""
    parts = {
        "arguments": [_encoded(value) for value in arguments],
        "keywords": {name: _encoded(value) for name, value in keywords.items()},
        "results": [_name(dtype) for dtype in results],
    }
    return json.dumps(parts)


def _encoded(value: Value) -> Json:
    if isinstance(value, torch.Tensor):
        return {"tensor": _name(value.dtype)}
    if isinstance(value, (list, tuple)):
        return [_encoded(part) for part in value]
    if type(value) in PLAIN:
        return value
    if isinstance(value, NAMED):
        return {"torch": _name(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    raise UnknownArgument(type(value).__name__)


def _name(value: Value) -> str:
    return str(value).removeprefix("torch.")


@lru_cache(maxsize=1024)  # each call of a kernel has the same text
def decoded(text: str) -> Call:
    """The call of a text. Raises BinaryFormatError for any other text."""
    try:
        parts = json.loads(text)
        return Call(
            [_decoded(value) for value in parts["arguments"]],
            {str(name): _decoded(value) for name, value in parts["keywords"].items()},
            [_of_torch(name, torch.dtype) for name in parts["results"]],
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, RuntimeError) as error:
        raise BinaryFormatError(f"the arguments of a registered op are damaged: {type(error).__name__}") from None


def _decoded(value: Json) -> Value:
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, name),) = value.items()
    if kind == "tensor":
        return Tensor(_of_torch(name, torch.dtype))
    return torch.device(name) if kind == "device" else _of_torch({"torch": name}[kind], NAMED)


def _of_torch(name: str, kinds: type | tuple[type, ...]) -> Value:
    """The value of this name in the module `torch`, if it has one of these types. Nothing is imported or called."""
    found = vars(torch).get(name)
    if not isinstance(found, kinds):
        raise ValueError(name)
    return found

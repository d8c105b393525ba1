"""Containers of tensors: tuples, lists, dicts, dataclasses, and classes that are registered as PyTorch's pytrees."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tt_torch.torch_private.trees import taken_apart

_BUILT_IN = (dict, list, tuple)


@dataclasses.dataclass(frozen=True)
class Container:
    """A container that is taken apart.

    `parts` have names such as `[0]`, `['ids']` or `.logits`. `text` is the same for containers of the same kind.
    `rebuilt` makes a container of the same kind from other parts, which are in the same order.
    """

    text: str
    parts: list[tuple[str, Any]]
    rebuilt: Callable[[Sequence[Any]], Any]


def opened(value: object) -> Container | None:
    """The container, or None if the value is not one."""
    found = taken_apart(value)
    if found:
        parts, context, rebuilt = found
        return Container(_text(value, parts, context), parts, rebuilt)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        parts = [(f".{name}", getattr(value, name)) for name in names]
        return Container(_text(value, parts, None), parts, lambda parts: _changed(value, names, parts))
    return None


def _text(value: object, parts: Sequence[tuple[str, Any]], context: object) -> str:
    names = [name for name, _ in parts]
    if names == [f"[{i}]" for i in range(len(names))]:
        text = f"{type(value).__name__} of {len(names)}"
    else:
        plain = (name.removeprefix(".").removeprefix("[").removesuffix("]") for name in sorted(names))
        text = f"{type(value).__name__} with {', '.join(plain)}"
    return text if context is None or isinstance(value, _BUILT_IN) else f"{text} {context!r}"


def _changed(value: Any, names: Sequence[str], parts: Sequence[Any]) -> Any:
    changed = copy.copy(value)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(changed, name, part)  # the class may be frozen
    return changed


def parts_of(value: object, name: str) -> Iterator[tuple[str, Any]]:
    """The name of each part of a value, with the part itself, or with a Container if it is one.

    {"ids": x} with the name `batch` gives `batch` with a Container, then `batch['ids']` with x.
    """
    container = opened(value)
    yield name, container or value
    for part, child in container.parts if container else ():
        yield from parts_of(child, f"{name}{part}")


def with_tensors(value: Any, change: Callable[[str, torch.Tensor], torch.Tensor], name: str) -> Any:
    """The same containers with changed tensors. `change` gets the names of tensors as in `parts_of`."""
    if isinstance(value, torch.Tensor):
        return change(name, value)
    container = opened(value)
    if container is None:
        return value
    return container.rebuilt([with_tensors(part, change, f"{name}{suffix}") for suffix, part in container.parts])

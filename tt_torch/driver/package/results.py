"""The result of a model as data: its containers, and the memory of its tensors. This imports no compiler."""

from __future__ import annotations

import dataclasses
import functools
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch

from tt_torch.driver.containers import opened
from tt_torch.driver.package.manifest import CONTAINERS, OPEN, Place
from tt_torch.dynamo.calls import in_strides
from tt_torch.errors import PackageError, PackagingError
from tt_torch.torch_private.trees import is_namedtuple_instance, registered

Node: TypeAlias = dict[str, Any]  # of the tree: a tensor, a value or a container, as JSON
VALUES = (bool, int, float, str, type(None))
TENSORS = ("result", "argument", "weight")


def tree(value: Any, tensors: Mapping[int, Node], name: str = "the result") -> Node:
    """The tree of a result. `tensors` has the nodes of tensors by the ids of the tensors.

    Raises PackagingError, with the name of the part, for something that a file cannot have.
    """
    if id(value) in tensors:
        return tensors[id(value)]
    if type(value) in VALUES:
        return {"value": value}
    if isinstance(value, torch.Tensor):
        raise PackagingError(
            f"{name} is a tensor that Python makes beside the graph, as x.T does; x.t() is in the graph"
        )
    container, kind = opened(value), type(value)
    if container is None:
        raise PackagingError(f"{name} is a {kind.__name__}, which a package cannot hold")
    parts = [tree(part, tensors, f"{name}{suffix}") for suffix, part in container.parts]
    if CONTAINERS.get(kind.__name__) is kind:
        keys = list(value) if isinstance(value, dict) else []
        if not all(type(key) in VALUES for key in keys):
            raise PackagingError(f"the keys of {name} are not all plain values, which a package needs")
        return {"container": kind.__name__, "keys": keys, "parts": parts}
    known = dataclasses.is_dataclass(value) or is_namedtuple_instance(value) or kind.__module__ == "torch.return_types"
    if not known:
        raise PackagingError(f"{name} is a {kind.__name__}; a package can hold a dict, a dataclass or a named tuple")
    # The parts of a registered class may have numbers for names. Diffusers' outputs are dicts with such parts.
    names = list(value) if isinstance(value, dict) else [suffix for suffix, _ in container.parts]
    fields = [name.removeprefix(".").strip("[]'") for name in names]
    family = "dataclass" if dataclasses.is_dataclass(value) else "tuple"
    return {"class": f"{kind.__module__}.{kind.__qualname__}", "family": family, "keys": fields, "parts": parts}


def weights_in(node: Node) -> set[str]:
    """The names of the weights in a tree."""
    own = {node["weight"]} if "weight" in node else set()
    return own.union(*map(weights_in, node.get("parts", ())))


def built(node: Node, tensors: Mapping[str, Any]) -> Any:
    """The result of a tree. `tensors` has a list or a dict of tensors for each kind of TENSORS."""
    if "value" in node:
        return node["value"]
    for kind in TENSORS:
        if kind in node:
            return tensors[kind][node[kind]]
    parts = [built(part, tensors) for part in node["parts"]]
    if "class" in node:
        return _made(node["class"], node["family"], node["keys"], parts)
    container = CONTAINERS[node["container"]]
    return container(zip(node["keys"], parts, strict=True) if issubclass(container, dict) else parts)


def _made(name: str, family: str, fields: Sequence[str], parts: Sequence[Any]) -> Any:
    """An object of the class that has this name in PyTorch's registry of pytrees, or else of a new class like it.

    No other class is looked up: a file must not choose what is called.
    """
    known = registered(name)
    if family == "dataclass":
        made = known if known and dataclasses.is_dataclass(known) else _like(name, family, tuple(fields))
        return made(**dict(zip(fields, parts, strict=True)))
    return known(parts) if known else _like(name, family, tuple(fields))(*parts)


@functools.cache
def _like(name: str, family: str, fields: tuple[str, ...]) -> Any:
    """A new class with these fields, which must be identifiers."""
    short = name.rpartition(".")[2]
    return dataclasses.make_dataclass(short, fields) if family == "dataclass" else namedtuple(short, fields)


def placed(
    values: Sequence[torch.Tensor], places: Sequence[Place], inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """The results with the strides of eager PyTorch. Results share memory if they share it in eager PyTorch."""
    sizes: dict[int, int] = {}
    devices: dict[int, torch.device] = {}
    for value, place in zip(values, places, strict=True):
        if place.memory is not None:
            sizes[place.memory] = max(sizes.get(place.memory, 0), _end(place) * value.element_size())
            devices[place.memory] = value.device
    shared = {
        memory: torch.empty(-(-size // 16) * 16, dtype=torch.uint8, device=devices[memory])
        for memory, size in sizes.items()
    }
    return [_placed(value, place, inputs, shared) for value, place in zip(values, places, strict=True)]


def _placed(
    value: torch.Tensor, place: Place, inputs: Sequence[torch.Tensor], shared: Mapping[int, torch.Tensor]
) -> torch.Tensor:
    if place.argument is not None:
        given = inputs[place.argument]
        return given.as_strided(place.shape, place.strides, given.storage_offset() + place.offset)
    fits = [want in (OPEN, size) for want, size in zip(place.shape, value.shape, strict=False)]
    if value.dim() != len(place.shape) or not all(fits):
        raise PackageError(f"the package says that a result has the shape {place.shape}; it has {tuple(value.shape)}")
    if place.memory is not None:
        memory = shared[place.memory].view(value.dtype)
        numbers = torch.arange(memory.numel(), device=memory.device).as_strided(
            place.shape, place.strides, place.offset
        )
        memory[numbers.reshape(-1)] = value.reshape(-1)
        return memory.as_strided(place.shape, place.strides, place.offset)
    return value.contiguous() if OPEN in place.shape else in_strides(value, place.strides)


def _end(place: Place) -> int:
    """The number of elements of the memory up to the last one of the result."""
    if 0 in place.shape:
        return 0
    return place.offset + 1 + sum((n - 1) * s for n, s in zip(place.shape, place.strides, strict=True))

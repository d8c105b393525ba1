"""Functions on nested lists, tuples and dicts. PyTorch's own functions also know classes that the user registered."""

from collections.abc import Callable, Sequence
from typing import Any

from torch.utils._pytree import (
    SUPPORTED_NODES,  # 2.13.0: for taken_apart
    _get_node_type,  # 2.13.0: for taken_apart
    is_namedtuple_instance,  # 2.13.0: without it a package could not hold named tuples
    tree_any,  # 2.13.0: without it complex numbers inside of lists are not found
    tree_flatten,  # 2.13.0: without it results of a sweep are not compared one by one
    tree_leaves,  # 2.13.0: without it tensors inside of lists are not found
    tree_map,  # 2.13.0: without it tensors inside of lists are not replaced
    tree_map_only,  # 2.13.0: the same, for one class
)

__all__ = [
    "is_namedtuple_instance",
    "registered",
    "taken_apart",
    "tree_any",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
]


# 2.13.0: without it arguments inside of containers would have no names. The public functions give all levels at once.
def taken_apart(value: object) -> tuple[list[tuple[str, Any]], object, Callable[[Sequence[Any]], Any]] | None:
    """Takes a container apart. Returns its parts with their names, such as `[0]` or `['ids']`, what else it is made of,
    and a function that makes the same container from other parts. Returns None if the value's class is not registered.
    """
    node = SUPPORTED_NODES.get(_get_node_type(value))
    if node is None:
        return None
    parts, context = node.flatten_fn(value)
    names = [f"[{i}]" for i in range(len(parts))]
    if node.flatten_with_keys_fn:
        names = [str(key) for key, _ in node.flatten_with_keys_fn(value)[0]]
    return list(zip(names, parts, strict=True)), context, lambda parts: node.unflatten_fn(parts, context)


# 2.13.0: without it a saved program would give results of other classes than the model.
def registered(name: str) -> type[Any] | None:
    """The registered class with this qualified name, such as `torch.return_types.max`."""
    found = [known for known in SUPPORTED_NODES if f"{known.__module__}.{known.__qualname__}" == name]
    return found[0] if found else None

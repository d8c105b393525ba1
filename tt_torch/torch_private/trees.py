"""Functions on nested lists, tuples and dicts. PyTorch's own functions also know classes that the user registered."""

from collections.abc import Callable, Sequence
from typing import Any

from torch.utils._pytree import (
    SUPPORTED_NODES,  # 2.13.0: for taken_apart
    _get_node_type,  # 2.13.0: for taken_apart
    tree_any,  # 2.13.0: without it complex numbers inside of lists are not found
    tree_flatten,  # 2.13.0: without it results of a sweep are not compared one by one
    tree_leaves,  # 2.13.0: without it tensors inside of lists are not found
    tree_map,  # 2.13.0: without it tensors inside of lists are not replaced
    tree_map_only,  # 2.13.0: the same, for one class
)

__all__ = ["taken_apart", "tree_any", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only"]


# 2.13.0: without it arguments inside of containers would have no names. The public functions give all levels at once.
def taken_apart(value: object) -> tuple[list[tuple[str, Any]], object, Callable[[Sequence[Any]], Any]] | None:
    """The parts of a container with their names, such as `[0]` or `['ids']`; what else it is made of; and a function
    that makes the same container of other parts. None if the class of the value is not registered."""
    node = SUPPORTED_NODES.get(_get_node_type(value))
    if node is None:
        return None
    parts, context = node.flatten_fn(value)
    names = [f"[{i}]" for i in range(len(parts))]
    if node.flatten_with_keys_fn:
        names = [str(key) for key, _ in node.flatten_with_keys_fn(value)[0]]
    return list(zip(names, parts, strict=True)), context, lambda parts: node.unflatten_fn(parts, context)

"""Functions on nested lists, tuples and dicts. PyTorch's own functions also know classes that the user registered."""

from torch.utils._pytree import (
    tree_any,  # 2.13.0: without it complex numbers inside of lists are not found
    tree_flatten,  # 2.13.0: without it results of a sweep are not compared one by one
    tree_leaves,  # 2.13.0: without it tensors inside of lists are not found
    tree_map,  # 2.13.0: without it tensors inside of lists are not replaced
    tree_map_only,  # 2.13.0: the same, for one class
)

__all__ = ["tree_any", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only"]

"""Views of DTensors that are copies, because chips exchange values for them: a row of a matrix whose rows are split.

PyTorch loses a write to these views. Here, a write to a view reaches the tensor, and a write to the tensor reaches its
views.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Replicate
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import WeakTensorKeyDictionary

from tt_torch.errors import CollectiveError, MeshError
from tt_torch.torch_private.chips import parts_of
from tt_torch.torch_private.marks import part_of_graphs
from tt_torch.torch_private.ops import OpOverload, schema, written
from tt_torch.torch_private.sharded_sums import write
from tt_torch.torch_private.tensors import root_of, storage_of
from tt_torch.torch_private.trees import tree_leaves


@dataclass(frozen=True)
class _Moved:
    """A view that is a copy: what a chip has of it, and how it was made."""

    local: weakref.ReferenceType[torch.Tensor]
    memory: StorageWeakRef
    op: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    position: int  # among the results of the op


_moved: list[_Moved] = []  # the views that are alive, older ones first
_copies: set[StorageWeakRef] = set()  # the memory of these views, which their own views may keep longer
_reshaped = WeakTensorKeyDictionary()  # tensors whose shape, or that of a view of them, has been changed in place


def _is_empty(x: torch.Tensor) -> bool:
    return 0 in x.shape  # the sizes may be symbols, which `numel` refuses


def _memory(x: torch.Tensor) -> StorageWeakRef:
    """The memory of a chip's part. A DTensor and a view of it have the same memory, unless the view is a copy."""
    first, *_ = parts_of(x) or [x]
    return StorageWeakRef(first.untyped_storage())


def written_with(x: Any) -> Any:
    """The part of a tensor that the first chip has. Writes to a view that is a copy also go to another tensor. For such
    a view, this is the part of the other tensor."""
    if isinstance(x, DTensor):
        root = _root_of(x)
        x = (x if _memory(root._local_tensor) == _memory(x._local_tensor) else root)._local_tensor
    return ((isinstance(x, torch.Tensor) and parts_of(x)) or [x])[0]


def memory_of(x: torch.Tensor) -> int:
    """A number for the memory that has the elements of a tensor. For a view that is a copy, and for views of this copy,
    it is that of the tensor of which the copy is a view."""
    x = x._local_tensor if isinstance(x, DTensor) else x
    while _copies and (moved := next((view for view in _moved if view.memory == _memory(x)), None)):
        x = moved.args[0]._local_tensor
    return storage_of((parts_of(x) or [x])[0])


def before_reshape(op: OpOverload, x: DTensor) -> None:
    """Raises MeshError before a change of shape in place if `x` is a view that is a copy, or has such views."""
    memory = _memory(x._local_tensor)
    moved = [view for view in _moved if view.local() is not None and _memory(view.args[0]._local_tensor) == memory]
    if memory in _copies or moved:
        raise MeshError(f"{op} of a DTensor that is a part of a split dimension, or has such a part; use the op that "
                        f"returns a view, such as t() instead of t_()")  # fmt: skip
    _reshaped[_root_of(x)] = _reshaped[x] = True


def _forget(dead: weakref.ReferenceType[torch.Tensor]) -> None:
    _moved[:] = [x for x in _moved if x.local is not dead]


def _root_of(x: DTensor) -> DTensor:
    root = root_of(x)
    assert isinstance(root, DTensor)
    return root


# 2.13.0: without it, and without after_write, a write to a row of a matrix whose rows are split would be lost.
def of_moved(of: Any) -> Callable[..., Any]:
    """Wraps DTensor's method for ops whose operands are moved before. It remembers results that are views."""

    def _dispatch_get_local_results_slow_path(op_call: Any, args: tuple[Any, ...], op_info: Any) -> Any:
        made = of(op_call, args, op_info)
        if schema(op_call)._is_view_op() and isinstance(args[0], DTensor) and not _is_empty(args[0]):
            source = _memory(args[0]._local_tensor)
            for i, local in enumerate(tree_leaves(made)):
                if (memory := _memory(local)) != source:
                    own = weakref.ref(local, _forget)
                    _moved.append(_Moved(own, memory, op_call, args, dict(op_info.local_kwargs), i))
                    _copies.difference_update([x for x in _copies if x.expired()])
                    _copies.add(memory)
        return made

    part_of_graphs(_dispatch_get_local_results_slow_path)
    return _dispatch_get_local_results_slow_path


def after_write(of: Any) -> Callable[..., Any]:
    """Wraps DTensor's method that ends ops in place."""

    def _dispatch_fast_path_python_tail(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *rest: Any) -> Any:
        result = of(op_call, args, kwargs, *rest)
        if _copies:
            leaves = tree_leaves(written(op_call, args, kwargs))
            changed = [x for x in leaves if isinstance(x, DTensor) and not _is_empty(x)]
            for change in (_write_back, _refresh):
                for x in changed:
                    change(x)
        return result

    part_of_graphs(_dispatch_fast_path_python_tail)
    return _dispatch_fast_path_python_tail


# 2.13.0: without _view_func_unsafe, which makes a view of another tensor, a write to a view of a view would be lost.
def _write_back(x: DTensor) -> None:
    """Writes a view that is a copy to the tensor of which it is a view."""
    root, memory = _root_of(x), _memory(x._local_tensor)
    if root is x and memory in _copies:
        why = "a write to a part of a split dimension would be lost in inference mode, and through .data or detach()"
        raise CollectiveError(why, "write to the part itself, with torch.no_grad() around it")
    if _memory(root._local_tensor) == memory:
        return
    if root in _reshaped:  # the views that autograd remembers have the shape from before
        raise CollectiveError("a write to a part of a split dimension would be lost after a change of shape in place",
                              "use the op that returns a view, such as t() instead of t_()")  # fmt: skip
    mesh = root.device_mesh
    whole = root.redistribute(mesh, [Replicate()] * mesh.ndim)
    x._view_func_unsafe(whole).copy_(x)
    new = write(whole, torch.empty_like(root))  # to `root` itself, it would refresh other views that the op wrote
    assert isinstance(new, DTensor)
    root._local_tensor.copy_(new._local_tensor)


def _refresh(x: DTensor) -> None:
    """Makes copies again after a write to `x`. These are copies of views of tensors that share memory with `x`, or with
    the tensor of which `x` is a view."""
    changed = {_memory(x._local_tensor), _memory(_root_of(x)._local_tensor)}
    for moved in list(_moved):
        local, source = moved.local(), _memory(moved.args[0]._local_tensor)
        if local is not None and source in changed:
            new = tree_leaves(moved.op(*moved.args, **moved.kwargs))[moved.position]
            local.copy_(new._local_tensor)
            changed.add(moved.memory)

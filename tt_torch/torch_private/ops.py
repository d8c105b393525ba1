"""Private names of PyTorch's registries of ops and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch._C import DispatchKey  # 2.13.0: for take_early_kernels
from torch._higher_order_ops.cond import cond_op as cond  # 2.13.0: without it both branches of cond are computed
from torch._higher_order_ops.flex_attention import math_attention  # 2.13.0: without it flex_attention runs on the host
from torch._higher_order_ops.while_loop import while_loop_op as while_loop  # 2.13.0: without it loops run on the host
from torch._ops import (
    HigherOrderOperator,  # 2.13.0: without it ops that call graphs cannot be distinguished from other ops
    OpOverload,  # 2.13.0: without it ops cannot be distinguished from Python functions in a graph
    OpOverloadPacket,  # 2.13.0: without it the table of ATen facts has no type for its keys
)

__all__ = ["HigherOrderOperator", "Kernels", "OpOverload", "OpOverloadPacket", "cond", "math_attention", "while_loop"]

Kernels = dict[DispatchKey, object]
# The keys of Python kernels that AOTAutograd runs before it looks into a table of decompositions.
_EARLY = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


# 2.13.0: without it names, defaults and kinds of arguments are unknown.
def schema(op: Any) -> torch.FunctionSchema:
    """The `torch.FunctionSchema` of an op: name, overload_name, arguments, returns, is_mutable."""
    return op._schema


def is_random(op: Any) -> bool:
    """Whether an op has the tag for random numbers. PyTorch's ops that draw some have it; a user's op can lack it."""
    return torch.Tag.nondeterministic_seeded in getattr(op, "tags", ())


def written(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call that the op writes to: tensors, lists of them, or None if one is not given."""
    arguments = schema(op).arguments
    given = dict(zip((a.name for a in arguments), args, strict=False)) | {**kwargs}
    return [given.get(a.name) for a in arguments if a.alias_info and a.alias_info.is_write]


# 2.13.0: without it ops of torch.library.custom_op could not be registered by their function.
def overload_of(op: Any) -> OpOverload | None:
    """The op of an overload, of a packet with one overload, or of a function of torch.library.custom_op; else None."""
    if isinstance(op, OpOverloadPacket) and len(op.overloads()) == 1:
        return getattr(op, op.overloads()[0])
    found = getattr(op, "_opoverload", op)
    return found if isinstance(found, OpOverload) else None


# 2.13.0: without it an op that PyTorch replaces by others could be registered, without an effect.
def is_taken_apart(op: OpOverload) -> bool:
    """Whether PyTorch replaces the op by the ops that its implementation calls."""
    return op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)


def has_early_kernels(op: OpOverload) -> bool:
    """True if the op has Python kernels that AOTAutograd runs before it looks into a table of decompositions."""
    return any(key in op.py_kernels for key in _EARLY)


# 2.13.0: without it interpolation is decomposed into look-ups of single elements.
def take_early_kernels(op: OpOverload) -> Kernels:
    """Removes the early kernels of an op for the whole process, and returns them."""
    kernels = {key: op.py_kernels.pop(key) for key in _EARLY if key in op.py_kernels}
    op._dispatch_cache.clear()
    return kernels


# 2.13.0: undoes take_early_kernels.
def put_back(op: OpOverload, kernels: Kernels) -> None:
    op.py_kernels |= kernels
    op._dispatch_cache.clear()


# 2.13.0: without it there is no `torch.tt`. PyTorch's page on new devices documents it under this name.
def register_device_module(device: str, module: ModuleType) -> None:
    """Makes the module `torch.<device>`."""
    torch._register_device_module(device, module)


# 2.13.0: without it `import torch` would define the ops of torch.ops.tt, which took 15 ms.
def define_when_named(namespace: str, module: str) -> None:
    """Imports a module, which defines ops of this namespace, when an op that does not exist yet is first named."""
    ops = getattr(torch.ops, namespace)

    class Lazy(type(ops)):  # type: ignore[misc]
        __module__ = type(ops).__module__  # pickle finds an op under this name

        def __getattr__(self, name: str) -> Any:
            import_module(module)  # it may have named the op itself, which must not become a second object
            return vars(self)[name] if name in vars(self) else super().__getattr__(name)

    ops.__class__ = Lazy

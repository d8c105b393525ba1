"""The ops that the user has registered in this process, by name. The last registration of an op counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch

from tt_torch.errors import ExtensionError
from tt_torch.extending.running import run_kernel
from tt_torch.runtime import add_kernel
from tt_torch.torch_private.ops import OpOverload, is_random, is_taken_apart, overload_of, schema
from tt_torch.wire.custom_ops import MOST_RESULTS

OURS = ("aten", "prims", "tenstorrent", "tt")  # namespaces whose ops have other rules, or are decomposed
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", re.ASCII)

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


@dataclass(frozen=True)
class Registration:
    """A lowering, or else a kernel. `ttnn` is the form of a kernel on Tenstorrent's library: "module:function"."""

    lowering: Callable[..., Any] | None = None
    ttnn: str | None = None


_REGISTERED: dict[str, Registration] = {}


def name_of(op: OpOverload) -> str:
    """The name of an op: "mylib::scaled.default"."""
    found = schema(op)
    return f"{found.name}.{found.overload_name or 'default'}"


def of(name: str) -> Registration | None:
    """The registration of an op of this name."""
    return _REGISTERED.get(name)


def is_registered(target: object) -> bool:
    """Whether a node of a graph that calls `target` calls a registered op."""
    return isinstance(target, OpOverload) and name_of(target) in _REGISTERED


def register_lowering(op: Any, function: AnyFunction) -> AnyFunction:
    """Registers how an op of your own is written with ops of TTIR; returns the function.

    `op` is an op of `torch.library`, such as `torch.ops.mylib.scaled`. The compiler calls `function(b, ...)` with a
    builder and the arguments of the op. Values of the program stand for the tensors. The function returns a value, or a
    tuple of values for an op with several results. Their shapes and dtypes must be those of the op's fake form. It may
    return NotImplemented for arguments that it does not cover; then the op runs on the host.

    A later registration of the op replaces this one, for programs that are compiled after it. Raises ExtensionError for
    an op that cannot be registered.
    """
    _REGISTERED[_checked(op)] = Registration(lowering=function)
    return function


def kernel(op: Any, *, ttnn: str | None = None) -> Callable[[AnyFunction], AnyFunction]:
    """Registers the decorated function as the kernel of an op of your own on the emulated device.

    `op` is an op of `torch.library`, such as `torch.ops.mylib.scaled`. The function gets the arguments of the op, with
    tensors on the CPU, and returns its results as new tensors of the shapes and dtypes of the op's fake form.

    `ttnn` names a function as "package.module:function". It computes the op with Tenstorrent's library, from the same
    arguments with tensors of ttnn. `tt-torch codegen` and `device="ttnn"` call it; without it, they refuse the op.

    A later registration of the op replaces this one, for programs that are loaded after it. Raises ExtensionError for
    an op that cannot be registered.
    """
    name = _checked(op)
    if ttnn is not None and not _FUNCTION.fullmatch(ttnn):
        raise ExtensionError(name, f"ttnn={ttnn!r} is no function; it takes 'package.module:function'")

    def register(function: AnyFunction) -> AnyFunction:
        add_kernel(name, partial(run_kernel, function))
        _REGISTERED[name] = Registration(ttnn=ttnn)
        return function

    return register


def _checked(op: Any) -> str:
    """The name of an op. Raises ExtensionError if `op` is no op, or an op that cannot be registered."""
    found = overload_of(op)
    if found is None:
        raise ExtensionError(str(op), "it is no op of torch.library with one overload; name the overload")
    if reason := _refusal(found):
        raise ExtensionError(name_of(found), reason)
    return name_of(found)


def _refusal(op: OpOverload) -> str:
    """Why an op cannot be registered; "" if it can."""
    form = schema(op)
    if form.name.partition("::")[0] in OURS:
        return "it is no op of your own"
    if form.is_mutable:
        return "it writes to its arguments; a registered op must be functional"
    if any(part.alias_info for part in (*form.arguments, *form.returns)):
        return "its results share memory with its arguments; a registered op returns new tensors"
    if not form.returns or any(not isinstance(part.type, torch.TensorType) for part in form.returns):
        return f"it returns {', '.join(str(part.type) for part in form.returns) or 'nothing'}, expected only tensors"
    if len(form.returns) > MOST_RESULTS:
        return f"it has {len(form.returns)} results, expected up to {MOST_RESULTS}"
    if is_random(op):
        return "it draws random numbers, which the device would not draw from the generators of PyTorch"
    if is_taken_apart(op):
        return "it is implemented as CompositeImplicitAutograd, so PyTorch replaces it by other ops"
    return ""

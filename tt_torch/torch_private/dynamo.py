"""Dynamo. Importing this imports it, which takes longer than importing torch.

Dynamo has no hook that tells a backend that a frame is traced for it. So `trace_frame` is replaced by a function that
does nothing more for other backends. It is the only function of PyTorch that stays replaced.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any, TypeVar
from unittest import mock

import torch
from torch._dynamo import (
    config,  # 2.13.0: for recurrent_layers_unrolled
    convert_frame,  # 2.13.0: for traced_within
    utils,  # 2.13.0: for nodes_run_by
)
from torch._dynamo.eval_frame import innermost_backend  # 2.13.0: for traced_within
from torch._dynamo.exc import (
    BackendCompilerFailed,  # 2.13.0: without it errors of the compiler reach the caller in a wrapping of Dynamo's
    RestartAnalysis,  # 2.13.0: without it a request of AOTAutograd to trace again is taken for a failure
    Unsupported,  # 2.13.0: without it compile_model would not say that a model is more than one graph
)
from torch._dynamo.guards import GuardBuilder  # 2.13.0: for traced_instead
from torch._dynamo.utils import counters  # 2.13.0: without it a sweep does not see where graphs break
from torch._dynamo.variables.base import VariableTracker  # 2.13.0: for traced_instead
from torch._dynamo.variables.builder import VariableBuilder  # 2.13.0: for traced_instead

__all__ = ["BackendCompilerFailed", "RestartAnalysis", "Unsupported", "counters"]

Function = TypeVar("Function", bound=Callable[..., Any])
Context = Callable[[], AbstractContextManager[None]]


# 2.13.0: without it what is below would hold for all backends of the process.
def traced_within(context: Context) -> Callable[[Function], Function]:
    """Marks a backend: a context holds while Dynamo traces a frame for it, and at no other time.

    A function around the backend is another backend, unless `functools.wraps` copies the mark to it.
    """

    def mark(backend: Function) -> Function:
        backend.tt_traced_within = context  # type: ignore[attr-defined]
        return backend

    return mark


def _context_of(compiler: Any) -> AbstractContextManager[None]:
    """The context of the backend that `torch.compile`, `torch._dynamo.optimize` and `functools.partial` wrap."""
    backend = innermost_backend(compiler)
    backend = getattr(backend, "compiler_fn", backend)
    while isinstance(backend, functools.partial):
        backend = backend.func
    context: Context = getattr(backend, "tt_traced_within", nullcontext)
    return context()


_trace_frame = convert_frame.trace_frame
_signature = inspect.signature(_trace_frame)


@functools.wraps(_trace_frame)
def _trace_within_context(*args: Any, **options: Any) -> Any:
    with _context_of(_signature.bind(*args, **options).arguments["compiler_fn"]):
        return _trace_frame(*args, **options)


# 2.13.0: for traced_within.
convert_frame.trace_frame = _trace_within_context


# 2.13.0: without it graphs break at LSTM, GRU and RNN, which then run on the host.
def recurrent_layers_unrolled() -> AbstractContextManager[None]:
    """While it holds, Dynamo traces recurrent layers."""
    return config.patch(allow_rnn=True)


run_node = utils.run_node  # 2.13.0: what the function of nodes_run_by calls


# 2.13.0: without it operands on the CPU beside others on the device are an error.
def nodes_run_by(function: Callable[..., Any]) -> AbstractContextManager[Any]:
    """While it holds, Dynamo tries each op on fake tensors by a call of the function instead of `run_node`."""
    return mock.patch.object(utils, "run_node", function)


# 2.13.0: without it optimizers with fused=True run on the host. The public `torch.compiler.substitute_in_graph` cannot
# be undone.
@contextmanager
def traced_instead(functions: Mapping[Callable[..., Any], Callable[..., Any]]) -> Iterator[None]:
    """While it holds, Dynamo traces the values of the mapping instead of its keys."""

    def variable(traced: Callable[..., Any]) -> Callable[..., Any]:
        def build(builder: VariableBuilder, value: Any) -> VariableTracker:
            builder.install_guards(GuardBuilder.ID_MATCH)
            return VariableTracker.build(builder.tx, traced)

        return build

    with mock.patch.dict(VariableBuilder._id_dispatch(), {id(f): variable(t) for f, t in functions.items()}):
        yield


# 2.13.0: without it ops on streams would reach AOTAutograd, which binds other ops to them, and our backend.
# torch/_dynamo/variables/streams.py defines them.
STREAM_OPS = {
    getattr(torch.ops.streams, name)
    for name in """fork join record_event record_stream synchronize_device synchronize_event synchronize_stream
    wait_event wait_stream""".split()
}


# 2.13.0: what traced_instead replaces, and by what, so that optimizers with fused=True run on the device.
def fused_step(module: ModuleType) -> Callable[..., None]:
    """The function that makes a step of an optimizer with fused=True, from the optimizer's module."""
    return getattr(module, f"_fused_{module.__name__.rpartition('.')[2]}")


# 2.13.0: see fused_step.
def for_each_step(module: ModuleType) -> Callable[..., None]:
    """The function that makes a step of an optimizer with foreach=True, from the optimizer's module."""
    return getattr(module, f"_multi_tensor_{module.__name__.rpartition('.')[2]}")

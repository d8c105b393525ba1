"""Private names of Dynamo. Importing this module imports Dynamo, which takes longer than importing torch.

Dynamo has no hook that tells a backend that a frame is traced for it. So `trace_frame` is replaced by a function that
behaves the same for other backends. It is the only function of PyTorch that stays replaced.
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
    BackendCompilerFailed,  # 2.13.0: without it Dynamo's wrapper of compiler errors would reach the caller
    RestartAnalysis,  # 2.13.0: without it a request of AOTAutograd to trace again would count as a failure
    Unsupported,  # 2.13.0: without it compile_model would not say that a model has more than one graph
    UserError,  # 2.13.0: the same, for a model whose shapes depend on values
)
from torch._dynamo.guards import GuardBuilder  # 2.13.0: for traced_instead
from torch._dynamo.utils import counters  # 2.13.0: without it a sweep cannot see where graphs break
from torch._dynamo.variables.base import VariableTracker  # 2.13.0: for traced_instead
from torch._dynamo.variables.builder import VariableBuilder  # 2.13.0: for traced_instead

__all__ = ["BackendCompilerFailed", "RestartAnalysis", "Unsupported", "UserError", "counters"]

Function = TypeVar("Function", bound=Callable[..., Any])
Context = Callable[[], AbstractContextManager[None]]


# 2.13.0: without it the changes below would apply to all backends of the process.
def traced_within(context: Context) -> Callable[[Function], Function]:
    """Marks a backend with a context that is active only while Dynamo traces a frame for this backend.

    A function that wraps the backend does not have the mark, unless `functools.wraps` copies it.
    """

    def mark(backend: Function) -> Function:
        backend.tt_traced_within = context  # type: ignore[attr-defined]
        return backend

    return mark


def _context_of(compiler: object) -> AbstractContextManager[None]:
    """The context of the backend inside of wrappers: torch.compile, torch._dynamo.optimize and functools.partial."""
    backend = innermost_backend(compiler)
    backend = getattr(backend, "compiler_fn", backend)
    while isinstance(backend, functools.partial):
        backend = backend.func
    context: Context = getattr(backend, "tt_traced_within", nullcontext)
    return context()


_trace_frame = convert_frame.trace_frame
_signature = inspect.signature(_trace_frame)


@functools.wraps(_trace_frame)
def _trace_within_context(*args: object, **options: object) -> object:
    with _context_of(_signature.bind(*args, **options).arguments["compiler_fn"]):
        return _trace_frame(*args, **options)


# 2.13.0: for traced_within.
convert_frame.trace_frame = _trace_within_context


# 2.13.0: without it graphs break at LSTM, GRU and RNN, which then run on the host.
def recurrent_layers_unrolled() -> AbstractContextManager[None]:
    """While this context is active, Dynamo traces recurrent layers."""
    return config.patch(allow_rnn=True)


run_node = utils.run_node  # 2.13.0: the function that nodes_run_by replaces, for its replacement to call


# 2.13.0: without it an op with some operands on the CPU and others on the device is an error.
def nodes_run_by(function: Callable[..., Any]) -> AbstractContextManager[object]:
    """While this context is active, Dynamo runs each op on fake tensors by `function` instead of `run_node`."""
    return mock.patch.object(utils, "run_node", function)


# 2.13.0: without it optimizers with fused=True run on the host. The effect of the public
# `torch.compiler.substitute_in_graph` cannot be undone.
@contextmanager
def traced_instead(functions: Mapping[Callable[..., Any], Callable[..., Any]]) -> Iterator[None]:
    """While this context is active, Dynamo traces the values of the mapping instead of its keys."""

    def variable(traced: Callable[..., Any]) -> Callable[..., Any]:
        def build(builder: VariableBuilder, value: object) -> VariableTracker:
            builder.install_guards(GuardBuilder.ID_MATCH)
            return VariableTracker.build(builder.tx, traced)

        return build

    with mock.patch.dict(VariableBuilder._id_dispatch(), {id(f): variable(t) for f, t in functions.items()}):
        yield


# 2.13.0: without it ops on streams would reach our backend, and AOTAutograd, which makes other ops depend on them.
# torch/_dynamo/variables/streams.py defines these ops.
STREAM_OPS = {
    getattr(torch.ops.streams, name)
    for name in """fork join record_event record_stream synchronize_device synchronize_event synchronize_stream
    wait_event wait_stream""".split()
}


# 2.13.0: traced_instead replaces fused_step by for_each_step, so that optimizers with fused=True run on the device.
def fused_step(module: ModuleType) -> Callable[..., None]:
    """The function that does a step of an optimizer with fused=True, from the optimizer's module."""
    return getattr(module, f"_fused_{module.__name__.rpartition('.')[2]}")


# 2.13.0: see fused_step.
def for_each_step(module: ModuleType) -> Callable[..., None]:
    """The function that does a step of an optimizer with foreach=True, from the optimizer's module."""
    return getattr(module, f"_multi_tensor_{module.__name__.rpartition('.')[2]}")

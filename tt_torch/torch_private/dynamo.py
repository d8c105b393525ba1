"""Private names of Dynamo. Importing this module imports Dynamo, which takes longer than importing torch.

Dynamo has no hook that tells a backend that a frame is compiled for it. So `_compile` is replaced by a function that
behaves the same for other backends. It is the only function of PyTorch that stays replaced.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any, TypeVar
from unittest import mock

import torch
from torch._dynamo import (
    config,  # 2.13.0: for recurrent_layers_unrolled
    convert_frame,  # 2.13.0: for compiled_within and one_compilation
    guards,  # 2.13.0: for guards_not_timed
    utils,  # 2.13.0: for nodes_run_by, once and told_of_recompilations
)
from torch._dynamo.eval_frame import innermost_backend  # 2.13.0: for compiled_within
from torch._dynamo.exc import (
    BackendCompilerFailed,  # 2.13.0: without it Dynamo's wrapper of compiler errors would reach the caller
    RestartAnalysis,  # 2.13.0: without it a request of AOTAutograd to trace again would count as a failure
    TorchRuntimeError,  # 2.13.0: without it `tt-torch fuzz` would report refusals of PyTorch's shape functions
    Unsupported,  # 2.13.0: without it compile_model would not say that a model has more than one graph
    UserError,  # 2.13.0: the same, for a model whose shapes depend on values
)
from torch._dynamo.guards import GuardBuilder  # 2.13.0: for traced_instead
from torch._dynamo.source import AttrSource  # 2.13.0: for changes_known
from torch._dynamo.utils import counters  # 2.13.0: without it a sweep cannot see where graphs break
from torch._dynamo.variables.base import VariableTracker  # 2.13.0: for traced_instead
from torch._dynamo.variables.builder import VariableBuilder  # 2.13.0: for traced_instead
from torch._dynamo.variables.tensor import TensorVariable  # 2.13.0: for changes_known

from tt_torch.python_stack import with_room

__all__ = ["BackendCompilerFailed", "RestartAnalysis", "TorchRuntimeError", "Unsupported", "UserError", "counters"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Compilation:
    """Dynamo compiles a frame with this code. If it is `whole`, a graph break is an error (`fullgraph=True`).

    `keywords` are the keyword arguments that the backend gets, such as `options`.
    """

    code: CodeType
    whole: bool
    keywords: Mapping[str, Any]


Context = Callable[[Compilation], AbstractContextManager[None]]


# 2.13.0: without it the changes below would apply to all backends of the process, and no graph break would be told.
def compiled_within(context: Context) -> Callable[[Function], Function]:
    """Marks a backend with a context that is active only while Dynamo compiles a frame for this backend.

    A backend may have several. Errors of the context reach the caller of the frame. A function that wraps the backend
    does not have the mark, unless `functools.wraps` copies it.
    """

    def mark(backend: Function) -> Function:
        backend.tt_compiled_within = (*_contexts(backend), context)  # type: ignore[attr-defined]
        return backend

    return mark


def _contexts(backend: object) -> tuple[Context, ...]:
    return getattr(backend, "tt_compiled_within", ())


# 2.13.0: torch.compile wraps the backend in an object with `compiler_fn`, and with `kwargs` for its options.
def _unwrapped(compiler: object) -> tuple[object, dict[str, Any]]:
    """The backend inside of wrappers (torch.compile, torch._dynamo.optimize and functools.partial), and the keyword
    arguments that it gets."""
    wrapper = innermost_backend(compiler)
    backend, keywords = getattr(wrapper, "compiler_fn", wrapper), dict(getattr(wrapper, "kwargs", {}))
    while isinstance(backend, functools.partial):
        keywords = {**backend.keywords, **keywords}
        backend = backend.func
    return backend, keywords


_compile = convert_frame._compile  # 2.13.0: the function that is replaced below, for its replacement to call
_compile_with_room = with_room(_compile)
_signature = inspect.signature(_compile)


@functools.wraps(_compile)
def _compile_within_contexts(*args: Any, **options: Any) -> object:
    given = _signature.bind(*args, **options).arguments
    backend, keywords = _unwrapped(given["compiler_fn"])
    contexts = _contexts(backend)
    if not contexts:
        return _compile(*args, **options)  # for another backend
    compiled: object = None
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context(Compilation(given["code"], given["one_graph"], keywords)))
        compiled = _compile_with_room(*args, **options)
    return compiled


# 2.13.0: for compiled_within.
convert_frame._compile = _compile_within_contexts


# 2.13.0: without it compile_model would trace in several threads at once, and each patches torch.nn.Module.
def one_compilation() -> AbstractContextManager[object]:
    """Dynamo's lock, so that one thread of the process compiles at a time. A thread may take it several times."""
    return convert_frame.compile_lock


# 2.13.0: without it explain would not say why a function is compiled again.
def told_of_recompilations(tell: Callable[[CodeType, str], None]) -> Callable[[Function], Function]:
    """Marks a backend with a function that gets the code of each frame that Dynamo compiles again for this backend,
    and the guard that failed."""

    @contextmanager
    def telling(frame: Compilation) -> Iterator[None]:
        try:
            yield
        finally:
            # The reason is for example "0/1: x == 3   # in the file ...", and a stack below.
            reason = utils.get_compilation_metrics()[-1].recompile_reason
            if reason:
                tell(frame.code, reason.partition("\n")[0].partition(": ")[2].partition("  #")[0].strip())

    return compiled_within(telling)


# 2.13.0: without it a graph break would be told again with each recompilation, and for each frame around its line.
def once(message: str, tell: Callable[[], None]) -> None:
    """Calls `tell`, unless it has been called for the same message since the last `torch.compiler.reset()`."""
    if message not in utils.warn_once_cache:
        tell()
        utils.warn_once_cache.add(message)


# 2.13.0: without it graphs break at LSTM, GRU and RNN, which then run on the host.
def recurrent_layers_unrolled() -> AbstractContextManager[None]:
    """While this context is active, Dynamo traces recurrent layers."""
    return config.patch(allow_rnn=True)


# 2.13.0: without it the second shape of a tensor with a value per chip would end in an error of PyTorch's tracing.
def sizes_static() -> AbstractContextManager[None]:
    """While this context is active, Dynamo captures a graph per shape."""
    return config.patch(automatic_dynamic_shapes=False, assume_static_by_default=True)


# 2.13.0: without it each graph would empty the CPU's caches, in 45 of the 125 ms that a small function takes. This
# measures a time that is only written to a log.
def guards_not_timed() -> AbstractContextManager[object]:
    """While this context is active, Dynamo does not measure how long the guards of a new graph take."""
    return mock.patch.object(guards, "profile_guard_manager", lambda *args: 0.0)


_sync_if_changed = TensorVariable._sync_if_inplace_mutation  # 2.13.0: for changes_known, for its replacement to call


# 2.13.0: without it `x.shape` after `x.transpose_(0, 1)` would be the shape before it, if `x` is no input of a graph.
# Dynamo looks at a changed tensor again only if the op has another tensor as an argument. And what `d = x.data` returns
# after `d.add_(y)` would be another `x.data`, without the gradients of `y`.
def changes_known() -> AbstractContextManager[object]:
    """While this context is active, Dynamo looks at each tensor again that an op has changed in place."""

    def look_again(x: TensorVariable, translator: Any, version: int | None, has_tensor: bool) -> None:
        before = x.stride
        _sync_if_changed(x, translator, version, True)
        if x.stride != before:
            _look_at_other_names(x, translator)
        if x.requires_grad and isinstance(x.source, AttrSource) and x.source.member == "data":
            x.source = None

    return mock.patch.object(TensorVariable, "_sync_if_inplace_mutation", look_again)


def _look_at_other_names(x: TensorVariable, translator: Any) -> None:
    """After `w = v.t_()`, `v` and `w` are two variables of Dynamo for one tensor."""

    def look(other: VariableTracker) -> None:
        if isinstance(other, TensorVariable) and _example(other) is _example(x):
            other.synchronize_attributes(translator)

    while translator is not None:
        VariableTracker.visit(look, [translator.stack, translator.symbolic_locals])
        translator = translator.parent


def _example(x: TensorVariable) -> object:
    return x.proxy.node.meta.get("example_value", x)


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

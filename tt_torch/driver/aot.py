"""Ahead-of-time compilation: a model for given inputs becomes a binary."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import VALUES_DECIDE, compile_captured
from tt_torch.driver.executor import Executor
from tt_torch.driver.observer import Observer
from tt_torch.dynamo.tracing import traced_for_device
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.errors import CompileError, TTTorchError
from tt_torch.files import write
from tt_torch.torch_private.dynamo import BackendCompilerFailed, Unsupported, UserError

# Dynamo leaves frames out of the stack traces of ops if the name of their file has this form: those of torch.nn.
_NO_LINE_OF_THE_USERS = "<compile_model>/torch/nn/modules"


class CompiledModel:
    """A callable like the model, which runs one binary.

    `binary` is the content of the .ttnn file. `executor` has the inputs of the program and their roles.
    """

    def __init__(self, function: Function, executors: list[Executor]) -> None:
        self._function, self._executors = function, executors

    @property
    def executor(self) -> Executor:
        return self._executors[0]

    @property
    def binary(self) -> bytes:
        return self.executor.binary

    def save(self, path: str | Path) -> None:
        """Writes the binary; an existing file is replaced only once the new one is complete."""
        write(path, self.binary)

    def arguments(self, *args: Argument, **kwargs: Argument) -> list[torch.Tensor]:
        """The program's inputs, weights included, for a call with these arguments:
        `tt_torch.load(path)(*model.arguments(x))` computes what `model(x)` does."""
        self.executor.keep_arguments = True
        try:
            self(*args, **kwargs)
            return self.executor.last_arguments or []
        finally:
            self.executor.keep_arguments, self.executor.last_arguments = False, None

    def __call__(self, *args: Argument, **kwargs: Argument) -> Result:
        with torch.no_grad():
            return self._function(*args, **kwargs)


def _by_itself(model: torch.nn.Module | Function) -> Function:
    """The model as a function that shares nothing with other compilations, of the user's or of ours.

    Dynamo caches and counts compilations per code object, and all instances of a class share their code objects. So
    the function that Dynamo sees gets a copy of its code, and the model is traced as a part of it. The globals are
    those of the model's code, because Dynamo imports other modules by name, and code from `exec` may have none.
    """

    def call(*args: Argument, **kwargs: Argument) -> Result:
        return model(*args, **kwargs)

    code = call.__code__.replace(co_filename=_NO_LINE_OF_THE_USERS)
    own = inspect.unwrap(model.forward if isinstance(model, torch.nn.Module) else model)
    return types.FunctionType(code, getattr(own, "__globals__", globals()), call.__name__, None, call.__closure__)


def _named_as_in(model: torch.nn.Module | Function) -> Callable[[str], str]:
    """A function that gives an argument, such as `args[0]` or a part of it, the name that the model has for it."""
    try:
        parameters = list(inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model).parameters)
    except ValueError:  # a function that is not written in Python
        parameters = []

    def translate(name: str) -> str:
        found = re.match(r"args\[(\d+)\](.*)", name)
        return parameters[int(found[1])] + found[2] if found and int(found[1]) < len(parameters) else name

    return translate


def compile_model(
    model: torch.nn.Module | Function, example_inputs: Sequence[Argument], config: CompilerConfig | None = None
) -> CompiledModel:
    """Compiles a module or function for inputs of the shapes and dtypes of `example_inputs`, for inference.

    The example inputs are run once. Each call is independent of all others and of the user's own compilations.
    Raises CompileError when the model cannot be captured as one graph, and UnsupportedOpError when the graph has an op
    that the device does not run.
    """
    executors: list[Executor] = []
    config = (config or CompilerConfig()).with_env().frozen(fallback="error")  # the result is one binary
    options = BackendOptions(compiler_config=config)
    observer = Observer(executors.append, input_name=_named_as_in(model), flag=False)

    @traced_for_device
    def record(gm: torch.fx.GraphModule, inputs: Sequence[Argument]) -> Function:
        return compile_captured(gm, inputs, options, observer)

    function = torch.compile(_by_itself(model), backend=record, fullgraph=True, dynamic=False)
    try:
        with torch.no_grad():
            function(*example_inputs)
    except BackendCompilerFailed as failure:
        if isinstance(failure.inner_exception, TTTorchError):
            raise failure.inner_exception from None
        if isinstance(failure.inner_exception, VALUES_DECIDE):
            raise CompileError(f"a shape or an index depends on values: {failure.inner_exception}") from failure
        raise
    except (Unsupported, UserError) as failure:
        advice = "torch.compile with tt_torch.backend accepts models of several graphs"
        raise CompileError(f"the model cannot be captured as one graph; {advice}: {failure}") from failure
    if not executors:
        raise CompileError("nothing was compiled: compile_depth is below EXECUTE, or the model computes nothing")
    return CompiledModel(function, executors)

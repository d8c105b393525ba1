"""The ways in which a program runs, and what is seen of it."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.dynamo.types import Function
from tt_torch.errors import InexactError, TTTorchError
from tt_torch.fuzz.meshes import Split, on_chips, whole
from tt_torch.fuzz.tolerance import memory
from tt_torch.fuzz.training import Compiler, Trained, train
from tt_torch.torch_private.ops import OpOverload, schema
from tt_torch.torch_private.tensors import TorchDispatchMode, storage_of
from tt_torch.torch_private.trees import tree_leaves, tree_map_only

_CACHING = {"TT_TORCH_CACHE_SIZE": str(1 << 30), "TT_TORCH_VERIFY_IR": ""}  # verified programs are not taken from it


@dataclass(frozen=True)
class Seen:
    """A tensor after a program has run."""

    value: torch.Tensor  # on the CPU
    strides: tuple[int, ...]  # of dimensions with more than one element; empty for a tensor without elements
    first: int  # the first tensor of the program with the same memory
    has_gradients: bool = False


def _backend(**options: str | bool | int) -> Function:
    config = BackendOptions(compiler_config=CompilerConfig(**options))  # type: ignore[arg-type]
    return partial(tt_torch.backend, options=config)


def _torch_compile(function: Function, examples: Sequence[Any], **options: str | bool | int) -> Function:
    return torch.compile(function, backend=_backend(**options), dynamic=False)


def _ahead_of_time(function: Function, examples: Sequence[Any]) -> Function:
    """The package of the program, saved and loaded, with the parameters of the program itself. A call that it refuses
    as inexact runs the compiled model."""
    parameters = dict(function.named_parameters()) if isinstance(function, Trained) else {}
    model = tt_torch.compile_model(function, copy.deepcopy(list(examples)), training=isinstance(function, Trained))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "program.ttpkg"))
        loaded = tt_torch.load(Path(folder, "program.ttpkg"))
    assert isinstance(loaded, LoadedModel)
    for name, parameter in parameters.items():
        loaded.weights[name] = parameter

    def run(*inputs: Any) -> Any:
        try:
            return loaded(*inputs)
        except InexactError:
            return model(*inputs)

    return run


def _from_cache(function: Function, examples: Sequence[Any]) -> Function:
    """The program as a second process compiles it: the compile cache has what a first call has compiled."""
    # The parameters of a program that is trained are its own, and a program may write to them.
    first, second = (_torch_compile(f, examples) for f in (copy.deepcopy(function), function))

    def run(*inputs: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, TT_TORCH_CACHE_DIR=folder, **_CACHING):
            with torch.random.fork_rng():
                first(*copy.deepcopy(inputs))
            torch.compiler.reset()
            return second(*inputs)

    return run


def _after(
    change: Callable[[torch.Tensor], torch.Tensor], function: Function, examples: Sequence[Any], **options: bool
) -> Function:
    """A program whose first call had other inputs. What it found out from these must not decide about the second call.
    A program that is trained has its parameters from the beginning, so it gets no earlier call."""
    if isinstance(function, Trained):
        return _torch_compile(function, examples, **options)
    compiled = torch.compile(function, backend=_backend(**options))

    def run(*inputs: Any) -> Any:
        with torch.random.fork_rng(), suppress(RuntimeError, IndexError, TTTorchError):  # inputs that do not fit
            compiled(*tree_map_only(torch.Tensor, change, inputs))
        return compiled(*inputs)

    return run


def _with_other_values(x: torch.Tensor) -> torch.Tensor:
    """A tensor of this form with the numbers 0, 1 and 2."""
    other = copy.deepcopy(x)
    memory(other).copy_(torch.arange(memory(other).numel()) % 3)
    return other


def _with_more_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x, x[:1]]) if x.dim() else x.clone()


def _eager(function: Function, examples: Sequence[Any]) -> Function:
    return function


def _traced(function: Function, examples: Sequence[Any]) -> Function:
    """PyTorch's own tracing, without a compiler behind it."""
    return torch.compile(function, backend="aot_eager", dynamic=False)


@dataclass(frozen=True)
class Way:
    compiled: Compiler
    bf16: bool = False
    device: str = "cpu"
    on_chips: bool = False


WAYS: Mapping[str, Way] = {
    "compile": Way(_torch_compile),
    "bf16": Way(partial(_torch_compile, dtype="bf16"), bf16=True),
    "aot": Way(_ahead_of_time),
    "cache": Way(_from_cache),
    "again": Way(partial(_after, _with_other_values)),
    "sizes": Way(partial(_after, _with_more_rows)),
    "trace": Way(partial(_after, _with_other_values, enable_trace=True)),
    "optimizer": Way(partial(_torch_compile, optimization_level=2)),
    "tt": Way(_eager, device="tt"),
    "mesh": Way(_torch_compile, device="tt", on_chips=True),
    "mesh-eager": Way(_eager, device="tt", on_chips=True),
}
EAGER, TRACED = Way(_eager), Way(_traced)


def run(
    function: Function, inputs: Sequence[torch.Tensor], way: Way, trains: bool, split: Split | None = None
) -> list[Seen]:
    """Runs a program. Returns its outputs, then its inputs as it leaves them, then the gradients, then the memory
    around each input. With a split, the inputs are DTensors, and results are returned as whole tensors."""
    with _given(inputs, way, split) as own:
        results = train(function, own, way.compiled) if trains else [*way.compiled(function, own)(*own), *own]
        return seen([*map(whole, results), *around(own)])


def _given(inputs: Sequence[torch.Tensor], way: Way, split: Split | None) -> AbstractContextManager[list[torch.Tensor]]:
    """The program's own copies of its inputs, on the device of the way."""
    if way.device == "cpu":
        return nullcontext(copy.deepcopy(list(inputs)))
    own = [x.clone().to(way.device) for x in inputs]
    return on_chips(split, own) if split else nullcontext(own)


def around(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """For each input, the elements of its memory that belong to no input. A copy on the device has none."""
    found = []
    for x in inputs:
        whole = memory(x.detach()) if x.device.type == "cpu" else torch.zeros(0, dtype=x.dtype)
        apart = torch.ones(whole.shape, dtype=torch.bool)
        for y in inputs if whole.numel() else ():
            if storage_of(x) == storage_of(y):
                apart[torch.arange(whole.numel()).as_strided(y.shape, y.stride(), y.storage_offset())] = False
        found.append(whole[apart])
    return found


class StridesOfShapeFunctions(TorchDispatchMode):
    """Gives each result the strides of PyTorch's shape function for its op, which is all that tracing sees.

    For some ops these are not the strides of the kernel. A result whose shape depends on values keeps its own.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, op: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = op(*args, **(kwargs or {}))
        if any(r.alias_info for r in schema(op).returns):
            return result
        try:
            form = op(*tree_map_only(torch.Tensor, _form, args), **tree_map_only(torch.Tensor, _form, kwargs or {}))
        except RuntimeError:
            return result
        forms = iter(tree_leaves(form))
        return tree_map_only(torch.Tensor, lambda x: _in_form(x, next(forms)), result)


def _in_form(x: torch.Tensor, form: torch.Tensor) -> torch.Tensor:
    if x.stride() == form.stride():
        return x
    return torch.empty_strided(x.shape, form.stride(), dtype=x.dtype).copy_(x)


def _form(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def _strides(x: torch.Tensor) -> tuple[int, ...]:
    return tuple(step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1 and x.numel())


def seen(tensors: Sequence[torch.Tensor]) -> list[Seen]:
    first: dict[int, int] = {}
    found = []
    for i, x in enumerate(tensors):
        shares = first.setdefault(storage_of(x), i) if x.numel() else i
        found.append(Seen(x.detach().cpu().clone(), _strides(x), shares, x.requires_grad))
    return found


def show(
    function: Function, inputs: Sequence[torch.Tensor], way: str, trains: bool, split: Split | None = None
) -> None:
    """Prints what eager PyTorch gives, and what the way gives."""
    for name, each, on in (("eager", EAGER, None), (way, WAYS[way], split)):
        print(f"{name}:")
        for tensor in run(function, inputs, each, trains, on):
            print(f"  {tensor}")

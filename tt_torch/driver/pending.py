"""Asynchronous calls: a call returns before its program has run, and its results are fetched later.

The calls of one function overlap: while a stage computes one call, the stage before it computes the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch.fx import GraphModule

from tt_torch.config import CompilerConfig
from tt_torch.dynamo.interface import source
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.errors import AsyncError
from tt_torch.torch_private.aot import TracingContext, is_weight, written_inputs
from tt_torch.torch_private.distributed import one_process
from tt_torch.torch_private.tensors import version
from tt_torch.torch_private.trees import tree_map_only

T = TypeVar("T")
_NO_TENSOR = "an asynchronous call gives no tensor yet"


class Pending:
    """A result of an asynchronous call. It is no tensor yet: `result()` or `tt_torch.to_host` gives the tensor."""

    def __init__(self, future: Future[Sequence[Result]], position: int) -> None:
        self._future, self._position = future, position

    def done(self) -> bool:
        """Whether the call has ended, also by an error."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the tensor. Raises the error of the call, and TimeoutError after `timeout` seconds."""
        return self._future.result(timeout)[self._position]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{_NO_TENSOR}, so no {name!r}: call `result()` first")

    def __bool__(self) -> bool:
        raise TypeError(f"{_NO_TENSOR}, so it is neither true nor false: call `result()` first")


def to_host(results: T) -> T:
    """The `results` of asynchronous calls, with a tensor instead of each Pending, also in lists, dicts and registered
    classes. Waits for the calls, and raises the error of the first call that failed."""
    waited_for: T = tree_map_only(Pending, lambda pending: pending.result(), results)
    return waited_for


def asynchronous(gm: GraphModule, run: Function, config: CompilerConfig, name: Callable[[str], str]) -> Function:
    """`run`, compiled from `gm`, as a function that immediately returns a Pending for each of its results.

    The calls run in threads; there is one thread more than stages. Weights stay on the device, so they must not be
    written before the call has ended. All other inputs are copied when the call is made. `name` translates names of
    inputs. Raises AsyncError if the calls must not overlap.
    """
    weights = _weights(gm, name)
    (output,) = gm.graph.find_nodes(op="output")
    stages = {chip for _, chip in config.device_map}
    threads = ThreadPoolExecutor(len(stages) + 1, thread_name_prefix="tt_torch_call")

    def call(*inputs: Argument) -> tuple[Pending, ...]:
        versions = {i: version(inputs[i]) for i in weights if not inputs[i].is_inference()}
        # A graph with DTensors also has their mesh as an input.
        own = [x if i in versions or not isinstance(x, torch.Tensor) else x.clone() for i, x in enumerate(inputs)]
        future = threads.submit(_run, run, own, versions, torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        return tuple(Pending(future, i) for i in range(len(output.args[0])))

    return call


def _weights(gm: GraphModule, name: Callable[[str], str]) -> list[int]:
    """The positions of a graph's parameters and buffers. Raises AsyncError if calls of the graph must not overlap."""
    placeholders, described = gm.graph.find_nodes(op="placeholder"), TracingContext.get().fw_metadata
    if any(isinstance(node.meta.get("example_value"), torch.SymInt) for node in placeholders):
        raise AsyncError("the graph has changing sizes", "compile it with dynamic=False, or without async_mode")
    door = one_process()
    if door and door.hosts():
        raise AsyncError("several processes share the mesh, and they exchange values in the order of the calls")
    if described is None:
        raise AsyncError("the whole graph runs on the host")
    written = written_inputs(described, [node.meta.get("example_value") for node in placeholders])
    if names := [name(source(placeholders[i])) for i in written]:
        raise AsyncError(f"the graph writes to {', '.join(names)}, which the next call may read too early")
    return [i for i, node in enumerate(placeholders) if is_weight(node)]


def _run(
    run: Function, inputs: Sequence[Argument], versions: dict[int, int], grad: bool, inference: bool
) -> Sequence[Result]:
    with torch.inference_mode(inference), torch.set_grad_enabled(grad):
        results: Sequence[Result] = run(*inputs)
    if any(version(inputs[i]) != before for i, before in versions.items()):
        raise AsyncError("a weight was written before an asynchronous call had ended", "call `result()` before")
    return results

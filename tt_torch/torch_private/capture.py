"""Dynamo's capture of a function, apart from its caches. Importing this module imports Dynamo."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo import config  # 2.13.0: without it numbers and sizes of a second capture would be symbols
from torch._dynamo.convert_frame import CaptureOutput, fullgraph_capture  # 2.13.0: for captured
from torch._dynamo.source import TensorPropertySource  # 2.13.0: for reads_values
from torch._dynamo.utils import dynamo_timed, get_metrics_context  # 2.13.0: a capture needs these contexts around it
from torch._guards import TracingContext, tracing  # 2.13.0: without it the backend has no fake tensors
from torch.distributed.device_mesh import DeviceMesh
from torch.fx import GraphModule

from tt_torch.torch_private.replaced import Replaced

Function = Callable[..., Any]

# 2.13.0: without it attributes that a model sets are not known. Dynamo tells them in a warning with these words.
_SIDE_EFFECTS = "While compiling, we found certain side effects happened"
_SETTINGS: Mapping[str, Any] = {
    "assume_static_by_default": True,
    "automatic_dynamic_shapes": False,
    "specialize_float": True,
    "specialize_int": True,
    "side_effect_replay_policy": "warn",
}


@dataclass(frozen=True)
class Capture:
    """A function as a graph of all its tensor ops, and as code of Dynamo for the part that Python runs.

    `side_effects` describes the Python objects that the function changes, such as attributes that it sets. `replaced`
    are those of their parts that the function also reads.
    """

    output: CaptureOutput
    side_effects: str
    replaced: Replaced

    @property
    def reads_values(self) -> bool:
        """Whether the graph holds only for some values of its inputs. All shapes are constants."""
        given = self.output.backend_input
        numbers = [x for x in given.example_inputs if not isinstance(x, (torch.Tensor, DeviceMesh))]
        env = given.fake_mode.shape_env
        symbols = {symbol for guard in env.guards for symbol in guard.expr.free_symbols}
        # The parts of DTensors have symbolic sizes, which stay as they are in all calls.
        sizes = {s for s in symbols if all(isinstance(o, TensorPropertySource) for o in env.var_to_sources[s])}
        return bool(numbers or symbols - sizes)

    @property
    def computes_numbers(self) -> bool:
        """Whether the graph computes Python numbers from tensors, as `item` does."""
        values = [node.meta.get("example_value") for node in self.graph.graph.nodes]
        return any(isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) for value in values)

    @property
    def graph(self) -> GraphModule:
        return self.output.backend_input.graph_module

    def inputs(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Any, ...]:
        """The inputs of the graph in a call of the function with these arguments. Nothing is computed."""

        def stop(*inputs: object) -> None:
            raise _Inputs(inputs)

        try:
            self.function(stop)(*args, **kwargs)
        except _Inputs as found:
            return found.args[0]
        raise AssertionError("the code of Dynamo does not call its graph")

    def function(self, run: Function) -> Function:
        """The function, with `run` for its graph. Conditions on its arguments are not checked."""
        return self.output.forward_callable(compiled_fn=run, extra_globals=self.output.graph_capture_output.f_globals)

    def compiled(self, compiler: Function) -> tuple[Function, Any]:
        """The compiler's result for the graph and the fake tensors of its inputs, and the metadata of AOTAutograd."""
        given = self.output.backend_input
        for example in given.example_inputs:
            example.item_memo = None  # so that the compiler cannot read the value of an example, either
        context = TracingContext(given.fake_mode)
        context.tensor_to_context = given.tensor_to_context
        with tracing(context):
            run = compiler(given.graph_module, given.example_inputs)
        return run, context.fw_metadata


class _Inputs(Exception):
    """Carries the inputs of a graph out of the code that calls it."""


# 2.13.0: without it each call with other arguments would be captured again, after limits that all callers share.
def captured(
    function: Function,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    mended: Callable[[GraphModule], GraphModule],
    side_effects: bool = True,
) -> Capture | None:
    """Captures a Python function as one graph, for arguments of these kinds; None if it computes no tensor.

    The function does not run. Its numbers and the shapes of its tensors are constants of the graph. `mended` gives the
    graph that takes the place of Dynamo's. Without `side_effects`, calls of the capture change no Python objects.

    Raises Unsupported or UserError if one graph is not possible.
    """
    replaced = Replaced()
    with (
        replaced.heard(),
        config.patch(**_SETTINGS, replay_side_effects=side_effects),
        get_metrics_context(),
        dynamo_timed("fullgraph_capture"),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        output = fullgraph_capture(function, tuple(args), dict(kwargs))
    told = [str(warning.message) for warning in caught]
    for warning in caught:
        if not str(warning.message).startswith(_SIDE_EFFECTS):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    effects = [text.partition(": ")[2] for text in told if text.startswith(_SIDE_EFFECTS)]
    if output.backend_input is None:
        return None
    replaced.compare(output)
    output.backend_input.graph_module = mended(output.backend_input.graph_module)
    return Capture(output, "; ".join(effects), replaced)

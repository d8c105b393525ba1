"""Facts about a model that was compiled ahead of time: its graph, its inputs, and the example of its call."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch

from tt_torch.driver.arguments import Call, Form, Signature, tensors_in
from tt_torch.driver.program import Program
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.torch_private.capture import Capture
from tt_torch.torch_private.distributed import one_process

Model: TypeAlias = Callable[..., Any]  # a torch.nn.Module or a function
Metadata: TypeAlias = Any  # of AOTAutograd: which inputs a graph writes to, and how many outputs it has

# If the name of a frame's file has this form, as in torch.nn, Dynamo leaves the frame out of the stack traces of ops.
# As a name within this package, it is no line of the user in errors.
_NO_LINE_OF_THE_USERS = str(Path(__file__).with_name("torch") / "nn/modules")


@contextmanager
def on_cpu(model: Model) -> Iterator[None]:
    """Weights on `meta` are tensors on the CPU in this context, or DTensors on the device of their mesh. Nobody writes
    to them, so the tensors on the CPU take no memory."""
    replaced: list[tuple[torch.nn.Module, str, torch.Tensor]] = []
    made: dict[int, torch.Tensor] = {}
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    try:
        for module in modules:
            for name, x in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                if x.is_meta:
                    replaced.append((module, name, x))
                    setattr(module, name, made.setdefault(id(x), _empty(x)))
        yield
    finally:
        for module, name, x in replaced:
            setattr(module, name, x)


def _empty(x: torch.Tensor) -> torch.Tensor:
    door = one_process()
    if door and isinstance(x, door.DTensor):
        memory = door.without_values(x)
    else:
        memory = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cpu")
    return torch.nn.Parameter(memory, x.requires_grad) if isinstance(x, torch.nn.Parameter) else memory


class Input(NamedTuple):
    """An input of a captured graph: an argument or a part of one, or a weight, with its name in the model."""

    name: str
    tensor: torch.Tensor
    is_argument: bool


@dataclass(frozen=True)
class Compilation:
    """A model, an example of its call, and what they became. The tensors of the call have no values."""

    model: Model
    call: Call
    capture: Capture
    signature: Signature
    forms: dict[str, Form]  # of the arguments
    program: Program
    backward: Program | None  # computes the gradients, in a compilation for training
    trained: list[int]  # positions of the graph's inputs that may require gradients, in a compilation for training
    metadata: Metadata


def by_itself(model: Model) -> Function:
    """The model as a function with its own code, so that no line of this file is a location of an op.

    Its globals are the globals of the model's code, because Dynamo imports other modules by name, and code from `exec`
    may have no name.
    """

    def call(*args: Argument, **kwargs: Argument) -> Result:
        return model(*args, **kwargs)

    code = call.__code__.replace(co_filename=_NO_LINE_OF_THE_USERS)
    own = inspect.unwrap(model.forward if isinstance(model, torch.nn.Module) else model)
    return types.FunctionType(code, getattr(own, "__globals__", globals()), call.__name__, None, call.__closure__)


def weights_of(model: Model) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a module by their first names; a function has none."""
    return dict([*model.named_parameters(), *model.named_buffers()]) if isinstance(model, torch.nn.Module) else {}


def inputs_of(model: Model, capture: Capture, call: Call) -> list[Input]:
    """The inputs of the graph in this call.

    A tensor that is neither an argument nor a weight of the module has the name that Dynamo gives it.
    """
    arguments = {id(x): name for name, x in tensors_in(call).items()}
    weights = {id(tensor): name for name, tensor in weights_of(model).items()}
    nodes = capture.graph.graph.find_nodes(op="placeholder")
    inputs = zip(nodes, capture.inputs(call.args, call.kwargs), strict=True)
    known = arguments | weights
    return [Input(known.get(id(x), node.name), x, id(x) in arguments) for node, x in inputs]

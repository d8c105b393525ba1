"""PyTorch's `while_loop` as two device programs: its condition and its body. The host decides what runs next.

The values of the loop stay on the device from one step to the next. Parts of a condition or a body that the device does
not support run on the host, as in other graphs. The values then cross in each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch.driver.executor import KEPT, Executor, eager_device
from tt_torch.driver.program import Program, Runner
from tt_torch.dynamo.exactness.runner import ExactRunner
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Function
from tt_torch.torch_private.ops import while_loop

CompileBody: TypeAlias = Callable[[GraphModule, Sequence[str]], Program]


class Loop(torch.nn.Module):
    """Takes the carried tensors and then the others that the loop reads. Returns the carried ones after the last step.

    `kinds` are the roles of the inputs. Weights keep their memory, and each program has its own copy on the device.
    """

    def __init__(self, condition: Program, body: Program, carried: int, kinds: Sequence[str]) -> None:
        super().__init__()
        self.condition, self.body, self.carried, self.kinds = condition, body, carried, list(kinds)
        self.devices = [torch.device("cpu")] * carried
        self.stays = all(_takes_device_tensors(program) for program in (condition, body))
        if self.stays:
            for program in (condition, body):
                _compute_on_cpu_if_inexact(program)
            _leave_results_on_device(body)

    @property
    def pieces(self) -> list[Runner]:
        """What runs the condition and the body, without the checks for exact integers."""
        return [p.runner.runner if isinstance(p.runner, ExactRunner) else p.runner for p in (self.condition, self.body)]

    def return_on_device(self, position: int) -> None:
        """Lets a result stay on the device."""
        self.devices[position] = eager_device()

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        here = eager_device() if self.stays else torch.device("cpu")
        values = [x if kind in KEPT else x.to(here) for x, kind in zip(given, self.kinds, strict=True)]
        while self.condition(list(values))[0].item():
            values[: self.carried] = self.body(list(values))
        own = {id(x) for x in given}  # a loop without a step gives the caller's tensor, which needs a copy
        results = [x.to(device) for x, device in zip(values, self.devices, strict=False)]
        return tuple(x.clone() if id(x) in own else x for x in results)


def _takes_device_tensors(program: Program) -> bool:
    """Whether a program is one device program, so that nothing else reads its inputs."""
    has_complex = program.interface.complex_inputs or program.interface.complex_outputs
    return isinstance(program.runner, ExactRunner) and isinstance(program.runner.runner, Executor) and not has_complex


def _leave_results_on_device(program: Program) -> None:
    """All but the flag of exact integers, which the host reads."""
    exact = program.runner
    assert isinstance(exact, ExactRunner) and isinstance(exact.runner, Executor)
    for position in range(len(exact.runner.compiled.output_dtypes) - exact.plan.flagged):
        exact.runner.return_on_device(position)


def _compute_on_cpu_if_inexact(program: Program) -> None:
    exact = program.runner
    assert isinstance(exact, ExactRunner)
    if exact.eager:
        exact.eager = _with_cpu_tensors(exact.eager)


def _with_cpu_tensors(function: Function) -> Function:
    return lambda *inputs: function(*(x.cpu() for x in inputs))


def compile_loops(outer: GraphModule, roles: Sequence[str], compile_body: CompileBody) -> dict[str, Loop]:
    """Replaces the `while_loop` ops of a graph by modules, whose names and loops are returned.

    `roles` are those of the placeholders. Loops that carry or read Python numbers stay as they are.
    """
    kinds = dict(zip(outer.graph.find_nodes(op="placeholder"), roles, strict=True))
    loops: dict[str, Loop] = {}
    for node in outer.graph.find_nodes(op="call_function", target=while_loop):
        condition, body, carried, others = node.args
        graphs = [_with_tuple(outer.get_submodule(part.target)) for part in (condition, body)]
        read = [*carried, *others]
        if not all(isinstance(x, Node) and isinstance(x.meta["val"], torch.Tensor) for x in read):
            continue
        if not all(_returns_tensors(graph) for graph in graphs):
            continue
        given = ["input"] * len(carried) + [kinds.get(x, "input") for x in others]
        programs = [compile_body(graph, given) for graph in graphs]
        loop = Loop(programs[0], programs[1], len(carried), given)
        loops[node.name] = loop
        outer.add_submodule(node.name, loop)
        with outer.graph.inserting_before(node):
            call = outer.graph.call_module(node.name, tuple(read))
        call.meta = dict(node.meta)
        node.replace_all_uses_with(call)
        outer.graph.erase_node(node)
    if loops:
        _drop_unread(outer.graph)
    return loops


def _with_tuple(graph: GraphModule) -> GraphModule:
    """A copy of a graph that returns a tuple, also for a single result. Eager PyTorch still needs the graph itself."""
    graph = copied(graph)
    output = graph.graph.output_node()
    if not isinstance(output.args[0], (list, tuple)):
        output.args = ((output.args[0],),)
    return graph


def _returns_tensors(graph: GraphModule) -> bool:
    results = graph.graph.output_node().args[0]
    return all(isinstance(x, Node) and isinstance(x.meta.get("val"), torch.Tensor) for x in results)


def _drop_unread(graph: Graph) -> None:
    """Removes the reads of graphs that are programs now."""
    for node in graph.find_nodes(op="get_attr"):
        if not node.users:
            graph.erase_node(node)

"""PyTorch's `while_loop` and `cond` as device programs. The host decides which program runs next.

A loop has a program for its condition and one for its body. Values of the loop stay on the device from one step to the
next. `cond` has a program for each branch, and only one of them runs. Parts of these programs that the device does not
support run on the host, as in other graphs. The values then cross in each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from tt_torch.driver.exact_runner import ExactRunner
from tt_torch.driver.executor import KEPT, Executor, eager_device
from tt_torch.driver.program import Program, Runner
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Argument, Function
from tt_torch.torch_private.ops import cond, while_loop

CompileBody: TypeAlias = Callable[[GraphModule, Sequence[str]], Program]


class Decision(torch.nn.Module):
    """Takes the place of an op, and has its programs. The programs in `returning` give the results of the op.

    `kinds` are the roles of the op's inputs. Weights keep their memory, and each program has a copy on the device.
    """

    def __init__(self, programs: Sequence[Program], returning: Sequence[Program], kinds: Sequence[str]) -> None:
        super().__init__()
        self.programs, self.kinds = list(programs), list(kinds)
        self.devices: dict[int, torch.device] = {}  # of the results that do not return to the CPU
        self.stays = all(map(_takes_device_tensors, programs))
        if self.stays:
            for program in programs:
                _compute_on_cpu_if_inexact(program)
            for program in returning:
                _leave_results_on_device(program)

    @property
    def pieces(self) -> list[Runner]:
        """What runs the programs, without the checks for exact integers."""
        return [p.runner.runner if isinstance(p.runner, ExactRunner) else p.runner for p in self.programs]

    def return_on_device(self, position: int) -> None:
        """Lets a result stay on the device."""
        self.devices[position] = eager_device()

    def given(self, inputs: Sequence[torch.Tensor], kinds: Sequence[str]) -> list[torch.Tensor]:
        """The inputs where the programs take them: on the device, if nothing else reads them."""
        here = eager_device() if self.stays else torch.device("cpu")
        return [x if kind in KEPT else x.to(here) for x, kind in zip(inputs, kinds, strict=True)]

    def returned(self, results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The results where the graph reads them. Those that are inputs of the op become copies."""
        own, cpu = {id(x) for x in inputs}, torch.device("cpu")
        moved = [x.to(self.devices.get(i, cpu)) for i, x in enumerate(results)]
        return tuple(x.clone() if id(x) in own else x for x in moved)


class Loop(Decision):
    """Takes the carried tensors, then the others that the loop reads. Returns the carried ones after the last step."""

    def __init__(self, condition: Program, body: Program, carried: int, kinds: Sequence[str]) -> None:
        super().__init__([condition, body], [body], kinds)
        self.condition, self.body, self.carried = condition, body, carried

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = self.given(inputs, self.kinds)
        while self.condition(list(values))[0].item():
            values[: self.carried] = self.body(list(values))
        return self.returned(values[: self.carried], inputs)


class Branches(Decision):
    """Takes the predicate and then the operands. Returns the results of the branch that the predicate chooses."""

    def __init__(self, yes: Program, no: Program, kinds: Sequence[str]) -> None:
        super().__init__([yes, no], [yes, no], kinds)

    def forward(self, predicate: torch.Tensor, *operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
        chosen = self.programs[0 if predicate.item() else 1]
        return self.returned(chosen(self.given(operands, self.kinds[1:])), operands)


def _takes_device_tensors(program: Program) -> bool:
    """Whether a program is one device program, so that nothing else reads its inputs."""
    has_complex = program.interface.complex_inputs or program.interface.complex_outputs
    return isinstance(program.runner, ExactRunner) and isinstance(program.runner.runner, Executor) and not has_complex


def _leave_results_on_device(program: Program) -> None:
    """Lets all results stay on the device, except the flag of exact integers, which the host reads."""
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


def compile_decisions(outer: GraphModule, roles: Sequence[str], compile_body: CompileBody) -> dict[str, Decision]:
    """Replaces the `while_loop` and `cond` ops of a graph by modules, which are returned by name.

    `roles` are the roles of the placeholders. Ops that carry or return Python numbers stay as they are.
    """
    kinds = dict(zip(outer.graph.find_nodes(op="placeholder"), roles, strict=True))
    made: dict[str, Decision] = {}
    for node in [n for n in outer.graph.nodes if n.target in FORMS]:
        form = FORMS[node.target](node)
        if not all(isinstance(x, Node) and isinstance(x.meta["val"], torch.Tensor) for x in form.changing):
            continue
        graphs = [with_tuple(outer.get_submodule(part.target)) for part in form.graphs]
        for graph in graphs:
            write_numbers(graph.graph, form.operands)
        if not all(map(returns_tensors, graphs)):
            continue
        read = [x for x in form.read if isinstance(x, Node)]
        made[node.name] = _compiled(node, graphs, [kinds.get(x, "input") for x in read], compile_body)
        outer.add_submodule(node.name, made[node.name])
        with outer.graph.inserting_before(node):
            call = outer.graph.call_module(node.name, tuple(read))
        call.meta = dict(node.meta)
        node.replace_all_uses_with(call)
        outer.graph.erase_node(node)
    if made:
        drop_unread(outer.graph)
    return made


@dataclass(frozen=True)
class Form:
    """The parts of an op: the graphs that it calls, their operands, and all that it reads. What is in `changing` must
    be tensors, because a step or a call changes it. Other operands may be numbers, such as the sizes of a tensor."""

    graphs: Sequence[Node]
    operands: Sequence[Argument]
    read: Sequence[Argument]
    changing: Sequence[Argument]


def _of_loop(node: Node) -> Form:
    condition, body, carried, others = node.args
    return Form((condition, body), [*carried, *others], [*carried, *others], carried)


def _of_cond(node: Node) -> Form:
    predicate, yes, no, operands = node.args
    return Form((yes, no), operands, [predicate, *operands], [predicate])


FORMS: dict[object, Callable[[Node], Form]] = {while_loop: _of_loop, cond: _of_cond}


def write_numbers(graph: Graph, operands: Sequence[Argument]) -> None:
    """Replaces the inputs of a graph that are numbers by these numbers."""
    for placeholder, number in zip(graph.find_nodes(op="placeholder"), operands, strict=True):
        if isinstance(number, Node):
            continue
        for user in list(placeholder.users):
            user.args, user.kwargs = map_arg(
                (user.args, user.kwargs),
                lambda n, placeholder=placeholder, number=number: number if n is placeholder else n,
            )
        graph.erase_node(placeholder)


def _compiled(node: Node, graphs: Sequence[GraphModule], kinds: list[str], compile_body: CompileBody) -> Decision:
    if node.target is cond:
        yes, no = (compile_body(graph, kinds[1:]) for graph in graphs)
        return Branches(yes, no, kinds)
    carried = len(node.args[2])
    kinds[:carried] = ["input"] * carried
    condition, body = (compile_body(graph, kinds) for graph in graphs)
    return Loop(condition, body, carried, kinds)


def with_tuple(graph: GraphModule) -> GraphModule:
    """A copy of a graph that returns a tuple, also for a single result. Eager PyTorch still needs the graph itself."""
    graph = copied(graph)
    output = graph.graph.output_node()
    if not isinstance(output.args[0], (list, tuple)):
        output.args = ((output.args[0],),)
    return graph


def returns_tensors(graph: GraphModule) -> bool:
    results = graph.graph.output_node().args[0]
    return all(isinstance(x, Node) and isinstance(x.meta.get("val"), torch.Tensor) for x in results)


def drop_unread(graph: Graph) -> None:
    """Removes the reads of graphs that are programs now."""
    for node in graph.find_nodes(op="get_attr"):
        if not node.users:
            graph.erase_node(node)

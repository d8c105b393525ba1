"""The host partition: ops without a form on the device run in eager PyTorch; all others stay on the device.

A graph is first compiled as a whole. If that fails, each form of op in it is compiled alone. Ops that fail go to the
host, and PyTorch's partitioner makes the largest possible device subgraphs of the others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from tt_torch import user_code
from tt_torch.driver.crossing import move_once
from tt_torch.driver.decisions import CompileBody, compile_decisions
from tt_torch.driver.executor import Executor
from tt_torch.driver.program import Runner
from tt_torch.dynamo import facts
from tt_torch.dynamo.passes.constant_fold import constant_fold
from tt_torch.dynamo.passes.repair import refusal
from tt_torch.dynamo.passes.rewriting import copied, user_line, views_to_reshapes
from tt_torch.dynamo.types import Function
from tt_torch.errors import CompileError, OverrideError, UnsupportedOpError

CompilePiece = Callable[[GraphModule, Sequence[str]], Runner]


@dataclass(frozen=True)
class HostOp:
    """An op that runs on the host `count` times per call. `location` is the first line of the user's code that calls
    it; `bytes` is the number of bytes that cross between host and device for it in each call."""

    op: str
    count: int
    location: str
    reason: str
    bytes: int

    def __str__(self) -> str:
        times = f", {self.count} times" if self.count > 1 else ""
        place = f" at {self.location}" if self.location else ""
        return f"{self.op}{times}{place} ({self.reason}); moves {self.bytes:,} bytes per call"


class HostFallbackWarning(UserWarning):
    """Some ops of a compiled graph run on the host, in eager PyTorch; `ops` lists them with the reasons.

    The warning is given at the line of the first of these ops.
    """

    def __init__(self, ops: Sequence[HostOp]) -> None:
        super().__init__("\n  ".join(["these ops run on the host, in eager PyTorch:", *map(str, ops)]))
        self.ops = tuple(ops)


class HostProgram:
    """A graph that runs in eager PyTorch and calls device subgraphs; `pieces` are their runners."""

    def __init__(self, outer: GraphModule, pieces: Sequence[Runner], constants: Sequence[torch.Tensor]) -> None:
        self.outer, self.pieces, self.constants = outer, pieces, constants

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        results: Sequence[torch.Tensor] = self.outer(*inputs, *self.constants)
        return results


def wholly_on_host(gm: GraphModule, reason: str) -> Function:
    """Lets eager PyTorch run a captured graph, and gives a warning with the reason."""
    user_code.warn(HostFallbackWarning([HostOp("the whole graph", 1, "", reason, 0)]))
    forward: Function = gm.forward
    return forward


def compile_with_host_ops(
    compile_piece: CompilePiece,
    try_op: CompilePiece,
    gm: GraphModule,
    roles: Sequence[str],
    compile_body: CompileBody | None = None,
) -> Runner:
    """Returns a runner for the graph. Warns with HostFallbackWarning if a part of it runs on the host. Raises
    OverrideError for an override that cannot be followed, because the host cannot follow it, either.

    `gm` is functional, has only tensors at its border, and may be changed. `roles` are the roles of its placeholders.
    `try_op` compiles an op alone. `compile_body` compiles a graph that `while_loop` or `cond` calls; without it, these
    ops run on the host.
    """
    reason, named = "", ""
    if not refused(computing(gm.graph)):
        try:
            return compile_piece(gm, roles)
        except OverrideError:
            raise
        except CompileError as error:
            reason, named = brief(error), getattr(error, "op", "")
    constants = constant_fold(gm, fold=True)
    gm.graph.eliminate_dead_code()
    roles = [*roles, *["constant"] * len(constants)]
    host = refused(computing(gm.graph))
    if reason and not host:
        nodes = computing(gm.graph)
        suspects = [n for n in nodes if str(n.target) == named]  # most often only this op fails
        host = probe(suspects, try_op) or probe(nodes, try_op) or dict.fromkeys(nodes, reason)
    outer, pieces = _partition(gm, roles, host, compile_piece, try_op)
    runners = {name: outer.get_submodule(name).runner for name in pieces}
    decisions = compile_decisions(outer, roles, compile_body) if compile_body else {}
    parts = {name: runner for name, runner in runners.items() if isinstance(runner, Executor)} | decisions
    if len(parts) == len(runners) + len(decisions) > 1 and _from_host(gm):
        move_once(outer, parts, _is_view)
    views_to_reshapes(outer)
    outer.recompile()
    host = {node: why for node, why in host.items() if node.name not in decisions}
    if host:
        ops = report(gm.graph, host, pieces, decisions)
        user_code.warn(HostFallbackWarning(ops), ops[0].location)
    inner = [each for decision in decisions.values() for each in decision.pieces]
    return HostProgram(outer, [*runners.values(), *inner], list(constants.values()))


def _partition(
    gm: GraphModule, roles: Sequence[str], host: dict[Node, str], compile_piece: CompilePiece, try_op: CompilePiece
) -> tuple[GraphModule, dict[str, GraphModule]]:
    """Splits the graph and compiles its device subgraphs; ops that fail to compile are added to `host`."""
    probed = False
    while True:
        outer, pieces = split(gm, host)
        try:
            for name, piece in pieces.items():
                runner = compile_piece(piece, roles_of_piece(outer, name, roles))
                outer.set_submodule(name, DevicePiece(runner))
            return outer, pieces
        except OverrideError:
            raise
        except CompileError as error:
            inside = {n.name for n in piece.graph.nodes}
            found = {} if probed else probe(computing(gm.graph), try_op)
            fresh = {n: why for n, why in found.items() if n not in host}
            host |= fresh or {n: brief(error) for n in computing(gm.graph) if n.name in inside}
            probed = True


class DevicePiece(torch.nn.Module):
    """A compiled subgraph, which takes the place of its graph module."""

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self.runner = runner

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.runner(inputs))


def refused(nodes: Sequence[Node]) -> dict[Node, str]:
    """The ops that are known to have no form on the device, with the reasons; nothing is compiled."""
    reasons = {node: refusal(node) for node in nodes}
    return {node: why for node, why in reasons.items() if why}


def probe(nodes: Sequence[Node], compile_piece: Callable[[GraphModule, Sequence[str]], object]) -> dict[Node, str]:
    """Compiles each form of op (target, arguments, shapes, dtypes) by itself. Returns the ops that fail, with
    reasons."""
    verdicts: dict[str, str] = {}
    host = refused(nodes)
    for node in nodes:
        if node in host:
            continue
        key = form(node)
        if key not in verdicts:
            verdicts[key] = _verdict(_alone(node), compile_piece)
        if verdicts[key]:
            host[node] = verdicts[key]
    return host


def form(node: Node) -> str:
    """Text that is equal for nodes that compile to the same program: target, arguments, shapes and dtypes."""
    return "{} {} {}".format(node.target, *map_arg((node.args, node.kwargs), _signature))


def _verdict(alone: GraphModule, compile_piece: Callable[[GraphModule, Sequence[str]], object]) -> str:
    try:
        compile_piece(alone, ["input"] * sum(n.op == "placeholder" for n in alone.graph.nodes))
    except CompileError as error:
        return brief(error)
    return ""


def brief(error: CompileError) -> str:
    """The reason of an error in a few words."""
    if isinstance(error, UnsupportedOpError):
        return error.detail or f"not supported in stage {error.stage}"
    return " ".join(str(error).split())


def split(gm: GraphModule, host: dict[Node, str]) -> tuple[GraphModule, dict[str, GraphModule]]:
    """A copy of `gm` whose largest device subgraphs are submodules, and a dict of these submodules by name."""
    own = copied(gm)
    names = {n.name for n in host}
    device = {n for n in computing(own.graph) if n.name not in names and tensors(n)}
    device |= {n for n in own.graph.nodes if n.target is operator.getitem and n.args[0] in device}
    support = create_op_support(lambda modules, node: node in device)
    # Views move no data: at the border of a device subgraph they belong to the host, and alone they are no subgraph.
    views = [f"torch.ops.{n.target}" for n in computing(own.graph) if _is_view(n)]
    partitioner = CapabilityBasedPartitioner(own, support, allows_single_node_partition=True, non_compute_ops=views)
    partitions = partitioner.propose_partitions()
    proposed = [set(p.nodes) for p in partitions]
    partitioner.remove_bookend_non_compute_ops(partitions)
    nodes = [{**p.nodes, **_second_readings(p.nodes, all_)} for p, all_ in zip(partitions, proposed, strict=True)]
    nodes = [chosen for chosen in nodes if chosen]
    outer = fuse_by_partitions(own, nodes, prefix="device_", always_return_tuple=True)
    pieces = {n.target: getattr(outer, n.target) for n in outer.graph.nodes if n.op == "call_module"}
    for piece in pieces.values():
        inputs_first(piece.graph)
    outer.recompile()
    return outer, pieces


def _second_readings(nodes: dict[Node, int | None], proposed: set[Node]) -> dict[Node, None]:
    """Views at the border whose tensors the subgraph reads anyway, and views of these views.

    If the view stayed outside of the subgraph, both the tensor and its view would cross to the device.
    """
    read = {n for node in nodes for n in node.all_input_nodes}
    here, leading = {*nodes, *read}, dict[Node, None]()
    views = [n for n in next(iter(nodes)).graph.nodes if n in proposed and n not in nodes] if nodes else []
    for view in views:
        if here.issuperset(view.all_input_nodes):
            here.add(view)
            leading[view] = None
    for view in reversed(views):
        if view not in read and not any(user in leading for user in view.users):
            leading.pop(view, None)
    return leading


def inputs_first(graph: Graph) -> None:
    """Moves the placeholders to the front: the fuser puts each of them before its first reader."""
    first = next(n for n in graph.nodes if n.op != "placeholder")
    for node in [n for n in graph.nodes if n.op == "placeholder"]:
        first.prepend(node)


def report(
    graph: Graph, host: dict[Node, str], pieces: dict[str, GraphModule], decisions: Collection[str]
) -> list[HostOp]:
    """One entry per combination of op, user's line and reason, in the order of the graph.

    `decisions` are the names of the nodes that are loops and branches of device programs.
    """
    device = {n.name for piece in pieces.values() for n in piece.graph.nodes if n.op == "call_function"}
    device |= {n.name for op in graph.nodes if op.name in decisions for n in (op, *op.users)}
    groups: dict[tuple[str, str, str], list[Node]] = {}
    for node in graph.nodes:
        if node in host:
            groups.setdefault((str(node.target), user_line(node), host[node]), []).append(node)
    return [
        HostOp(op, len(nodes), line, why, sum(_crossing(n, device) for n in nodes))
        for (op, line, why), nodes in groups.items()
    ]


def _crossing(node: Node, device: set[str]) -> int:
    """Bytes that a host op reads from device subgraphs, plus bytes that they read from it, also through views."""
    read = {n for source in node.all_input_nodes for n in _through(source, device, lambda n: n.all_input_nodes)}
    results = [n for n in node.users if n.target is operator.getitem] or [node]
    written = {r for r in results if any(n.name in device for u in r.users for n in _through(u, device, _users))}
    crossing = {n for n in read if n.name in device} | written
    return sum(v.numel() * v.element_size() for n in crossing for v in tensors(n))


def _users(node: Node) -> list[Node]:
    return list(node.users)


def _is_view(node: Node) -> bool:
    return facts.is_free(node.target)


def _from_host(gm: GraphModule) -> bool:
    return all(v.device.type == "cpu" for n in gm.graph.find_nodes(op="placeholder") for v in tensors(n))


def _through(node: Node, device: set[str], following: Callable[[Node], list[Node]]) -> list[Node]:
    """The node itself; for a view that stays on the host, the nodes behind it."""
    if node.name in device or not _is_view(node):
        return [node]
    return [found for n in following(node) for found in _through(n, device, following)]


def roles_of_piece(outer: GraphModule, name: str, roles: Sequence[str]) -> list[str]:
    """The roles of a subgraph's inputs. Inputs of the whole graph keep their roles; all others are "input"."""
    placeholders = dict(zip((n for n in outer.graph.nodes if n.op == "placeholder"), roles, strict=True))
    (caller,) = (n for n in outer.graph.nodes if n.op == "call_module" and n.target == name)
    return [placeholders.get(argument, "input") for argument in caller.args]


def computing(graph: Graph) -> list[Node]:
    """The nodes that are ops."""
    return [n for n in graph.nodes if n.op == "call_function" and n.target is not operator.getitem]


def tensors(node: Node) -> list[torch.Tensor]:
    """The fake tensors of a node's results."""
    found = node.meta.get("val")
    values = found if isinstance(found, (list, tuple)) else [found]
    return [v for v in values if isinstance(v, torch.Tensor)]


def _signature(node: Node) -> str:
    return str([(v.dtype, tuple(v.shape)) for v in tensors(node)])


def _alone(node: Node) -> GraphModule:
    """A graph of one op. It returns the results of the op that have readers."""
    graph = Graph()
    inputs = {n: graph.placeholder(f"x{i}") for i, n in enumerate(node.all_input_nodes)}
    for original, placeholder in inputs.items():
        placeholder.meta = dict(original.meta)
    new = graph.node_copy(node, lambda n: inputs[n])
    results = [n for n in node.users if n.target is operator.getitem]
    outputs = [graph.node_copy(n, lambda n: new) for n in results if n.users] or [new]
    graph.output(tuple(outputs))
    return GraphModule(torch.nn.Module(), graph)

"""Reports how Dynamo and the compiler divide a model. No program runs on the device."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from types import CodeType
from typing import TypeAlias

import torch
from torch import fx

from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.crossing import with_views
from tt_torch.driver.observer import Observer
from tt_torch.driver.partition import HostFallbackWarning, HostOp, HostProgram, computing, tensors
from tt_torch.driver.program import Runner
from tt_torch.dynamo import facts
from tt_torch.dynamo.interface import module_path
from tt_torch.dynamo.passes.rewriting import user_line
from tt_torch.dynamo.tracing import traced_for_device
from tt_torch.dynamo.types import Argument, Function
from tt_torch.torch_private.dynamo import told_of_recompilations
from tt_torch.torch_private.graph_breaks import GraphBreak, told_of_graph_breaks

Crossing: TypeAlias = tuple[set[fx.Node], set[fx.Node]]  # the values that go to the device, and to the host


@dataclass(frozen=True)
class Moved:
    """How many bytes cross between host and device for a graph: in each call, and once for its weights."""

    to_device: int
    to_host: int
    weights: int

    def __str__(self) -> str:
        per_call = f"{self.to_device:,} bytes go to the device and {self.to_host:,} to the host per call"
        return per_call + (f", {self.weights:,} bytes of weights once" if self.weights else "")


@dataclass(frozen=True)
class Graph:
    """A graph that becomes a program: the number of its ATen ops, the user's lines, and the bytes that it moves.

    A module of PyTorch stands for the line where no line of the user's code calls it.
    """

    ops: int
    lines: tuple[str, ...]
    moved: Moved

    def __str__(self) -> str:
        return f"{self.ops} {'op' if self.ops == 1 else 'ops'} at {', '.join(self.lines)}; {self.moved}"


@dataclass(frozen=True)
class Recompilation:
    """Dynamo compiled the function at `location` again, because the guard `reason` failed."""

    location: str
    reason: str

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}"


@dataclass(frozen=True)
class Explanation:
    """The findings of `explain`. Its text is a report. `host_ops` run in eager PyTorch; all graphs are in one list."""

    graphs: tuple[Graph, ...]
    breaks: tuple[GraphBreak, ...]
    host_ops: tuple[HostOp, ...]
    recompilations: tuple[Recompilation, ...]

    def __str__(self) -> str:
        told = [f"{b.location}: {b}{' (somebody asks for it)' if b.asked_for else ''}" for b in self.breaks]
        parts = {"graphs": self.graphs, "graph breaks": told, "ops on the host": self.host_ops}
        sections = {**parts, "recompilations": self.recompilations}
        return "\n".join(line for name, found in sections.items() for line in _section(name, found))


def explain(model: torch.nn.Module | Function, *args: Argument, **kwargs: Argument) -> Explanation:
    """Lists the graphs, graph breaks, host ops, moved bytes and recompilations of two calls `model(*args, **kwargs)`.

    The graphs are compiled completely, with the options of the environment variables, but eager PyTorch computes their
    results on the host. The two calls really change what the model changes, such as its statistics. The second call
    shows what is compiled again for the same arguments. Calls with other shapes may be compiled again, too. This
    neither uses nor changes programs that were compiled before.
    """
    found = _Found()
    backend = found.backend(BackendOptions(compiler_config=_config()))
    function = torch.compile(model, backend=backend, isolate_recompiles=True)  # type: ignore[call-overload]
    with _told(found.host_ops):
        for _ in range(2):
            function(*args, **kwargs)
    return found.explanation()


def _config() -> CompilerConfig:
    """The options of the environment, except that eager PyTorch computes the results and that nothing is refused."""
    config = CompilerConfig().with_env()
    config = dataclasses.replace(config, compile_depth=CompileDepth.TTNN_IR, bisect=False)
    fallback = "host" if config.fallback == "error" else config.fallback
    return dataclasses.replace(config, enable_intermediate_verification=False, fallback=fallback)


@contextmanager
def _told(ops: list[HostOp]) -> Iterator[None]:
    """Adds the ops that warnings name to `ops`, instead of warning. Other warnings are given afterwards."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HostFallbackWarning)
        yield
    for warning in caught:
        if isinstance(warning.message, HostFallbackWarning):
            ops.extend(warning.message.ops)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


@dataclass
class _Found:
    """The findings of two calls, so far."""

    graphs: list[Graph] = field(default_factory=list)
    breaks: dict[GraphBreak, None] = field(default_factory=dict)  # in their order, each break once
    host_ops: list[HostOp] = field(default_factory=list)
    recompilations: list[Recompilation] = field(default_factory=list)

    def backend(self, options: BackendOptions) -> Function:
        @told_of_recompilations(self._recompiled)
        @told_of_graph_breaks(lambda breaks, frame: self.breaks.update(dict.fromkeys(breaks)))
        @traced_for_device
        def backend(gm: fx.GraphModule, inputs: Sequence[Argument]) -> Function:
            return compile_captured(gm, inputs, options, Observer(compiled=self._compiled))

        return backend

    def _compiled(self, gm: fx.GraphModule, roles: Sequence[str], runner: Runner) -> None:
        nodes = computing(gm.graph)
        lines = tuple(dict.fromkeys(_place(node) for node in nodes))
        graph = runner.outer.graph if isinstance(runner, HostProgram) else gm.graph
        crossing = _between_programs(graph) if isinstance(runner, HostProgram) else _border(graph)
        self.graphs.append(Graph(len(nodes), lines, _moved(graph, *crossing, roles)))

    def _recompiled(self, code: CodeType, reason: str) -> None:
        self.recompilations.append(Recompilation(f"{code.co_filename}:{code.co_firstlineno}", reason))

    def explanation(self) -> Explanation:
        return Explanation(tuple(self.graphs), tuple(self.breaks), tuple(self.host_ops), tuple(self.recompilations))


def _border(graph: fx.Graph) -> Crossing:
    """The values that cross for a graph that is one program."""
    return {n for n in graph.find_nodes(op="placeholder") if n.users}, set(graph.output_node().all_input_nodes)


def _between_programs(outer: fx.Graph) -> Crossing:
    """The values that cross for a graph with host ops. A result that another program reads stays on the device."""
    calls = outer.find_nodes(op="call_module")
    there = with_views(outer, {n for call in calls for n in call.users}, calls, lambda n: facts.is_free(n.target))
    read = {n for call in calls for n in call.all_input_nodes} - there
    return read, {n for n in there if any(user not in calls and user not in there for user in n.users)}


def _moved(graph: fx.Graph, up: set[fx.Node], down: set[fx.Node], roles: Sequence[str]) -> Moved:
    """The bytes of the nodes that go to the device (`up`) and to the host (`down`).

    `roles` are the roles of the graph's first placeholders; all later placeholders are constants. Tensors that are on
    the device before or after a call do not move.
    """
    inputs = graph.find_nodes(op="placeholder")
    resident = {n for n, role in zip_longest(inputs, roles, fillvalue="constant") if role != "input"}
    returned = {n for n in down if list(n.users) == [graph.output_node()]}
    there = {n for n in {*inputs, *returned} if any(t.device.type == "tt" for t in tensors(n))}
    return Moved(_bytes(up - resident - there), _bytes(down - there), _bytes((up & resident) - there))


def _bytes(nodes: Iterable[fx.Node]) -> int:
    return sum(t.numel() * t.element_size() for n in nodes for t in tensors(n))


def _section(name: str, found: Sequence[object]) -> Iterator[str]:
    yield f"{name}: {len(found)}"
    for entry in found:
        yield f"  {entry}"


def _place(node: fx.Node) -> str:
    """The user's line, or the module for an op that no line of the user's code calls, as in `tt-torch explain`."""
    line = user_line(node)
    return line if re.search(r":\d+$", line) else f"module {module_path(node)}".rstrip()

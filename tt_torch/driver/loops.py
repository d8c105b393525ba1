"""Compiles a graph with ops that call graphs, such as `while_loop`, if no op may run in eager PyTorch.

The whole graph becomes one StableHLO module with loops and branches. This module is compiled as those of other
front-ends: it becomes device programs, and a flow between them. The host decides how often a loop runs, if that is not
known. If ops may run in eager PyTorch, `decisions.py` compiles such a graph.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import torch
from torch.fx import GraphModule, Node
from torch_mlir import ir

from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.driver import report
from tt_torch.driver.compile import Dump, reported, stablehlo_of
from tt_torch.driver.decisions import FORMS, returns_tensors, with_tuple
from tt_torch.driver.devices import Device
from tt_torch.driver.exact_runner import ExactRunner
from tt_torch.driver.executor import Executor
from tt_torch.driver.flow_runner import CheckedRunner
from tt_torch.driver.observer import Observer
from tt_torch.driver.stablehlo import IN_32_BITS, compile_steps, prepare_wide
from tt_torch.dynamo import graph_calls
from tt_torch.dynamo.calls import CHECKS, Check, require_in_32_bits, require_in_range
from tt_torch.dynamo.checks import defer_checks
from tt_torch.dynamo.complex_pairs import is_complex
from tt_torch.dynamo.exactness.limits import Limit, Plan
from tt_torch.dynamo.exactness.plan import check_ranges
from tt_torch.dynamo.interface import is_tensor
from tt_torch.dynamo.passes import run_passes
from tt_torch.dynamo.passes.promotion import promote
from tt_torch.dynamo.passes.rewriting import as_function, copied, user_line
from tt_torch.errors import UnsupportedOpError
from tt_torch.flow import MAIN
from tt_torch.mlir.functions import main, mark_arguments
from tt_torch.mlir.graph_calls import write_calls, write_constants
from tt_torch.mlir.pipeline import Timings
from tt_torch.torch_private.ops import while_loop


def calls_graphs(gm: GraphModule) -> bool:
    return any(node.target in FORMS for node in gm.graph.nodes)


def compile_loops(
    program: GraphModule, roles: Sequence[str], options: BackendOptions, device: Device, observer: Observer
) -> ExactRunner:
    """The runner of a graph with loops and branches. `roles` are the roles of its placeholders.

    Raises UnsupportedOpError for an op that the device lacks, and for what a graph that is called cannot have: Python
    numbers that change, random numbers, complex numbers and checks of the host.
    """
    config, eager, part = options.compiler_config, as_function(program), _part(copied(program))
    depth = config.compile_depth
    plan, resident = Plan(_limits(program)), [i for i, role in enumerate(roles) if role != "input"]
    stopped = ExactRunner(lambda inputs: eager(*inputs), eager, plan, resident)  # below EXECUTE, the CPU computes
    dump = Dump(config, observer.reached)
    with report.compiling(), reported(report.ops_of(program), dump.stem) as timings:
        module = _module(part, roles, config, timings, dump)
    if depth <= CompileDepth.STABLEHLO:
        return stopped
    checks = [Check(CHECKS[require_in_range], (), {})] if part.flagged else []
    if wide := prepare_wide(module, False):
        checks.append(Check(CHECKS[require_in_32_bits], tuple(wide), {}))
    with module.context:
        mark_arguments(main(module), roles)
    flow, programs = compile_steps(module, config, False)
    if depth < CompileDepth.EXECUTE:
        return stopped
    executors = {name: Executor(compiled, device).kept_in(options.caches) for name, compiled in programs.items()}
    for executor in executors.values():
        observer.executor(executor)
    runner = CheckedRunner(None if MAIN in programs else flow, executors, checks)
    observer.compiled(program, roles, runner)
    return ExactRunner(runner, eager, plan, resident)


def _limits(program: GraphModule) -> dict[int, Limit]:
    """The values of 64-bit integers that the device has, by the positions of the inputs."""
    inputs = enumerate(program.graph.find_nodes(op="placeholder"))
    known = [(i, node, node.meta["val"].dtype) for i, node in inputs]
    return {
        i: Limit(node.meta.get("source", node.name), IN_32_BITS[dtype], "")
        for i, node, dtype in known
        if dtype in IN_32_BITS and not dtype.is_floating_point
    }


@dataclass(frozen=True)
class _Part:
    """A graph in which calls with numbers stand for the ops that call graphs, and the graphs of each call. If it is
    flagged, its last result is false if a float does not fit into an integer, or an index is out of range."""

    graph: GraphModule
    calls: list[graph_calls.GraphCall]
    called: list[list[_Part]]
    flagged: bool


def _part(gm: GraphModule) -> _Part:
    """The parts of a graph, which is changed."""
    numbers, flags = count(), list[Node]()
    calls, called = list[graph_calls.GraphCall](), list[list[_Part]]()
    for node in [n for n in gm.graph.nodes if n.target in FORMS]:
        form = FORMS[node.target](node)
        if not all(map(is_tensor, form.changing)):
            raise _refused(node, "a Python number decides about it, or changes in it; make it a tensor")
        parts = [_part(_inner(gm.get_submodule(each.target), node)) for each in form.graphs]
        results = list(node.meta["val"])
        calls.append(graph_calls.GraphCall(node.target is while_loop, len(results)))
        called.append(parts)
        flags += _replace(node, form.read, next(numbers), results, any(part.flagged for part in parts))
    return _Part(gm, calls, called, check_ranges(gm, flags))


def _inner(graph: GraphModule, node: Node) -> GraphModule:
    """A graph that a node calls, ready for the device."""
    graph = with_tuple(graph)
    if not returns_tensors(graph):
        raise _refused(node, "it gives Python numbers")
    for each in graph.graph.nodes:
        if any(is_complex(x.meta.get("val")) for x in each.all_input_nodes):
            raise _refused(node, f"the device has no form of {each.target} with complex numbers, which is inside")
    if checks := defer_checks(graph):
        raise _refused(node, f"the host checks a result inside ({checks[0].op})")
    promote(graph.graph)
    return graph


def _refused(node: Node, detail: str) -> UnsupportedOpError:
    return UnsupportedOpError(str(node.target), "partition", user_line(node), f"{detail}; torch.compile runs it")


def _replace(
    node: Node, read: Sequence[object], number: int, results: Sequence[torch.Tensor], flagged: bool
) -> list[Node]:
    """Puts a call in the place of an op that calls graphs. The last result of the call, which is returned, is a flag if
    it is `flagged`."""
    graph, values = node.graph, list(results)
    with results[0].fake_mode, graph.inserting_before(node):  # type: ignore[attr-defined]
        values += [torch.empty((), dtype=torch.bool)] if flagged else []
        operands = [x for x in read if isinstance(x, Node)]
        new = graph.call_function(graph_calls.op_with(len(values)), (operands,), {"number": number})
        new.meta = node.meta | {"val": tuple(values) if len(values) > 1 else values[0]}
        made = [graph.call_function(operator.getitem, (new, i)) for i in range(len(values))] if values[1:] else [new]
    for each, value in zip(made, values, strict=True):
        each.meta = new.meta | {"val": value}
    for user in list(node.users):
        user.replace_all_uses_with(made[user.args[1]])
        graph.erase_node(user)
    graph.erase_node(node)
    return made[len(results) :]


def _module(part: _Part, roles: Sequence[str], config: CompilerConfig, timings: Timings, dump: Dump) -> ir.Module:
    """The StableHLO of a graph with the graphs that it calls, and with its constants."""
    constants = timings.measure("fx-passes", lambda: run_passes(part.graph, config))
    dump("FX", part.graph.graph)
    kinds = [*roles, *["constant"] * len(constants)]
    module = stablehlo_of(part.graph, kinds, {}, config, timings, dump)
    write_constants(module, list(constants.values()))
    bodies = [
        [
            _module(each, ["input"] * len(each.graph.graph.find_nodes(op="placeholder")), config, timings, dump)
            for each in parts
        ]
        for parts in part.called
    ]
    with module.context:
        write_calls(module, part.calls, bodies)
    return module

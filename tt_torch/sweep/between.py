"""Finds what a program with graph breaks computes between its graphs, in eager PyTorch, with PyTorch's profiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile, record_function

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.types import Argument, Function, Result

_GRAPH = "a compiled graph"
# Ops with these facts only return numbers, memory and views. A copy or computation inside of them is a separate event.
_NO_ARITHMETIC = Fact.READS | Fact.ALLOCATES | Fact.VIEW | Fact.RESHAPES


def marked(graph: Function) -> Function:
    """The compiled graph, with its calls marked for the profiler."""

    def call(*arguments: Argument) -> Result:
        with record_function(_GRAPH):
            return graph(*arguments)

    return call


def between_graphs(call: Callable[[], object]) -> dict[str, int]:
    """The ops that a call computes on the host outside of its marked graphs, with their counts."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        call()
    events = profiled.events() or []
    graphs = [event.time_range for event in events if event.name == _GRAPH]
    return dict(
        Counter(
            event.name
            for event in events
            if event.name.startswith("aten::") and not facts.named(event.name.removeprefix("aten::")) & _NO_ARITHMETIC
            and not any(graph.start <= event.time_range.start <= graph.end for graph in graphs)
        )
    )  # fmt: skip

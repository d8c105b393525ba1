"""Finds what a program with graph breaks computes between its graphs, in eager PyTorch, with PyTorch's profiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile, record_function

_GRAPH = "a compiled graph"

# They hand out numbers, memory and views; no value is computed.
_NO_ARITHMETIC = frozenset(
    "aten::" + name
    for name in """item _local_scalar_dense is_nonzero empty empty_strided empty_like new_empty resize_ set_ alias
    as_strided view reshape _reshape_alias _unsafe_view slice select narrow detach detach_ expand permute transpose t
    unsqueeze squeeze unbind split lift_fresh to resolve_conj resolve_neg""".split()
)


def marked(graph: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled graph, with its calls marked for the profiler."""

    def call(*arguments: Any) -> Any:
        with record_function(_GRAPH):
            return graph(*arguments)

    return call


def between_graphs(call: Callable[[], Any]) -> dict[str, int]:
    """The ops that a call computes on the host outside of its marked graphs, with their counts."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        call()
    events = profiled.events() or []
    graphs = [event.time_range for event in events if event.name == _GRAPH]
    return dict(
        Counter(
            event.name
            for event in events
            if event.name.startswith("aten::") and event.name not in _NO_ARITHMETIC
            and not any(graph.start <= event.time_range.start <= graph.end for graph in graphs)
        )
    )  # fmt: skip

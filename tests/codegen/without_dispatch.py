"""Lets a mock device take the calls of a trace. It is imported by scripts that a Python with the `ttnn` package runs.

The library crashes there when an op is dispatched into a trace, when a trace is run, and when a queue waits for an
event. So ops are recorded in its no-dispatch mode, and the names of the other two calls are collected instead.
"""

from __future__ import annotations

import ttnn

GRAPH = ttnn._ttnn.graph
begin, end = ttnn.begin_trace_capture, ttnn.end_trace_capture
crashing: list[str] = []


def begin_without_dispatch(*arguments, **options):
    number = begin(*arguments, **options)
    GRAPH.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
    return number


def end_without_dispatch(*arguments, **options):
    GRAPH.end_graph_capture()
    end(*arguments, **options)


ttnn.begin_trace_capture, ttnn.end_trace_capture = begin_without_dispatch, end_without_dispatch
ttnn.execute_trace = lambda device, number, *, cq_id, blocking: crashing.append("execute")
ttnn.wait_for_event = lambda cq_id, mesh_event: crashing.append("wait")

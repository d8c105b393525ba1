"""Runs the statements of a program without dispatching them, and compares each with the binary's description."""

from __future__ import annotations

from typing import Any

import ttnn

from .messages import Checked, FunctionFacts, StatementFacts, TensorFacts
from .refusal import refusal
from .specification import Specification

GRAPH = ttnn._ttnn.graph
Prepared = dict[tuple[str, int], ttnn.Tensor]  # blocked results, by their function's name and their position in it


def check_function(
    function: FunctionFacts, constants: dict[str, TensorFacts], prepared: Prepared, device: ttnn.MeshDevice
) -> Checked:
    """Runs a function's statements without dispatching them. Returns a verdict per statement and the peak of memory.

    The function's blocked results are added to `prepared`, for the functions that call it.
    """
    GRAPH.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
    try:
        scope = {"ttnn": ttnn, "device": device}
        scope["weights"] = {name: Specification(facts).make(device) for name, facts in constants.items()}
        scope |= {facts["name"]: Specification(facts).make(device) for facts in function["inputs"]}
        verdicts = [_check_statement(s, scope, prepared, device) for s in function["statements"]]
    finally:
        trace = GRAPH.end_graph_capture()
    blocked = {facts["name"] for s in function["statements"] if s["blocked"] for facts in s["results"]}
    outputs = enumerate(function["outputs"])
    prepared |= {(function["name"], i): scope[name] for i, name in outputs if name in blocked}
    return {"verdicts": verdicts, "peak": peaks(trace)}


def _check_statement(
    statement: StatementFacts, scope: dict[str, Any], prepared: Prepared, device: ttnn.MeshDevice
) -> list[str]:
    """The library's refusal of a statement, or the differences of its results from the binary's description.

    A result that differs is replaced by one as described, so that later statements are checked by themselves.
    """
    wanted = [Specification(facts) for facts in statement["results"]]
    if statement["callee"]:  # the called function is checked on its own
        for i, spec in enumerate(wanted):
            known = prepared.get((statement["callee"], i))
            scope[spec.name] = spec.make(device) if known is None else known
        return []
    try:
        exec(statement["code"], scope)
    except Exception as error:
        scope |= {spec.name: spec.make(device) for spec in wanted}
        return [refusal(error)]
    differences = []
    for spec in wanted:
        found = spec.differences(scope[spec.name], statement["blocked"])
        if found:
            scope[spec.name] = spec.make(device)
        differences += found
    return differences


def peaks(trace: list[dict[str, Any]]) -> dict[str, int]:
    """The largest number of bytes in live buffers of DRAM and of L1, and in circular buffers and tensors of one core's
    L1."""
    live = {"DRAM": 0, "L1": 0}
    peak = dict(live)
    for node in trace:
        change = {"buffer_allocate": 1, "buffer_deallocate": -1}.get(node["node_type"])
        if change and node["params"]["type"] in live:
            space = node["params"]["type"]
            live[space] += change * int(node["params"]["size"])
            peak[space] = max(peak[space], live[space])
    return peak | {"core": GRAPH.extract_resource_usage_per_core(trace).peak_total}

"""Runs the statements of a program without dispatching them, and compares each with the binary's description."""

from __future__ import annotations

import re
from collections import Counter
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
    # A view shares memory with its operand. The library frees the memory with the last tensor that has it. The runtime
    # forgets a tensor when it deallocates it, but a variable here would keep the memory.
    scope.pop(statement["freed"], None)
    differences = []
    for spec in wanted:
        found = spec.differences(scope[spec.name], statement["blocked"])
        if found:
            scope[spec.name] = spec.make(device)
        differences += found
    return differences


def peaks(trace: list[dict[str, Any]]) -> dict[str, int]:
    """The largest number of bytes in live buffers of DRAM and of L1, and in the circular buffers and the tensors of one
    core's L1 while an op runs."""
    live = {"DRAM": 0, "L1": 0}
    peak = live | {"core": 0}
    tensors, circular = 0, Counter[tuple[int, int]]()
    for node in trace:
        kind, facts = node["node_type"], node["params"] or {}
        change = {"buffer_allocate": 1, "buffer_deallocate": -1}.get(kind)
        if change and facts["type"] in live:
            space = facts["type"]
            live[space] += change * int(facts["size"])
            peak[space] = max(peak[space], live[space])
            tensors += change * int(facts["max_size_per_bank"]) * (space == "L1")
        elif kind in ALLOCATE and facts.get("globally_allocated", facts.get("borrows_memory")) == "0":
            circular.update(dict.fromkeys(_cores(facts["core_range_set"]), int(facts["size"])))
        elif kind in ("function_end", "circular_buffer_deallocate_all"):  # the next op has circular buffers of its own
            circular.clear()
        peak["core"] = max(peak["core"], tensors + max(circular.values(), default=0))
    return peak


# Nodes of circular buffers. Buffers that lie in the memory of a tensor take no memory of their own.
ALLOCATE = ("circular_buffer_allocate", "dataflow_buffer_allocate")


def _cores(ranges: str) -> list[tuple[int, int]]:
    """The cores of a text such as `{[0-0 - 7-6], [0-7 - 4-7]}`, which has the corners of rectangles."""
    found = (map(int, corner) for corner in re.findall(r"\[(\d+)-(\d+) - (\d+)-(\d+)\]", ranges))
    return [
        (x, y) for left, top, right, bottom in found for x in range(left, right + 1) for y in range(top, bottom + 1)
    ]

"""Binaries and MLIR modules as graphs of plain values, with what is known of each op: placement, cost, time, PCC."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tt_torch.errors import ModuleFormatError
from tt_torch.flatbuffer.binary import NOT_DEVICE_OPS, physical_bytes, tensor_refs
from tt_torch.flatbuffer.decode import decode
from tt_torch.profiling.cost_model import CHIPS, cost_of, place_of, results

_NODE = re.compile(r'"([\w.]+): [\w.]+"')


@dataclass
class Node:
    """An op, an input or the result list; `sources` are (node id, number of its output)."""

    id: str
    label: str
    namespace: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    sources: list[tuple[str, int]] = field(default_factory=list)
    outputs: list[dict[str, str]] = field(default_factory=list)


@dataclass
class Graph:
    """A program; `data` has numbers by measure and node id."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    data: dict[str, dict[str, float]] = field(default_factory=dict)


def read_graphs(path: Path) -> list[Graph]:
    """The programs of a `.ttnn` file, or the functions of an `.mlir` file."""
    data = path.read_bytes()
    return list(map(_program, decode(data)["programs"])) if path.suffix == ".ttnn" else _functions(data)


def _program(program: dict[str, Any]) -> Graph:
    graph = Graph(program["name"])
    made: dict[int, tuple[str, int]] = {}
    for i, ref in enumerate(program.get("inputs") or ()):
        graph.nodes.append(Node(f"input {i}", f"input {i}", "inputs", outputs=[_tensor(ref)]))
        made[ref["global_id"]] = (f"input {i}", 0)
    for operation in program.get("operations") or ():
        for name, table in operation["type"].items():
            if name not in ("DeallocateOp", "GetDeviceOp"):
                graph.nodes.append(_op(graph, name, table, operation.get("loc_info", ""), made))
    sources = [made[ref["global_id"]] for ref in program.get("outputs") or ()]
    graph.nodes.append(Node("results", "results", sources=sources))
    return graph


def _op(graph: Graph, name: str, table: dict[str, Any], location: str, made: dict[int, tuple[str, int]]) -> Node:
    out = list(table.get("outputs") or ()) if name == "LoadCachedOp" else results(table)
    read = [ref for ref in tensor_refs(table) if not any(ref is o for o in out)]
    names = _NODE.findall(location)
    node = Node(str(len(graph.nodes)), name, names[-1] if names else "")
    node.attributes = {k: json.dumps(v) for k, v in table.items() if isinstance(v, str | int | float | list | tuple)
                       and not list(tensor_refs(v))} | {"location": location}  # fmt: skip
    node.sources = [made[ref["global_id"]] for ref in read if ref["global_id"] in made]
    node.outputs = [_tensor(ref) for ref in out]
    made.update({ref["global_id"]: (node.id, i) for i, ref in enumerate(out)})
    if name not in NOT_DEVICE_OPS:
        cost = cost_of(name, table, CHIPS["Wormhole_b0"])
        node.attributes["cost model"] = f"{cost.seconds * 1e9:.1f} ns, {cost.bytes} bytes, {cost.flops} flops"
        graph.data.setdefault("model [ns]", {})[node.id] = cost.seconds * 1e9
        graph.data.setdefault("bytes moved", {})[node.id] = cost.bytes
    return node


def _tensor(ref: dict[str, Any]) -> dict[str, str]:
    memory = ref["desc"]["layout"]["memory_desc"]
    layout = "tile" if memory["tile_shape"] == {"y": 32, "x": 32} else "row major"
    return {
        "shape": "x".join(map(str, ref["desc"]["shape"])),
        "dtype": memory["data_type"],
        "layout": layout,
        "memory": place_of(ref),
        "bytes": f"{physical_bytes(ref):,}",
    }


def _functions(source: bytes) -> list[Graph]:
    from torch_mlir import ir

    from tt_torch.mlir.context import make_context

    with make_context():
        try:
            module = ir.Module.parse(source if source.startswith(b"ML\xefR") else source.decode())
        except (ir.MLIRError, UnicodeDecodeError) as error:
            raise ModuleFormatError(str(error).strip().splitlines()[-1]) from error
    return [_function(function) for function in module.body.operations]


def _function(function: Any) -> Graph:
    graph = Graph(function.name.value)
    body = function.regions[0].blocks[0]
    made: dict[Any, tuple[str, int]] = {}
    for i, argument in enumerate(body.arguments):
        graph.nodes.append(Node(f"input {i}", f"input {i}", "inputs", outputs=[{"type": str(argument.type)}]))
        made[argument] = (f"input {i}", 0)
    for op in body.operations:
        op = op.operation
        names = _NODE.findall(str(op.location))
        node = Node(str(len(graph.nodes)), op.name, names[-1] if names else "")
        node.attributes = {name: str(op.attributes[name])[:1000] for name in op.attributes}
        node.attributes["location"] = str(op.location)
        node.sources = [made[value] for value in op.operands if value in made]
        node.outputs = [{"type": str(result.type)} for result in op.results]
        made.update({result: (node.id, i) for i, result in enumerate(op.results)})
        graph.nodes.append(node)
    return graph


def add_profile(graphs: Iterable[Graph], path: Path) -> None:
    """Host times of the last call, from the CSV of `tt-torch profile`."""
    rows: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for row in _rows(path):
        where = json.loads(row["PROGRAM_METADATA"])
        rows.setdefault(where["program"], []).append((where["call"], row))
    for graph in graphs:
        calls = rows.get(graph.name, [])
        last = [row for call, row in calls if call == max(call for call, _ in calls)]
        pairs = _matched(graph, last, lambda row: (row["OP CODE"], row["LOC"]))
        graph.data["host [ns]"] = {node.id: float(row["HOST DURATION [ns]"]) for node, row in pairs}


def add_comparison(graphs: Iterable[Graph], path: Path) -> None:
    """PCCs from the CSV of `tt-torch verify`."""
    for graph in graphs:
        pairs = _matched(graph, list(_rows(path)), lambda row: (row["op"], row["node"]))
        graph.data["PCC"] = {node.id: float(row["pcc"]) for node, row in pairs if row["pcc"]}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def _matched(graph: Graph, rows: list[dict[str, str]], key: Any) -> Iterator[tuple[Node, dict[str, str]]]:
    """Ops and rows that tell of the same op: both are in the order of the program."""
    remaining = list(rows)
    for node in graph.nodes:
        names = {(node.label, node.namespace), (node.label, node.attributes.get("location", ""))}
        found = next((i for i, row in enumerate(remaining) if key(row) in names), None)
        if found is not None:
            yield node, remaining[found]
            del remaining[: found + 1]

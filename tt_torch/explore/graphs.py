"""Reads binaries and MLIR modules as graphs of plain values, with the placement, cost, time and PCC of each op."""

from __future__ import annotations

import csv
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tt_torch.driver.package.contents import binaries
from tt_torch.errors import BinaryFormatError, ModuleFormatError, ProfileFormatError
from tt_torch.files import MLIR_BYTECODE
from tt_torch.profiling.cost_model import PlannedOp, planned
from tt_torch.wire import facts, locations
from tt_torch.wire.binary import first_chip
from tt_torch.wire.decode import decode
from tt_torch.wire.messages import Program

if TYPE_CHECKING:
    from torch_mlir import ir

Row = dict[str, Any]  # the values of a row of a CSV, by column names
Columns = Mapping[str, Callable[[str], Any]]  # how the text of a column becomes a value
Op = tuple[str, str]  # the name of an op, and its FX node or its location
Tensor = dict[str, str]  # the shown properties of a tensor
Source = tuple[str, int]  # a node's id, and the number of one of its outputs


@dataclass
class Node:
    """An op, an input or the result list; `sources` are (node id, number of its output)."""

    id: str
    label: str
    namespace: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)


@dataclass
class Graph:
    """A program or function. `data[measure][node id]` is a number or a word."""

    name: str
    of_device: bool  # True for a binary, whose ops run on the device; False for a function of a module
    nodes: list[Node] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    data: dict[str, dict[str, float | str]] = field(default_factory=dict)

    def measure(self, node: Node, measures: dict[str, float | str]) -> None:
        for measure, value in measures.items():
            self.data.setdefault(measure, {})[node.id] = value


def read_graphs(path: Path) -> list[Graph]:
    """The programs of a `.ttnn` or `.ttpkg` file, or the functions of an `.mlir` file."""
    if path.suffix not in (".ttnn", ".ttpkg"):
        return _functions(path.read_bytes())
    files = binaries(path)
    graphs = []
    for name, data in files.items():
        binary = decode(data)
        arch = first_chip(binary["system_desc"])["arch"]
        made = [_program(program, arch) for program in binary["programs"]]
        for graph in made if len(files) > 1 else ():
            graph.name = f"{name}: {graph.name}"  # several programs have a function `main`
        graphs += made
    return graphs


def _program(program: Program, arch: str) -> Graph:
    graph, plan = Graph(program["name"], True), planned(program, arch)
    mesh = facts.mesh_shape(program)
    if mesh != (1, 1):
        graph.attributes["mesh"] = f"{mesh[0]}x{mesh[1]} chips; sizes are those of one chip"
    made = _Made()
    for i, tensor in enumerate(facts.inputs(program)):
        graph.nodes.append(Node(f"input {i}", f"input {i}", "inputs", outputs=[_tensor(tensor)]))
        made[tensor.id] = (f"input {i}", 0)
    for op in facts.ops(program):
        if op.name not in ("DeallocateOp", "GetDeviceOp"):
            node = _op(str(len(graph.nodes)), op, made)
            graph.nodes.append(node)
            graph.measure(node, {"layout": _places(node)})
            if op.on_device:
                graph.measure(node, _measures(next(plan)))
    sources = [made[tensor.id] for tensor in facts.outputs(program)]
    graph.nodes.append(Node("results", "results", sources=sources))
    return graph


class _Made(dict[int, Source]):
    """The source of each tensor that an input or an op gives, by its id."""

    def __missing__(self, number: int) -> Source:
        raise BinaryFormatError(f"the binary's outputs have tensor {number}, which no input or op gives")


def node_of(location: str) -> str:
    """The FX node that an op came from, the last one of a fused op; empty if its location names none."""
    return (locations.nodes(location) or [""])[-1]


def _op(identity: str, op: facts.Op, made: _Made) -> Node:
    """Makes the node of an op. `made` maps a tensor's id to its source; the op's results are added to it."""
    node = Node(identity, op.name, node_of(op.location))
    node.attributes = {k: json.dumps(v) for k, v in op.attributes.items()} | {"location": op.location}
    node.sources = [made[tensor.id] for tensor in op.operands]
    node.outputs = [_tensor(tensor) for tensor in op.results]
    made.update({tensor.id: (node.id, i) for i, tensor in enumerate(op.results)})
    return node


def _places(node: Node) -> str:
    """The data type, layout and place of an op's results."""
    return "; ".join(f"{out['dtype']} {out['layout']}, {out['memory']}" for out in node.outputs)


def _measures(op: PlannedOp) -> dict[str, float | str]:
    """The measures of an op that are known without running it. DRAM and L1 are the bytes allocated after the op."""
    measures: dict[str, float | str] = {
        "model [ns]": op.cost.seconds * 1e9,
        "flops": op.cost.flops,
        "bytes moved": op.cost.bytes,
        "DRAM [bytes]": op.dram,
        "L1 [bytes]": op.l1,
    }
    if op.cost.link_bytes:
        measures["bytes over a link"] = op.cost.link_bytes
    return measures


def _tensor(tensor: facts.Tensor) -> Tensor:
    config = tensor.memory_config
    spec = config.get("shard_spec") if config else None
    memory = _memory(tensor.place, config["tensor_memory_layout"] if config else "", spec["shape"] if spec else ())
    return _described(tensor.shape, tensor.dtype, tensor.tiled, memory, tensor.bytes)


def _memory(place: str, kind: str, parts: Iterable[int]) -> str:
    """The place of a tensor, and how it is split there if it is. Example: `L1, WidthSharded in 32x64`."""
    return f"{place}, {kind} in {'x'.join(map(str, parts))}" if parts else place


def _described(shape: Iterable[int], dtype: str, tiled: bool, memory: str, size: int) -> Tensor:
    layout = "tile" if tiled else "row major"
    shapes = "x".join(map(str, shape))
    return {"shape": shapes, "dtype": dtype, "layout": layout, "memory": memory, "bytes": f"{size:,}"}


def _functions(source: bytes) -> list[Graph]:
    from torch_mlir import ir

    from tt_torch.mlir.context import make_context
    from tt_torch.mlir.reading import read_module

    with make_context() as context:
        try:
            module = read_module(source if source.startswith(MLIR_BYTECODE) else source.decode(), context)
        except (ir.MLIRError, UnicodeDecodeError) as error:
            raise ModuleFormatError(str(error).strip().splitlines()[-1]) from error
    return [_function(function) for function in module.body.operations]


def _function(function: ir.Operation) -> Graph:
    graph = Graph(function.name.value, False)
    body = function.regions[0].blocks[0]
    made: dict[ir.Value, Source] = {}
    for i, argument in enumerate(body.arguments):
        graph.nodes.append(Node(f"input {i}", f"input {i}", "inputs", outputs=[_value(argument)]))
        made[argument] = (f"input {i}", 0)
    for op in body.operations:
        op = op.operation
        node = Node(str(len(graph.nodes)), op.name, node_of(str(op.location)))
        node.attributes = {name: str(op.attributes[name])[:1000] for name in op.attributes}
        node.attributes["location"] = str(op.location)
        node.sources = [made[value] for value in op.operands if value in made]
        node.outputs = [_value(result) for result in op.results]
        made.update({result: (node.id, i) for i, result in enumerate(op.results)})
        graph.nodes.append(node)
        if any("layout" in output for output in node.outputs):
            graph.measure(node, {"layout": _places(node)})
    return graph


def _value(value: ir.Value) -> Tensor:
    """The properties of a value that its type has. Only types of TTNN have a layout."""
    from tt_torch.mlir.ttnn.layout import layout_of

    if not str(getattr(value.type, "encoding", "")).startswith("#ttnn.layout"):
        return {"type": str(value.type)}
    layout, shape = layout_of(value), list(value.type.shape)
    memory = _memory(layout.buffer, layout.memory_layout, layout.part(shape) if layout.sharded else ())
    return _described(shape, layout.dtype, layout.tiled, memory, layout.bytes(shape))


def add_profile(graphs: list[Graph], path: Path) -> None:
    """Adds the host times of the last call, from the CSV of `tt-torch profile`.

    A profile may have several graphs. The times come from the graph that has the most ops in common with `graphs` and
    the fewest other ops. A warning names graphs that fit equally well; the first of them is taken.
    """
    profiled = _last_calls(path)
    pairs = {number: [list(_timed(graph, rows)) for graph in graphs] for number, rows in profiled.items()}
    fits = {number: (sum(map(len, pairs[number])), -len(rows)) for number, rows in profiled.items()}
    best = [number for number in fits if fits[number] == max(fits.values())]
    if len(best) > 1 and fits[best[0]][0]:
        warnings.warn(
            f"the graphs {', '.join(map(str, best))} in {path} fit the file equally well: the times of graph {best[0]}"
            " are shown. To see those of another graph, remove the rows of the others from the CSV",
            stacklevel=2,
        )
    for i, graph in enumerate(graphs):
        times: Counter[str] = Counter()
        for node, row in pairs[best[0]][i] if best else ():
            times[node.id] += row["HOST DURATION [ns]"]
        graph.data["host [ns]"] = dict(times)


def _last_calls(path: Path) -> dict[int, list[Row]]:
    """The rows of a profile by the number of their graph. They are the rows of the last call of each program."""
    columns: Columns = {"PROGRAM_METADATA": _metadata, "HOST DURATION [ns]": int, "LOC": str}
    rows = [(row["PROGRAM_METADATA"], row) for row in _rows(path, columns, "profile")]
    last = {(where["graph"], where["program"]): where["call"] for where, _ in rows}
    found: dict[int, list[Row]] = {}
    for where, row in rows:
        if where["call"] == last[where["graph"], where["program"]]:
            found.setdefault(where["graph"], []).append(row)
    return found


def _timed(graph: Graph, rows: list[Row]) -> Iterator[tuple[Node, Row]]:
    """Pairs the nodes of a graph with the rows of the program of the same name."""
    own = [row for row in rows if row["PROGRAM_METADATA"]["program"] == graph.name]
    return _matched(graph, own, _op_and_location, lambda row: node_of(row["LOC"]))


def _op_and_location(row: Row) -> tuple[str, str]:
    """The name of the op in the binary, and its location."""
    return row["PROGRAM_METADATA"]["op"], row["LOC"]


def add_comparison(graphs: Iterable[Graph], path: Path) -> None:
    """Adds PCCs from the CSV of `tt-torch verify`."""
    columns: Columns = {"op": str, "node": str, "pcc": lambda text: float(text) if text else None}
    rows = list(_rows(path, columns, "comparison"))
    for graph in graphs:
        pairs = _matched(graph, rows, lambda row: (row["op"], row["node"]), lambda row: row["node"])
        graph.data["PCC"] = {node.id: row["pcc"] for node, row in pairs if row["pcc"] is not None}


def _metadata(text: str) -> dict[str, Any]:
    found = json.loads(text)
    return {key: found[key] for key in ("graph", "program", "call", "op")}


def _rows(path: Path, columns: Columns, kind: str) -> Iterator[Row]:
    """The values of these columns. Raises ProfileFormatError if the file lacks one, or has something else there."""
    with path.open(newline="") as file:
        try:
            for row in csv.DictReader(file):
                yield {name: read(row[name]) for name, read in columns.items()}
        except KeyError as error:
            raise ProfileFormatError(path, f"it lacks {error}", kind) from error
        except (TypeError, ValueError, csv.Error) as error:
            raise ProfileFormatError(path, str(error), kind) from error


def _matched(
    graph: Graph, rows: list[Row], op: Callable[[Row], Op], name: Callable[[Row], str]
) -> Iterator[tuple[Node, Row]]:
    """Pairs of an op's node and a row about it; `op` and `name` read a row's op and its FX node.

    The ops of a module are not the ops of the device. So in a module, all rows of an FX node go to the last op that
    came from it.
    """
    if graph.of_device:
        yield from _in_order(graph, rows, op)
        return
    last = {node.namespace: node for node in graph.nodes if node.namespace and node.outputs}
    yield from ((last[name(row)], row) for row in rows if name(row) in last)


def _in_order(graph: Graph, rows: list[Row], key: Callable[[Row], Op]) -> Iterator[tuple[Node, Row]]:
    """Pairs nodes with rows. Both are in the order of the program; nodes and rows without a partner are skipped."""
    remaining = list(rows)
    for node in graph.nodes:
        names = {(node.label, node.namespace), (node.label, node.attributes.get("location", ""))}
        found = next((i for i, row in enumerate(remaining) if key(row) in names), None)
        if found is not None:
            yield node, remaining[found]
            del remaining[: found + 1]

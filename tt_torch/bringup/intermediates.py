"""Intermediate verification: the result of each device op, compared with its FX node as eager PyTorch computes it.

The location of an op has the name of its node. A node often becomes several ops: the last one has the value of the
node, and the others are parts of it.
"""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import accumulate
from operator import mul
from pathlib import Path

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx.node import map_aggregate

from tt_torch.accuracy import calculate_atol, calculate_pcc, calculate_rtol, calculate_ulp
from tt_torch.config import CompilerConfig
from tt_torch.driver.executor import Executor
from tt_torch.dynamo import facts
from tt_torch.dynamo.passes.rewriting import user_line
from tt_torch.dynamo.types import Argument, Arguments, Function, Result
from tt_torch.files import write, write_new
from tt_torch.records.op_by_op import numbered
from tt_torch.wire import locations

# Differences up to this count as rounding. The correlation says nothing there: it is not defined for zeros.
ROUNDING = 1e-6
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Row:
    """One device op. The measures are None if its result is not the value of a node, or has another shape."""

    op: str
    node: str
    target: str
    line: str
    shape: tuple[int, ...]
    dtype: str
    pcc: float | None = None
    atol: float | None = None
    rtol: float | None = None
    ulp: float | None = None

    def departs(self, required_pcc: float) -> bool:
        """Whether the op's result differs from the value of its node by more than is allowed."""
        return self.pcc is not None and self.pcc < required_pcc and not (self.atol or 0.0) <= ROUNDING


class Values(Interpreter):
    """Runs a graph in eager PyTorch on the CPU, wherever its tensors are, and keeps the value of each node by name."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.values: dict[str, Result] = {}

    def run_node(self, n: Node) -> Result:
        value = super().run_node(n)
        self.values[n.name] = value.cpu() if isinstance(value, torch.Tensor) else value
        return self.values[n.name]

    def call_function(self, target: Function, args: tuple[Argument, ...], kwargs: Arguments) -> Result:
        """Runs views as reshapes: passes remove copies before a view, which only tensors with strides need."""
        args, kwargs = map_aggregate((args, kwargs), lambda v: _CPU if isinstance(v, torch.device) else v)
        return super().call_function(facts.of_any_strides(target), args, kwargs)


def compare(executor: Executor, graph: Graph, inputs: Sequence[torch.Tensor]) -> tuple[list[Row], list[torch.Tensor]]:
    """Runs the executor once and compares every device op; returns a row per op, and the results of the run.

    `graph` is the graph after the FX passes, from which the executor was compiled. Its last placeholders are constants.
    """
    arguments = [*inputs, *executor.compiled.constants]
    golden = Values(GraphModule(torch.nn.Module(), graph))
    with torch.no_grad():
        golden.run(*arguments)
    nodes = {node.name: node for node in graph.nodes}
    seen: list[tuple[str, str, list[torch.Tensor]]] = []

    def record(op: str, location: str, text: str, program: str, outputs: list[torch.Tensor]) -> None:
        names = [name for name in locations.nodes(location) if name in nodes]
        seen.append((op, names[-1] if names else "", outputs))

    executor.watched.set_callback(record)
    try:
        results = Executor.__call__(executor, inputs)
    finally:
        executor.watched.set_callback(None)
    last = {name: i for i, (_, name, _) in enumerate(seen)}
    rows = [
        _row(op, nodes.get(name), outputs, golden.values.get(name) if last[name] == i else None)
        for i, (op, name, outputs) in enumerate(seen)
    ]
    return rows, results


def _row(op: str, node: Node, outputs: list[torch.Tensor], golden: Result) -> Row:
    name, target, line = (node.name, str(node.target), user_line(node)) if node else ("", "", "")
    shape, dtype = (tuple(outputs[0].shape), str(outputs[0].dtype).removeprefix("torch.")) if outputs else ((), "")
    row = Row(op, name, target, line, shape, dtype)
    values = list(golden) if isinstance(golden, (list, tuple)) else [golden]
    pairs = [(o.reshape(v.shape), v) for o, v in zip(outputs, values, strict=False) if _comparable(o, v)]
    if not pairs:
        return row
    pcc = min(calculate_pcc(*pair) for pair in pairs)
    atol, rtol, ulp = (max(m(*pair) for pair in pairs) for m in (calculate_atol, calculate_rtol, calculate_ulp))
    return replace(row, pcc=pcc, atol=atol, rtol=rtol, ulp=ulp)


def _comparable(output: torch.Tensor, golden: Result) -> bool:
    """Whether the shapes are equal, or become equal when neighbouring dimensions are merged: (2, 3, 4) and (6, 4).

    They differ like that when a view has been folded into an op.
    """
    if not isinstance(golden, torch.Tensor) or output.numel() != golden.numel():
        return False
    strides = [set(accumulate(reversed(t.shape), mul)) for t in (output, golden)]
    return strides[0] <= strides[1] or strides[1] <= strides[0]


totals: Counter[str] = Counter()  # of this process: reports, ops whose value was compared, ops that departed


def report(rows: Sequence[Row], config: CompilerConfig) -> None:
    """Prints the table to stderr, writes it as a CSV file into `config.results_path`, and adds it to `totals`.

    The rows that have the value of a node also become `config.runtime_intermediate_cache`, by the name of the node. A
    file that cannot be written is a warning, because the program that is verified has not failed.
    """
    ending = f"{totals['reports']}_intermediates.csv"
    compared = [row for row in rows if row.pcc is not None]
    departed = [row for row in compared if row.departs(config.required_pcc)]
    config.runtime_intermediate_cache.update({row.node: row for row in compared})
    totals.update(reports=1, compared=len(compared), departed=len(departed))
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(field.name for field in fields(Row))
    table.writerows(asdict(row).values() for row in rows)
    content = text.getvalue().encode()
    path = Path(config.results_path) / f"{config.file_stem}_{ending}"
    _print(rows, config.required_pcc)
    try:
        if config.model_name:
            write(path, content)
        else:
            path = write_new(numbered(config, ending), content)
        print(path, file=sys.stderr)
    except OSError as error:
        print(f"warning: the table has no file: {error}", file=sys.stderr)


def _print(rows: Sequence[Row], required: float) -> None:
    from rich.table import Table

    from tt_torch.records.console import plain_console

    table = Table(title="device ops against eager PyTorch", box=None)
    for column in ("", "op", "node", "target", "line", "shape", "PCC", "ATOL", "RTOL", "ULP"):
        table.add_column(column, overflow="fold")
    for i, row in enumerate(rows):
        measures = ["" if v is None else f"{v:.6g}" for v in (row.pcc, row.atol, row.rtol, row.ulp)]
        style = "red" if row.departs(required) else "dim" if row.pcc is None else None
        shape = "x".join(map(str, row.shape))
        table.add_row(str(i), row.op, row.node, row.target, Path(row.line).name, shape, *measures, style=style)
    console = plain_console(stderr=True, width=None if sys.stderr.isatty() else 160)
    console.print(table)
    first = next((row for row in rows if row.departs(required)), None)
    compared = sum(row.pcc is not None for row in rows)
    if first is None:
        console.print(f"{compared} of {len(rows)} ops have the value of a node; all agree (PCC at least {required:g})")
    else:
        console.print(
            f"first to depart: {first.op} of {first.node}: {first.target} at {first.line}, PCC {first.pcc:.6g}"
        )

"""Writes a recording as a CSV with the columns of tt-metal's profiler and as a trace for Perfetto or Chrome."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tt_torch.files import write
from tt_torch.profiling.metal_names import metal_name
from tt_torch.profiling.session import OpRun, Session
from tt_torch.wire.chips import CHIPS, GAP
from tt_torch.wire.facts import Op, Tensor

CSV_NAME, TRACE_NAME = "device_ops_perf_trace.csv", "trace.json"

# Tracy measures these on cards. The cost model gives the three in `_row`; the others stay empty.
_ON_CARDS = """DEVICE FW START CYCLE|DEVICE FW END CYCLE|OP TO OP LATENCY [ns]|OP TO OP LATENCY BR/NRISC START [ns]
DEVICE FW DURATION [ns]|DEVICE KERNEL DURATION [ns]|DEVICE KERNEL DURATION DM START [ns]
DEVICE KERNEL DURATION PER CORE MIN [ns]|DEVICE KERNEL DURATION PER CORE MAX [ns]
DEVICE KERNEL DURATION PER CORE AVG [ns]|DEVICE KERNEL FIRST TO LAST START [ns]|DEVICE BRISC KERNEL DURATION [ns]
DEVICE NCRISC KERNEL DURATION [ns]|DEVICE TRISC0 KERNEL DURATION [ns]|DEVICE TRISC1 KERNEL DURATION [ns]
DEVICE TRISC2 KERNEL DURATION [ns]|DEVICE ERISC KERNEL DURATION [ns]|DEVICE COMPUTE CB WAIT FRONT [ns]
DEVICE COMPUTE CB RESERVE BACK [ns]|DISPATCH TOTAL CQ CMD OP TIME [ns]|DISPATCH GO SEND WAIT TIME [ns]"""
_HEAD = """OP CODE|OP TYPE|GLOBAL CALL COUNT|DEVICE ID|ATTRIBUTES|MATH FIDELITY|CORE COUNT|PARALLELIZATION STRATEGY
HOST START TS|HOST END TS|HOST DURATION [ns]"""
Event = dict[str, Any]  # an event of a trace, in the format of chrome://tracing
_TAIL = """PM IDEAL [ns]|PM COMPUTE [ns]|PM BANDWIDTH [ns]|PM REQ I BW|PM REQ O BW|PM FPU UTIL (%)|NOC UTIL (%)
DRAM BW UTIL (%)|NPE CONG IMPACT (%)|LOC|CONST_EVAL_OP|PROGRAM_METADATA"""


def _names(text: str) -> list[str]:
    return text.replace("\n", "|").split("|")


def write_csv(session: Session) -> Path:
    """Writes the CSV, with one row per op and call; returns its path."""
    rows = [_row(i, run, session) for i, run in enumerate(session.runs)]
    used = {name for row in rows for name in row}
    tensors = [f"{way}_{n}_{part}" for way in ("INPUT", "OUTPUT") for n in range(64) for part in _PARTS]
    columns = _names(_HEAD) + _names(_ON_CARDS) + [c for c in tensors if c in used] + _names(_TAIL)
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write(session.folder / CSV_NAME, text.getvalue().encode())
    return session.folder / CSV_NAME


def _row(number: int, run: OpRun, session: Session) -> dict[str, int | str]:
    op, cost, chip = run.op.op, run.op.cost, CHIPS[session.arch]
    ideal, full = cost.ideal.total, cost.full.total
    gap = GAP if full else 0.0  # a view starts no kernel
    return {
        "OP CODE": metal_name(op),
        "OP TYPE": "tt_dnn_device",
        "GLOBAL CALL COUNT": number,
        "DEVICE ID": 0,
        "ATTRIBUTES": json.dumps(op.attributes),
        "MATH FIDELITY": cost.fidelity,
        "CORE COUNT": chip.cores,
        "HOST START TS": run.begin,
        "HOST END TS": run.end,
        "HOST DURATION [ns]": run.end - run.begin,
        "OP TO OP LATENCY [ns]": _ns(gap),
        "DEVICE FW DURATION [ns]": _ns(full - gap),
        "DEVICE KERNEL DURATION [ns]": _ns(full - gap),
        **_tensors("INPUT", op.operands, _transposed(op)),
        **_tensors("OUTPUT", op.results),
        "PM IDEAL [ns]": _ns(ideal),
        "PM COMPUTE [ns]": _ns(cost.ideal.arithmetic),
        "PM BANDWIDTH [ns]": _ns(max(cost.ideal.dram, cost.ideal.l1, cost.ideal.links)),
        "PM REQ I BW": f"{cost.dram_read / ideal / 1e9:.3f}" if ideal else "",
        "PM REQ O BW": f"{cost.dram_written / ideal / 1e9:.3f}" if ideal else "",
        "PM FPU UTIL (%)": f"{100 * cost.ideal.arithmetic / full:.1f}" if cost.flops else "",
        "DRAM BW UTIL (%)": f"{100 * cost.ideal.dram / full:.1f}" if full else "0.0",
        "LOC": op.location or "loc(unknown)",
        "CONST_EVAL_OP": str(run.const_eval).lower(),
        "PROGRAM_METADATA": json.dumps({"graph": run.graph, "program": run.program, "call": run.call, "op": op.name}),
    }


def _ns(seconds: float) -> str:
    return f"{seconds * 1e9:.1f}"


_PARTS = ("W", "Z", "Y", "X", "LAYOUT", "DATATYPE", "MEMORY")


def _transposed(op: Op) -> list[int]:
    """Positions of the operands that a matrix product reads transposed. The library transposes them first, so that the
    profiler sees the other shape."""
    return [i for i, name in enumerate(("transpose_a", "transpose_b")) if op.attributes.get(name)]


def _tensors(way: str, tensors: Iterable[Tensor], transposed: Sequence[int] = ()) -> dict[str, int | str]:
    """The columns of an op's operands or results.

    W, Z, Y and X are the last four extents, padded with ones at the front. Further extents are multiplied into W:
    the shape (2, 3, 4, 5, 6) has W=6, Z=4, Y=5, X=6. Y and X of the tensors at the positions `transposed` are swapped.
    """
    return {
        f"{way}_{n}_{part}": value
        for n, tensor in enumerate(tensors)
        for part, value in zip(_PARTS, _tensor(tensor, n in transposed), strict=True)
    }


def _tensor(tensor: Tensor, transposed: bool) -> list[int | str]:
    shape = [1, 1, 1, 1, *tensor.shape]
    while len(shape) > 4:
        shape[:2] = [shape[0] * shape[1]]
    if transposed:
        shape[2:] = shape[:1:-1]
    layout = "TILE" if tensor.tiled else "ROW_MAJOR"
    kind = tensor.memory_config["tensor_memory_layout"] if tensor.memory_config else ""
    return [*shape, layout, tensor.dtype.upper(), f"DEV_0_{tensor.place}_{kind}".upper()]


def write_trace(session: Session) -> Path:
    """Writes the trace and returns its path.

    One track shows the measured host times. Another track shows the device times of the model, one op after another.
    """
    write(session.folder / TRACE_NAME, json.dumps({"traceEvents": list(_events(session))}).encode())
    return session.folder / TRACE_NAME


def _events(session: Session) -> Iterator[Event]:
    process = os.getpid()
    for thread, name in ((1, "host (measured)"), (2, f"{session.arch} (model)")):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}
    device = 0.0
    for run in session.runs:
        arguments = {"location": run.op.location, "graph": run.graph, "call": run.call, "bytes": run.op.cost.bytes}
        shared = {"ph": "X", "name": run.op.name, "pid": process, "args": arguments}
        begin = run.begin / 1e3
        device = max(device, begin)
        yield shared | {"cat": "cpu_op", "tid": 1, "ts": begin, "dur": (run.end - run.begin) / 1e3}
        yield shared | {"cat": "kernel", "tid": 2, "ts": device, "dur": run.op.cost.seconds * 1e6}
        device += run.op.cost.seconds * 1e6
        memory = {"DRAM": run.op.dram, "L1": run.op.l1}
        yield {"ph": "C", "name": "allocated bytes", "pid": process, "ts": run.end / 1e3, "args": memory}

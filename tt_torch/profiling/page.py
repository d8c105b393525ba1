"""Writes one HTML page with the totals, the memory over time, the roofline and the slowest ops.

The page needs no network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from tt_torch.files import write
from tt_torch.profiling.cost_model import CHIPS, MATRIX_FLOPS
from tt_torch.profiling.session import OpRun, Session

PAGE_NAME = "profile.html"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 260, 70, 40
_SLOWEST = 25

_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>tt_torch profile</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 1em auto; max-width: 60em; padding: 0 1em; color: #222 }
svg { width: 100%; height: auto; background: #fafafa; border: 1px solid #ddd }
svg text { font: 11px sans-serif; fill: #444 } .axis { stroke: #bbb; fill: none }
table { border-collapse: collapse; display: block; overflow-x: auto } td, th { padding: 2px 8px; text-align: left }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } tr:nth-child(even) { background: #f4f4f4 }
</style>
"""


def write_page(session: Session) -> Path:
    last = {(run.graph, run.program): run.call for run in session.runs}
    runs = [run for run in session.runs if last[run.graph, run.program] == run.call]
    parts = [_HEAD, "<h1>tt_torch profile</h1>", _totals(session, runs)]
    for graph in sorted({run.graph for run in runs}):
        parts += [f"<h2>Graph {graph}: memory after each op</h2>", memory_plot([r for r in runs if r.graph == graph])]
    parts += ["<h2>Roofline</h2>", roofline(session, runs), "<h2>Ops by host time</h2>", _table(runs)]
    write(session.folder / PAGE_NAME, "\n".join(parts).encode())
    return session.folder / PAGE_NAME


def _totals(session: Session, runs: Sequence[OpRun]) -> str:
    host = sum(run.end - run.begin for run in runs) / 1e6
    device = sum(run.op.cost.seconds for run in runs) * 1e3
    moved = sum(run.op.cost.bytes for run in runs)
    return (
        f"<p>The last call of each program ran {len(runs)} ops on {escape(session.arch)}. They took {host:.3f} ms, "
        f"measured on the host, and would take {device:.4f} ms by the roofline model. They moved {moved:,} bytes. "
        "While ops are recorded, each runs on its own, not fused with others.</p>"
    )


def memory_plot(runs: Sequence[OpRun]) -> str:
    """A plot of the DRAM and the L1 that are allocated after each op, each relative to its own largest value."""
    marks = []
    for name, color, values in (
        ("DRAM", "#1f77b4", [run.op.dram for run in runs]),
        ("L1", "#d62728", [run.op.l1 for run in runs]),
    ):
        top = max(values) or 1
        points = []
        for i, value in enumerate(values):
            y = _y(value / top)
            points += [f"{_x(i / len(values)):.1f},{y:.1f}", f"{_x((i + 1) / len(values)):.1f},{y:.1f}"]
            title = escape(f"{i} {runs[i].op.name}: {value:,} bytes {name}")
            marks.append(f'<circle cx="{_x((i + 0.5) / len(values)):.1f}" cy="{y:.1f}" r="3" fill="{color}">'
                         f"<title>{title}</title></circle>")  # fmt: skip
        marks.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        label = f"{name}, at most {max(values):,} bytes"
        marks.append(f'<text x="{_LEFT + (10 if name == "DRAM" else 260)}" y="14" style="fill:{color}">{label}</text>')
    axis = f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}">op, in the order of the call ({len(runs)})</text>'
    return _svg([*_grid([(0, "0"), (0.5, "50 %"), (1, "100 %")]), *marks, axis])


def roofline(session: Session, runs: Sequence[OpRun]) -> str:
    """A plot of flops per second over flops per byte moved, both logarithmic.

    It shows the chip's roofs and, for each op, its rate by the model and its rate as measured on the host.
    """
    chip = CHIPS[session.arch]
    peak = MATRIX_FLOPS * chip.cores * chip.clock
    ops = [run for run in runs if run.op.cost.flops and run.op.cost.bytes]
    low_x, high_x, low_y, high_y = -2.0, 4.0, 6.0, 15.0

    def at(intensity: float, rate: float) -> tuple[float, float]:
        x = (math.log10(intensity) - low_x) / (high_x - low_x)
        y = (math.log10(rate) - low_y) / (high_y - low_y)
        return _x(min(1.0, max(0.0, x))), _y(min(1.0, max(0.0, y)))

    marks = []
    roofs = {name: peak / passes for passes, name in ((1, "LoFi"), (2, "HiFi2"), (4, "HiFi4"))}
    for roof in roofs.values():
        corners = [at(10**low_x, 10**low_x * chip.dram), at(roof / chip.dram, roof), at(10**high_x, roof)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        marks.append(f'<polyline points="{points}" fill="none" stroke="#888"/>')
    label = "roofs: " + ", ".join(f"{name} {roof / 1e12:.0f}" for name, roof in roofs.items()) + " TFLOPS"
    marks.append(f'<text x="{_LEFT + 330}" y="14">{label}</text>')
    for run in ops:
        cost = run.op.cost
        seconds = max(1, run.end - run.begin) / 1e9
        for color, rate, what in (
            ("#2ca02c", cost.flops / cost.seconds, "model"),
            ("#ff7f0e", cost.flops / seconds, "host"),
        ):
            x, y = at(cost.flops / cost.bytes, rate)
            title = escape(f"{run.op.name} {run.op.location}: {what} {rate / 1e9:.2f} GFLOPS")
            marks.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}" fill-opacity="0.6">'
                f"<title>{title}</title></circle>"
            )
    marks.append(f'<text x="{_LEFT + 10}" y="14" style="fill:#2ca02c">by the model</text>')
    marks.append(f'<text x="{_LEFT + 110}" y="14" style="fill:#ff7f0e">emulated, as measured on the host</text>')
    ticks = [((e - low_y) / (high_y - low_y), f"1e{e} FLOPS") for e in range(6, 16, 3)]
    bottom = "".join(
        f'<text x="{_x((e - low_x) / (high_x - low_x)) - 8:.1f}" y="{_HEIGHT - 22}">1e{e}</text>' for e in range(-2, 5)
    )
    return _svg(
        [*_grid(ticks), bottom, *marks, f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 6}">flops per byte moved</text>']
    )


def _table(runs: Sequence[OpRun]) -> str:
    rows = ["<table><tr><th>op<th>location<th class=n>host µs<th class=n>model µs<th>bound by<th class=n>bytes</tr>"]
    for run in sorted(runs, key=lambda run: run.begin - run.end)[:_SLOWEST]:
        cost = run.op.cost
        bounds = {"arithmetic": cost.compute, "DRAM": cost.dram, "L1": cost.l1}
        bound = max(bounds, key=bounds.__getitem__) if cost.seconds else "nothing"
        rows.append(
            f"<tr><td>{run.op.name}<td>{escape(run.op.location[:90])}<td class=n>{(run.end - run.begin) / 1e3:.1f}"
            f"<td class=n>{cost.seconds * 1e6:.3f}<td>{bound}<td class=n>{cost.bytes:,}</tr>"
        )
    return "\n".join([*rows, "</table>"])


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - 10)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - 24)


def _grid(ticks: Iterable[tuple[float, str]]) -> list[str]:
    return [
        f'<path class="axis" d="M{_LEFT},{_y(share):.1f}H{_WIDTH - 10}"/>'
        f'<text x="2" y="{_y(share) + 4:.1f}">{label}</text>'
        for share, label in ticks
    ]


def _svg(parts: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(parts)}</svg>'

"""The pictures of the page, as figures of plotly.

Colors of text and grid are not set here: the page sets them, for light and dark.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from tt_torch.profiling.groups import around, grouped, host_time, kind_of, line_of, module_of, op_of
from tt_torch.profiling.model import Profile, ProfiledOp
from tt_torch.profiling.what_if import SCENARIOS
from tt_torch.profiling.words import duration, size
from tt_torch.wire.chips import MATRIX_FLOPS, PASSES

if TYPE_CHECKING:
    from tt_torch.profiling.comparison import Change
    from tt_torch.profiling.groups import Group

Node = tuple[str, str]  # the path of a module, and the name of an op in it, which is empty for the module itself
BOUNDS = {
    "arithmetic": "#d9822b", "DRAM": "#3b7dd8", "L1": "#2e9e5b", "network": "#5f9ea0", "links": "#c2527f",
    "launch": "#8a94a0",
}  # fmt: skip
# The colors of kinds of ops in the icicles.
COLORS = {
    "matrix product": "#3b7dd8", "convolution": "#5b62c9", "attention": "#8a55c4", "normalization": "#2e9e5b",
    "element-wise": "#c9a227", "reduction": "#5f9ea0", "pooling": "#5f9ea0", "data movement": "#d9822b",
    "lookup": "#c2527f", "exchange between chips": "#a05195",
}  # fmt: skip
_MODULE, _OTHER = "#7b8794", "#a08c7b"


def text(value: str) -> str:
    """A text that plotly shows as it is. Without the escapes, plotly would read tags as markup."""
    return html.escape(value, quote=False)


def _figure(traces: Iterable[object], height: int, **layout: object) -> go.Figure:
    shared = {"template": go.layout.Template(), "height": height, "margin": {"l": 8, "r": 8, "t": 40, "b": 40}}
    above = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    return go.Figure(list(traces), shared | {"legend": above} | layout)


def modules(profile: Profile) -> list[go.Figure]:
    """Icicles of the modules with their ops as leaves: one of measured times, one of modelled times."""
    host = {id(op): float(host_time(profile, op).median) for op in profile.repeated}
    modelled = {id(op): profile.time(op) * profile.weight(op) for op in profile.repeated}
    named = {"Measured on the host": host, f"Modelled for {profile.arch}": modelled}
    none = {"l": 0, "r": 0, "t": 30, "b": 0}
    return [
        _figure([_icicle(profile.repeated, times)], 380, margin=none, title=_title(name))
        for name, times in named.items()
    ]


def _title(name: str) -> dict[str, object]:
    return {"text": name, "x": 0, "font": {"size": 14}}


def _icicle(ops: Sequence[ProfiledOp], times: dict[int, float]) -> go.Icicle:
    """Modules get the sum of their parts. Equal ops of a module are one leaf; `times` has the time of each op."""
    total: dict[Node, float] = {}
    for op in ops:
        for node in [*((path, "") for path in around(op.module)), (op.module, op.op)]:
            total[node] = total.get(node, 0.0) + times[id(op)]
    ids = {node: str(i) for i, node in enumerate(total)}
    kinds = {(op.module, op.op): COLORS.get(op.kind, _OTHER) for op in ops}
    return go.Icicle(
        ids=list(ids.values()),
        labels=[text(op or path.rpartition(".")[2] or "model") for path, op in total],
        parents=[ids[parent] if (parent := _parent(node)) else "" for node in total],
        values=[time if op else 0 for (_, op), time in total.items()],
        customdata=[[text(f"{path or 'model'} {op}"), duration(time)] for (path, op), time in total.items()],
        texttemplate="%{label} %{percentRoot:.0%}",
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}, %{percentRoot:.1%} of all<extra></extra>",
        marker={"colors": [kinds.get(node, _MODULE) for node in total], "line": {"width": 1}},
        tiling={"orientation": "v"},
        sort=False,
    )


def _parent(node: Node) -> Node | None:
    """The module that contains a module or an op; None for the model itself."""
    path, op = node
    if op:
        return path, ""
    return (path.rpartition(".")[0], "") if path else None


def _button(label: str, visible: Sequence[bool]) -> dict[str, object]:
    return {"label": label, "method": "restyle", "args": [{"visible": list(visible)}]}


def bounds(profile: Profile) -> go.Figure:
    """Bars of the modelled time of each kind of op, split by what bounds the ops."""
    kinds = sorted(grouped(profile, kind_of), key=lambda found: found.modelled)
    return _split_bars([text(kind.name) for kind in kinds], [kind.bounds for kind in kinds])


def _split_bars(names: Sequence[str], parts: Sequence[dict[str, float]]) -> go.Figure:
    """Horizontal bars of times in ns, from bottom to top, split by what bounds the ops."""
    bars = [
        go.Bar(
            y=list(names), x=[part.get(bound, 0) / 1e3 for part in parts], name=bound, orientation="h",
            marker={"color": color}, customdata=[duration(part.get(bound, 0)) for part in parts],
            hovertemplate="%{y}: %{customdata}<extra>%{fullData.name}</extra>",
        )
        for bound, color in BOUNDS.items()
        if any(part.get(bound) for part in parts)
    ]  # fmt: skip
    axes = {"xaxis": {"title": "modelled time in µs"}, "yaxis": {"automargin": True}}
    return _figure(bars, 150 + 34 * len(names), barmode="stack", showlegend=True, **axes)


def scenarios(profile: Profile) -> go.Figure:
    """Bars of the modelled time of all ops on each chip with each choice of numbers."""
    names, parts = [], []
    for scenario in reversed(SCENARIOS):
        names.append(text(f"{scenario.chip}, {scenario.numbers}").replace(", ", "<br>"))
        parts.append(bounds_in(profile, scenario.chip, scenario.numbers))
    figure = _split_bars(names, parts)
    figure.update_layout(height=110 + 56 * len(names))
    return figure


def bounds_in(profile: Profile, chip: str, numbers: str) -> dict[str, float]:
    """The modelled time of all ops in ns, split by what bounds them."""
    found: dict[str, float] = {}
    for op in profile.repeated:
        bound = profile.bound(op, chip, numbers)
        found[bound] = found.get(bound, 0.0) + profile.time(op, chip, numbers) * profile.weight(op)
    return found


def roofline(profile: Profile) -> go.Figure:
    """The rate of each op of the matrix unit by the model, over its flops per byte moved, under the chip's roofs."""
    chip = profile.chips[profile.arch]
    ops = [op for op in profile.repeated if op.flops and sum(op.moved.values())]
    peak = MATRIX_FLOPS * chip["cores"] * chip["clock"]
    traces = [
        go.Scatter(
            x=[0.01, peak / passes / chip["dram"], 1e5], y=[0.01 * chip["dram"], peak / passes, peak / passes],
            mode="lines", name=f"{name}, DRAM", line={"width": 1}, hoverinfo="name",
        )
        for name, passes in PASSES.items()
    ]  # fmt: skip
    for bound, color in BOUNDS.items():
        those = [op for op in ops if profile.bound(op) == bound]
        if those:
            traces.append(_points(profile, those, f"bound by {bound}", color))
    axes = {
        "xaxis": {"type": "log", "dtick": 1, "title": "flops per byte moved"},
        "yaxis": {"type": "log", "dtick": 1, "exponentformat": "SI", "title": "flops per second", "automargin": True},
    }
    return _figure(traces, 420, **axes)


def _points(profile: Profile, ops: Sequence[ProfiledOp], name: str, color: str) -> go.Scatter:
    return go.Scatter(
        x=[op.flops / sum(op.moved.values()) for op in ops],
        y=[op.flops / profile.time(op) * 1e9 for op in ops],
        mode="markers",
        name=name,
        marker={"color": color, "size": 9, "opacity": 0.75},
        customdata=[_about(op) for op in ops],
        hovertemplate="%{customdata}<br>%{x:.3g} flops per byte, %{y:.3s} flops per second<extra></extra>",
    )


def memory(profile: Profile, place: str) -> go.Figure:
    """The bytes in one place before and after each op, without weights. With several graphs, a menu chooses one."""
    count = len(profile.graphs)
    traces = [_steps([op for op in profile.repeated if op.graph == i], place, i == 0) for i in range(count)]
    layout: dict[str, object] = {
        "yaxis": {"ticksuffix": "B", "exponentformat": "SI", "automargin": True, "rangemode": "tozero"},
        "xaxis": {"title": "device op, in the order of the call"},
        "showlegend": False,
        "title": _title(place),
    }
    if count > 1:
        buttons = [_button(f"graph {i}", [k == i for k in range(count)]) for i in range(count)]
        layout["updatemenus"] = [{"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}]
    return _figure(traces, 280, **layout)


def _steps(ops: Sequence[ProfiledOp], place: str, shown: bool) -> go.Scatter:
    """For each op, what is allocated before it and after it, before its operands are freed."""
    x, y, about = [], [], []
    for i, op in enumerate(ops):
        x += [i, i + 1]
        y += [op.before[place], op.after[place]]
        about += [f"{moment} {_about(op)}: {size(held[place])}" for moment, held in _moments(op)]
    return go.Scatter(
        x=x, y=y, mode="lines", fill="tozeroy", line={"color": BOUNDS[place], "width": 1.5},
        customdata=about, hovertemplate="%{customdata}<extra></extra>", visible=shown, name=place,
    )  # fmt: skip


def _moments(op: ProfiledOp) -> list[tuple[str, dict[str, int]]]:
    return [("before", op.before), ("with the result of", op.after)]


def _about(op: ProfiledOp) -> str:
    """An op in three lines: its name, its module, the user's line."""
    return "<br>".join(text(part) for part in (op_of(op), module_of(op), line_of(op)))


def changes(found: Sequence[Change]) -> go.Figure:
    """Bars of the host times of groups in two profiles. The first group is on top."""
    rows = list(reversed(found))
    bars = [
        _compared("old", "#8a94a0", rows, [change.old for change in rows]),
        _compared("new", "#3b7dd8", rows, [change.new for change in rows]),
    ]
    names = [text(change.name if len(change.name) <= _LABEL else f"…{change.name[1 - _LABEL :]}") for change in rows]
    labels = {"automargin": True, "tickvals": list(range(len(rows))), "ticktext": names}
    axes = {"xaxis": {"title": "host time in ms, with quartiles"}, "yaxis": labels}
    return _figure(bars, 110 + 44 * len(rows), barmode="group", **axes)


_LABEL = 24  # letters of a label that fit beside bars on a narrow screen


def _compared(side: str, color: str, rows: Sequence[Change], groups: Sequence[Group]) -> go.Bar:
    spreads = {
        "symmetric": False,
        "array": [(group.host.high - group.host.median) / 1e6 for group in groups],
        "arrayminus": [(group.host.median - group.host.low) / 1e6 for group in groups],
    }
    return go.Bar(
        y=list(range(len(rows))),
        x=[group.host.median / 1e6 for group in groups],
        name=side,
        orientation="h",
        marker={"color": color},
        error_x=spreads,
        customdata=[text(change.name) for change in rows],
        hovertemplate="%{customdata}: %{x:.3g} ms<extra>%{fullData.name}</extra>",
    )

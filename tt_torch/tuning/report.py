"""The table and the picture of a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tt_torch.profiling.html import Cell, Page, Section, Table
from tt_torch.profiling.words import duration, size
from tt_torch.tuning.search import LEVELS, Trial, pareto

ABOUT = (
    "Each point is the model with one level of precision for each layer. The correlation with eager PyTorch is that on "
    "an emulated device with the roundings of a chip. The time is modelled, not measured."
)
COLUMNS = ("correlation", "modelled", "bytes moved", "layers by level", "")


def table(trials: Sequence[Trial], best: Trial | None) -> Table:
    """The trials that no other one beats, with the number of layers that have each level."""
    return Table(COLUMNS, [_row(trial, trial is best) for trial in pareto(trials)])


def _row(trial: Trial, chosen: bool) -> list[Cell]:
    return [
        Cell(f"{trial.pcc:.6f}", trial.pcc),
        Cell(duration(trial.seconds * 1e9), trial.seconds),
        Cell(size(trial.bytes), trial.bytes),
        Cell(_levels(trial)),
        Cell("chosen" if chosen else ""),
    ]


def _levels(trial: Trial) -> str:
    return ", ".join(f"{count} {LEVELS[level].name}" for level, count in sorted(Counter(trial.choice).items()))


def layers(patterns: Sequence[str], best: Trial) -> Table:
    """The level of each layer."""
    return Table(
        ("layer", "level"), [[Cell(p), Cell(LEVELS[i].name, i)] for p, i in zip(patterns, best.choice, strict=True)]
    )


def page(patterns: Sequence[str], trials: Sequence[Trial], best: Trial, goal: float) -> Page:
    """The page of a search. Needs plotly."""
    tiles = [
        ("correlation", f"{best.pcc:.6f}"),
        ("modelled", duration(best.seconds * 1e9)),
        ("bytes moved", size(best.bytes)),
        ("goal", f"{goal:g}"),
    ]
    sections = [
        Section("Accuracy and time", figures=[_figure(trials, best, goal)], tables=[table(trials, best)]),
        Section("The level of each layer", tables=[layers(patterns, best)]),
    ]
    return Page("Precision by layer", ABOUT, tiles, sections)


_LEAST = 1e-9  # of a loss on the logarithmic axis
_GOAL = {"dash": "dot", "color": "#303030", "width": 1}


def _time(trial: Trial) -> float:
    return trial.seconds * 1e6


def _figure(trials: Sequence[Trial], best: Trial, goal: float) -> object:
    import plotly.graph_objects as go

    def points(shown: Sequence[Trial], name: str, **style: object) -> go.Scatter:
        losses = [max(1 - trial.pcc, _LEAST) for trial in shown]
        return go.Scatter(x=list(map(_time, shown)), y=losses, name=name, text=list(map(_levels, shown)), **style)

    ends = [min(map(_time, trials)), max(map(_time, trials))]
    figure = go.Figure(
        [
            go.Scatter(x=ends, y=[max(1 - goal, _LEAST)] * 2, name=f"goal {goal:g}", mode="lines", line=_GOAL),
            points(trials, "tried", mode="markers", marker={"color": "#b0b0b0"}),
            points(pareto(trials), "not beaten", mode="lines+markers", marker={"color": "#4c5fd7"}),
            points([best], "chosen", mode="markers", marker={"color": "#d7644c", "size": 14}),
        ],
        {
            "height": 420,
            "template": go.layout.Template(),
            "legend": {"orientation": "h", "y": 1.1},
            "margin": {"t": 30},
        },
    )
    figure.update_xaxes(title="modelled time of a call, µs")
    figure.update_yaxes(title="1 - correlation", type="log", exponentformat="power")
    return figure

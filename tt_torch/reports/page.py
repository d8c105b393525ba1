"""The records as one HTML file, which needs no network and no server."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import jinja2

from tt_torch.records.lines import Record
from tt_torch.records.markdown import brief
from tt_torch.records.summary import device_only, failures, good, host_reasons, notes
from tt_torch.reports.compare import STATES, state
from tt_torch.reports.unique_ops import by_form, models_of

_SLOWEST = 20
_TOP = 30
_NAMES = {"unique-op": "ops of models", "op-by-op": "models op by op"}
_NINES = 8  # PCC columns: below 0.9, 0.9, 0.99, ... and exact


def render(records: Sequence[Record], history: Sequence[Record]) -> str:
    """The page of the last record of each item. `history` has the records of all commits, for the trend."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    ops = [record for record in records if record["kind"] == "op"]
    models = [record for record in records if record["kind"] == "model"]
    timed = sorted((r for r in records if r.get("seconds") is not None), key=lambda r: -r["seconds"])
    return environment.get_template("page.html.j2").render(
        states=[name for name in STATES if any(state(r) == name for r in records)],
        state=state,
        brief=brief,
        notes=notes,
        commits=sorted({str(r.get("commit")) for r in records}),
        newest=max((r.get("time") or "" for r in records), default=""),
        totals=totals(records),
        trend=trend(history),
        models=models,
        dtypes=list(dict.fromkeys(r["dtype"] for r in ops)),
        matrix=matrix(ops),
        unique=unique(records),
        tests=[record for record in records if record["kind"] == "test"],
        failures=failures(records).most_common(_TOP),
        reasons=host_reasons(records).most_common(_TOP),
        slowest=timed[:_SLOWEST],
        median=statistics.median(r["seconds"] for r in timed) if timed else 0.0,
        pccs=distribution([r["pcc"] for r in models if r.get("pcc") is not None]),
    )


def unique(records: Iterable[Record]) -> list[tuple[Record, list[str]]]:
    """The forms of ops in models, with the models; forms that are not right come first."""
    forms = by_form(record for record in records if record["kind"] == "unique-op")
    forms.sort(key=lambda its: (good(its[0]), its[0]["framework_op_name"]))
    return [(its[0], models_of(its)) for its in forms]


def name_of(kind: str) -> str:
    """The plural name of the items of a kind."""
    return _NAMES.get(kind, f"{kind}s")


def totals(records: Sequence[Record]) -> list[Record]:
    """A tile per kind of item and data type: how many items there are, and how many are right. For ops and models, a
    tile also has the share of items with static shapes that have nothing on the host."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[f"{name_of(record['kind'])} {record.get('dtype', '')}".strip()].append(record)
    tiles = []
    for name, group in groups.items():
        alone = sum(count for count, _ in device_only(group).values())
        static = sum(of for _, of in device_only(group).values())
        kind = group[0]["kind"]
        share = f"{alone / static:.1%} with nothing on the host" if static and kind in ("op", "model") else ""
        tiles.append({"name": name, "all": len(group), "right": sum(map(good, group)), "share": share})
    return tiles


def matrix(ops: Iterable[Record]) -> dict[str, dict[str, list[Record]]]:
    """Records of each op, by data type."""
    rows: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in ops:
        rows[record["key"].split("/")[0]][record["dtype"]].append(record)
    return dict(sorted(rows.items()))


def trend(history: Sequence[Record]) -> list[Record]:
    """The shares of right results for each kind and each commit. The oldest commit comes first."""
    points = []
    for kind in sorted({record["kind"] for record in history}):
        by_commit: dict[str, list[Record]] = defaultdict(list)
        for record in sorted(history, key=lambda record: record.get("time") or ""):
            if record["kind"] == kind:
                by_commit[str(record.get("commit"))].append(record)
        shares = [(commit, _share(state, group), _share(good, group)) for commit, group in by_commit.items()]
        points.append({"name": name_of(kind), "commits": shares})
    return points


def _share(test: Callable[[Record], object], records: Sequence[Record]) -> float:
    passed = (test(record) in (True, "match", "eager-raises-same") for record in records)
    return sum(passed) / len(records)


def distribution(pccs: Iterable[float]) -> list[tuple[str, int]]:
    """The number of correlations by their number of nines."""
    counts = Counter(_nines(pcc) for pcc in pccs)
    labels = ["below 0.9", *(f"0.{'9' * n}" for n in range(1, _NINES)), f"at least 0.{'9' * _NINES}"]
    return [(label, counts[n]) for n, label in enumerate(labels)]


def _nines(pcc: float) -> int:
    if math.isnan(pcc) or pcc < 0.9:
        return 0
    return _NINES if pcc >= 1 else min(_NINES, math.floor(-math.log10(1 - pcc) + 1e-9))

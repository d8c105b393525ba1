"""Compares two sets of records, and lists the results that are better or worse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tt_torch.records.lines import Record
from tt_torch.records.summary import alone, notes

# From worst to best. "on host": the result is right, but part of it was computed on the host.
STATES = ("crash", "timeout", "error", "wrong", "refused", "skipped", "on host", "eager-raises-same", "match")


# A correlation is worse if its distance from 1 is ten times as large. Distances below 1e-8 count as equal.
_EXACT, _FACTOR = 1e-8, 10


@dataclass(frozen=True)
class Change:
    """An item whose state or correlation changed."""

    kind: str
    key: str
    before: str
    after: str
    worse: bool
    message: str


def state(record: Record) -> str:
    if record["verdict"] == "match" and "host_ops" in record and not alone(record):
        return "on host"
    return str(record["verdict"])


def compare(before: Iterable[Record], after: Iterable[Record]) -> list[Change]:
    """The items of both sets that changed; those that got worse come first."""
    old = {(record["kind"], record["key"]): record for record in before}
    pairs = ((old.get((record["kind"], record["key"])), record) for record in after)
    changes = [change for was, now in pairs if was is not None and (change := _change(was, now))]
    return sorted(changes, key=lambda change: (not change.worse, change.kind, change.key))


def _change(was: Record, now: Record) -> Change | None:
    places = [STATES.index(state(record)) for record in (was, now)]
    if places[0] != places[1]:
        return Change(now["kind"], now["key"], state(was), state(now), places[1] < places[0], "; ".join(notes(now)))
    if was.get("pcc") is None or now.get("pcc") is None:
        return None
    far = [max(1 - record["pcc"], _EXACT) for record in (was, now)]
    if not max(far) >= _FACTOR * min(far):  # also if one of them is NaN
        return None
    first, second = (f"PCC {record['pcc']:.9g}" for record in (was, now))
    return Change(now["kind"], now["key"], first, second, far[1] > far[0], "")


def only_in_one(before: Sequence[Record], after: Sequence[Record]) -> tuple[int, int]:
    """How many items are gone, and how many are new."""
    old, new = ({(record["kind"], record["key"]) for record in records} for records in (before, after))
    return len(old - new), len(new - old)

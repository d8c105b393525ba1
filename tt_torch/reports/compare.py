"""What got better and what got worse between two sets of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tt_torch.sweep.summary import alone, notes

Record = dict[str, Any]

# From worst to best. "on host": right, but not by the device alone.
STATES = ("crash", "timeout", "error", "wrong", "skipped", "on host", "eager-raises-same", "match")


@dataclass(frozen=True)
class Change:
    """An item whose state differs."""

    kind: str
    key: str
    before: str
    after: str
    message: str

    @property
    def worse(self) -> bool:
        return STATES.index(self.after) < STATES.index(self.before)


def state(record: Record) -> str:
    if record["verdict"] == "match" and "host_ops" in record and not alone(record):
        return "on host"
    return record["verdict"]


def compare(before: Iterable[Record], after: Iterable[Record]) -> list[Change]:
    """Items of both that changed; the worse ones first."""
    old = {(record["kind"], record["key"]): record for record in before}
    changes = []
    for record in after:
        was = old.get((record["kind"], record["key"]))
        if was is not None and state(was) != state(record):
            changes.append(Change(record["kind"], record["key"], state(was), state(record), "; ".join(notes(record))))
    return sorted(changes, key=lambda change: (not change.worse, change.kind, change.key))


def only_in_one(before: Sequence[Record], after: Sequence[Record]) -> tuple[int, int]:
    """How many items are gone, and how many are new."""
    old, new = ({(record["kind"], record["key"]) for record in records} for records in (before, after))
    return len(old - new), len(new - old)

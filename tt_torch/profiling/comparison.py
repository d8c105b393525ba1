"""How two profiles differ: by module, by kind of op, by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from tt_torch.profiling.groups import KEYS, NONE, Group, group, grouped
from tt_torch.profiling.model import Profile, ProfiledOp


@dataclass(frozen=True)
class Change:
    """A group of ops in the old and in the new profile. A group that a profile lacks has no ops and no time."""

    name: str
    old: Group
    new: Group

    @property
    def clear(self) -> bool:
        """Whether the quartiles of the host times do not overlap."""
        return self.old.host.low > self.new.host.high or self.new.host.low > self.old.host.high


def total(old: Profile, new: Profile) -> Change:
    """All ops of both profiles."""
    return Change("all ops", group(old, "", old.repeated), group(new, "", new.repeated))


def changes(old: Profile, new: Profile, key: Callable[[ProfiledOp], str]) -> list[Change]:
    """The groups of both profiles by a key. The groups whose host time differs most come first."""
    sides = [{found.name: found for found in grouped(profile, key)} for profile in (old, new)]
    names = dict.fromkeys([*sides[1], *sides[0]])
    found = [Change(name, *(side.get(name, Group(name, 0, NONE, 0.0, {}, 0)) for side in sides)) for name in names]
    return sorted(found, key=lambda change: -abs(change.new.host.median - change.old.host.median))


def as_json(old: Profile, new: Profile) -> dict[str, object]:
    """The comparison as plain values. Times are in ns."""
    by = {name: [_plain(change) for change in changes(old, new, key)] for name, key in KEYS.items()}
    return {"total": _plain(total(old, new)), "by": by}


def _plain(change: Change) -> dict[str, object]:
    return asdict(change) | {"clear": change.clear}

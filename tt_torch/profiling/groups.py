"""Sums over the ops of a profile: by module, by kind, by line. The page, the text and the comparison show them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tt_torch.profiling.model import Profile, ProfiledOp

MODEL = "(the model itself)"
NO_LINE = "(no line is known)"


@dataclass(frozen=True)
class Spread:
    """The median and the quartiles of measured times, in ns. With one measurement, all three are equal to it."""

    median: int
    low: int
    high: int

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.median + other.median, self.low + other.low, self.high + other.high)

    def __mul__(self, times: int) -> Spread:
        return Spread(self.median * times, self.low * times, self.high * times)


NONE = Spread(0, 0, 0)


@dataclass(frozen=True)
class Group:
    """Ops that have something in common. `host` is the sum of their measured times; its quartiles are the sums of the
    ops' quartiles. `modelled` is the sum of their times by the model of the chip, in ns, and `bounds` splits it by what
    takes the longest. `moved` are bytes."""

    name: str
    ops: int
    host: Spread
    modelled: float
    bounds: dict[str, float]
    moved: int


def spread(times: Sequence[int]) -> Spread:
    """The spread of at least one time. Quartiles are interpolated: 1, 2, 3, 4 have the quartiles 1.75 and 3.25."""
    if len(times) == 1:
        return Spread(times[0], times[0], times[0])
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return Spread(round(median), round(low), round(high))


def host_time(profile: Profile, op: ProfiledOp) -> Spread:
    """The measured time of an op as it counts in sums: see Profile.weight."""
    return spread(op.host) * profile.weight(op)


def group(profile: Profile, name: str, ops: Sequence[ProfiledOp]) -> Group:
    """The sums over some ops."""
    bounds: dict[str, float] = {}
    for op in ops:
        bound = profile.bound(op)
        bounds[bound] = bounds.get(bound, 0.0) + profile.weight(op) * profile.time(op)
    return Group(
        name,
        len(ops),
        sum((host_time(profile, op) for op in ops), NONE),
        sum(bounds.values()),
        bounds,
        sum(sum(op.moved.values()) * profile.weight(op) for op in ops),
    )


def grouped(profile: Profile, key: Callable[[ProfiledOp], str]) -> list[Group]:
    """Groups the ops that run in each call by a key. The groups that take the most host time come first."""
    members: dict[str, list[ProfiledOp]] = {}
    for op in profile.repeated:
        members.setdefault(key(op), []).append(op)
    groups = [group(profile, name, ops) for name, ops in members.items()]
    return sorted(groups, key=lambda found: -found.host.median)


def module_of(op: ProfiledOp) -> str:
    return op.module or MODEL


def line_of(op: ProfiledOp) -> str:
    """The user's line, as `file.py:12` with the path below the installed packages or below the current folder."""
    return f"{short_path(op.file)}:{op.line}" if op.file else NO_LINE


def kind_of(op: ProfiledOp) -> str:
    return op.kind


def op_of(op: ProfiledOp) -> str:
    """The name of an op with the first FX node that it came from, which tells the ops of a graph apart."""
    return f"{op.op} {op.nodes[0] if op.nodes else ''}".strip()


def class_of(op: ProfiledOp) -> str:
    return op.module_class or MODEL


def around(module: str) -> list[str]:
    """The paths of a module and of the modules around it, outermost first: "a.b" gives "", "a", "a.b"."""
    names = module.split(".") if module else []
    return [".".join(names[:end]) for end in range(len(names) + 1)]


def with_parts(profile: Profile) -> list[Group]:
    """The ops of each module and of the modules in it. A module comes before its parts."""
    members: dict[str, list[ProfiledOp]] = {}
    for op in profile.repeated:
        for module in around(op.module):
            members.setdefault(module, []).append(op)
    return [group(profile, module or MODEL, members[module]) for module in sorted(members, key=_by_number)]


def _by_number(module: str) -> list[tuple[int, str]]:
    """Orders "layer.10" behind "layer.9"."""
    return [(int(name) if name.isdecimal() else -1, name) for name in module.split(".")] if module else []


KEYS: dict[str, Callable[[ProfiledOp], str]] = {
    "module": module_of,
    "class of module": class_of,
    "kind of op": kind_of,
    "line": line_of,
}


def short_path(file: str) -> str:
    """A path that a reader recognizes: below the folder of installed packages, or below the current folder."""
    _, installed, inside = file.rpartition("/site-packages/")
    path = Path(file)
    return inside if installed else str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)

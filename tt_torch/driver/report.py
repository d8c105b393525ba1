"""Counts the time of all compilations of this process, and shows a long one on the terminal."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch.fx import GraphModule

from tt_torch.waiting import waiting

COMPILED, CACHED, REFUSED = "compiled", "from the cache", "refused"
MOST_PROGRAMS = 1000  # that a process remembers


@dataclass(frozen=True)
class ProgramReport:
    """A program: its number of ops, the seconds of each step, and the outcome.

    The outcome is "compiled", "from the cache", or "refused": a part of a graph that the device does not take.
    """

    name: str
    ops: int
    steps: dict[str, float]
    outcome: str

    @property
    def seconds(self) -> float:
        return sum(self.steps.values())


@dataclass
class CompileReport:
    """The programs in the order of their compilation, and the seconds of all compilations.

    `seconds` also counts the traces of Dynamo and AOTAutograd, the choice of ops for the host, and loading the
    programs.
    """

    programs: list[ProgramReport]
    seconds: float

    @property
    def steps(self) -> dict[str, float]:
        """The seconds of each step over all programs, the longest first."""
        total: dict[str, float] = {}
        for program in self.programs:
            for step, seconds in program.steps.items():
                total[step] = total.get(step, 0.0) + seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def __repr__(self) -> str:
        own = sum(program.seconds for program in self.programs)
        count = "1 program" if len(self.programs) == 1 else f"{len(self.programs)} programs"
        lines = [f"{count}, {self.seconds:.2f} s", "", f"{'seconds':>8}  step"]
        lines += [f"{seconds:8.2f}  {step}" for step, seconds in list(self.steps.items())[:8]]
        lines += [f"{max(self.seconds - own, 0):8.2f}  around the steps: traces, choice of host ops, loading"]
        lines += ["", f"{'seconds':>8}  {'ops':>5}  program"]
        longest = sorted(self.programs, key=lambda program: -program.seconds)
        lines += [f"{p.seconds:8.2f}  {p.ops:5}  {p.name}, {p.outcome}" for p in longest[:10]]
        return "\n".join([*lines, *([f"{'':8}  and {len(longest) - 10} more"] if len(longest) > 10 else [])])


@dataclass
class Running:
    """The program that is being compiled. `steps` has the seconds of each step that has ended."""

    name: str = "a graph"
    ops: int = 0
    step: str = "tracing"
    steps: dict[str, float] = field(default_factory=dict)

    def text(self, earlier: ProgramReport | None) -> str:
        ops = f", {self.ops} ops" if self.ops else ""
        left = time_left(self, earlier)
        return f"tt_torch compiles {self.name}{ops}: {self.step}" + (f", {left:.0f} s left" if left >= 1 else "")


def time_left(running: Running, earlier: ProgramReport | None) -> float:
    """Estimates the seconds that are left, from the seconds per op that an earlier program took for the same steps.

    It is 0 if no program was compiled before, or if the earlier program has no ops.
    """
    if earlier is None or not earlier.ops:
        return 0.0
    open_steps = [seconds for step, seconds in earlier.steps.items() if step not in running.steps]
    return sum(open_steps) * running.ops / earlier.ops


_programs: deque[ProgramReport] = deque(maxlen=MOST_PROGRAMS)
_seconds = 0.0
_running = threading.local()


def compile_report() -> CompileReport:
    """The time of all compilations so far, by program and by step. Programs from the cache are marked."""
    return CompileReport(list(_programs), _seconds)


def add(program: ProgramReport) -> None:
    _programs.append(program)


def ops_of(gm: GraphModule) -> int:
    return sum(node.op == "call_function" for node in gm.graph.nodes)


def running() -> Running:
    """The compilation of this thread."""
    if not hasattr(_running, "now"):
        _running.now = Running()
    now: Running = _running.now
    return now


@contextmanager
def compiling() -> Iterator[None]:
    """Counts the time of a compilation, and shows it on the terminal if it takes long. Inside of another compilation,
    it does nothing."""
    global _seconds
    if getattr(_running, "inside", False):
        yield
        return
    _running.inside, _running.now = True, (now := Running())
    start = time.perf_counter()
    try:
        with waiting(lambda: now.text(_last_compiled())):
            yield
    finally:
        _running.inside = False
        _seconds += time.perf_counter() - start


def _last_compiled() -> ProgramReport | None:
    return next((program for program in reversed(_programs) if program.outcome == COMPILED), None)

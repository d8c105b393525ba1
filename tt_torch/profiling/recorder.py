"""Watches executors: when each op of each call ended, what it costs, and what memory it left allocated."""

from __future__ import annotations

import atexit
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import record_function

from tt_torch import runtime
from tt_torch.compiler import CompiledGraph
from tt_torch.executor import Executor
from tt_torch.flatbuffer.decode import decode
from tt_torch.profiling.cost_model import PlannedOp, planned


@dataclass(frozen=True)
class OpRun:
    """One op in one call; times are those of `time.perf_counter_ns`."""

    program: str
    const_eval: bool
    op: PlannedOp
    graph: int
    call: int
    begin: int
    end: int


@dataclass
class Session:
    """All that a process has recorded; written when it ends."""

    folder: Path
    arch: str
    runs: list[OpRun] = field(default_factory=list)
    graphs: int = 0

    def write(self) -> None:
        from tt_torch.profiling.page import write_page
        from tt_torch.profiling.tables import write_csv, write_trace

        if self.runs:
            write_csv(self)
            write_trace(self)
            write_page(self)


_session: Session | None = None


def session(folder: str, arch: str) -> Session:
    """The recording of this process, into the folder that was asked for first."""
    global _session
    if _session is None:
        _session = Session(Path(folder), {"wormhole_b0": "Wormhole_b0", "blackhole": "Blackhole"}[arch])
        atexit.register(_session.write)
    return _session


class ProfiledExecutor(Executor):
    """An executor that records each of its calls, and shows each op to torch.profiler too."""

    def __init__(self, compiled: CompiledGraph, device: runtime.Device, session: Session) -> None:
        super().__init__(compiled, device)
        self.session, self.graph, self.calls = session, session.graphs, 0
        session.graphs += 1
        message = decode(compiled.binary)
        self.plans = {p["name"]: list(planned(p, session.arch)) for p in message["programs"]}
        self.private = {p["name"] for p in message["programs"] if p.get("private")}

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        watcher = _Watcher(self)
        self.executable._impl.set_callback(watcher)  # the plain one: outputs are not copied
        try:
            with record_function(f"tt_torch graph {self.graph}"):
                return super().__call__(inputs)
        finally:
            self.executable.set_callback(None)
            self.calls += 1


class _Watcher:
    """The callback of one call: an op lasts from the end of the callback before it to the begin of its own."""

    def __init__(self, executor: ProfiledExecutor) -> None:
        self.executor = executor
        self.remaining = {name: iter(plan) for name, plan in executor.plans.items()}
        self.since = time.perf_counter_ns()

    def __call__(self, name: str, location: str, text: str, program: str, outputs: list[Any]) -> None:
        now = time.perf_counter_ns()
        e = self.executor
        op = next(op for op in self.remaining[program] if op.name == name and op.location == location)
        run = OpRun(program, program in e.private, op, e.graph, e.calls, self.since, now)
        e.session.runs.append(run)
        self.since = time.perf_counter_ns()

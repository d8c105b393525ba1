"""The data that a process records about the graphs that it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tt_torch.profiling.cost_model import PlannedOp


@dataclass(frozen=True)
class OpRun:
    """One op in one call. `begin` and `end` are values of `time.perf_counter_ns`."""

    program: str
    const_eval: bool
    op: PlannedOp
    graph: int
    call: int
    begin: int
    end: int


@dataclass
class Session:
    """All op runs of a process, and the folder to which its files will be written."""

    folder: Path
    arch: str
    runs: list[OpRun] = field(default_factory=list)
    graphs: int = 0

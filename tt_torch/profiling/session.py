"""What a process has recorded of the graphs that it ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tt_torch.profiling.cost_model import PlannedOp


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
    """All runs of a process, and the folder in which its files will be."""

    folder: Path
    arch: str
    runs: list[OpRun] = field(default_factory=list)
    graphs: int = 0

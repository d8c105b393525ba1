"""The data that a process records about the graphs that it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from tt_torch.profiling.cost_model import PlannedOp
from tt_torch.profiling.sources import Source
from tt_torch.wire.messages import Program


@dataclass(frozen=True)
class OpRun:
    """One op in one call. `number` counts the device ops of the program. `begin` and `end` are values of
    `time.perf_counter_ns`."""

    program: str
    const_eval: bool
    number: int
    op: PlannedOp
    graph: int
    call: int
    begin: int
    end: int


@dataclass
class RecordedGraph:
    """A graph that runs on the device, with what is the same in each call.

    `cached` has the names of the programs whose results are cached. `sources` has the source of each FX node by its
    name, and `roles` the role of each input of the public program.
    `calls` has begin and end of each call, in ns.
    """

    programs: Sequence[Program]
    cached: Set[str]
    sources: Mapping[str, Source]
    roles: Sequence[str]
    calls: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Session:
    """All op runs of a process, and the folder to which its files will be written. `graphs` are those that were called,
    in the order of their first calls."""

    folder: Path
    arch: str
    runs: list[OpRun] = field(default_factory=list)
    graphs: list[RecordedGraph] = field(default_factory=list)

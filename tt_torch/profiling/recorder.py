"""Watches executors. Records when each op of each call began and ended, its cost, and the memory allocated after it."""

from __future__ import annotations

import atexit
import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch.autograd.profiler import record_function
from torch.fx import GraphModule

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import Form, compile_graph
from tt_torch.driver.devices import Device
from tt_torch.driver.executor import CompiledProgram, Executor
from tt_torch.driver.observer import Observer
from tt_torch.driver.shards import MeshExecutor, varying_results
from tt_torch.profiling.cost_model import planned
from tt_torch.profiling.session import OpRun, RecordedGraph, Session
from tt_torch.profiling.sources import Source, sources
from tt_torch.wire.calls import cached
from tt_torch.wire.decode import decode

_session: Session | None = None


def session(folder: str, arch: str) -> Session:
    """The recording of this process. Its folder comes from the first call of this function."""
    global _session
    if _session is None:
        _session = Session(Path(folder), {"wormhole_b0": "Wormhole_b0", "blackhole": "Blackhole"}[arch])
        atexit.register(_write, _session)
    return _session


def _write(session: Session) -> None:
    """Writes the files. This runs when the process ends."""
    from tt_torch.profiling.html import write_page
    from tt_torch.profiling.model import of_session, write_json
    from tt_torch.profiling.page import PAGE_NAME, page
    from tt_torch.profiling.tables import write_csv, write_trace

    if session.runs:
        write_csv(session)
        write_trace(session)
        profile = of_session(session)
        write_json(profile, session.folder)
        write_page(session.folder / PAGE_NAME, lambda: page(profile))


def observe(observer: Observer, config: CompilerConfig) -> Observer:
    """The entry point `profiling` of the group `tt_torch.observers`: makes executors whose calls are recorded."""
    recording = session(config.profile, config.arch)

    def make(piece: GraphModule, roles: Sequence[str], config: CompilerConfig, device: Device) -> Executor:
        found: dict[str, Source] = {}
        varying = varying_results(piece.graph) if config.mesh_shape != (1, 1) else None

        def reached(name: str, form: Form) -> None:
            if name == "FX":
                found.update(sources(form))
            if observer.reached:
                observer.reached(name, form)

        compiled = compile_graph(piece, roles, config, reached)
        if varying is None:
            return ProfiledExecutor(compiled, device).recording(recording, found)
        return ProfiledMeshExecutor(compiled, device, varying).recording(recording, found)

    return dataclasses.replace(observer, make_executor=make)


def of_file(compiled: CompiledProgram, device: Device, config: CompilerConfig) -> Executor:
    """The entry point `profiling of files` of the same group: an executor of a program that comes from a file. The file
    has the lines of the user's code, but not its modules."""
    return ProfiledExecutor(compiled, device).recording(session(config.profile, config.arch), {})


class ProfiledExecutor(Executor):
    """An executor that records each of its calls, and shows each call to torch.profiler as well."""

    def recording(self, session: Session, sources: Mapping[str, Source]) -> ProfiledExecutor:
        """The executor itself, which records into a session from now on."""
        message = decode(self.compiled.binary)
        programs = message["programs"]
        self.session, self.recorded = session, RecordedGraph(programs, cached(message), sources, self.compiled.kinds)
        self.plans = {p["name"]: list(planned(p, session.arch)) for p in programs}
        self.graph = -1  # the number of the graph, from the first call on
        return self

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if self.graph < 0:
            self.graph = len(self.session.graphs)
            self.session.graphs.append(self.recorded)
        watcher = _Watcher(self)
        self.watched._impl.set_callback(watcher)  # Executable.set_callback would copy the outputs
        try:
            with record_function(f"tt_torch graph {self.graph}"):
                return super().__call__(inputs)
        finally:
            self.watched.set_callback(None)
            self.recorded.calls.append((watcher.begin, time.perf_counter_ns()))


class ProfiledMeshExecutor(ProfiledExecutor, MeshExecutor):
    """The same for a program for several chips. All chips run an op together, so the op has one time."""


class _Watcher:
    """The callback of one call. An op's time runs from the end of the previous callback to the start of its own."""

    def __init__(self, executor: ProfiledExecutor) -> None:
        self.executor = executor
        self.remaining = {name: iter(enumerate(plan)) for name, plan in executor.plans.items()}
        self.begin = self.since = time.perf_counter_ns()

    def __call__(self, name: str, location: str, text: str, program: str, outputs: list[object]) -> None:
        now = time.perf_counter_ns()
        e = self.executor
        number, op = next((i, op) for i, op in self.remaining[program] if op.name == name and op.location == location)
        graph = e.recorded
        run = OpRun(program, program in graph.cached, number, op, e.graph, len(graph.calls), self.since, now)
        e.session.runs.append(run)
        self.since = time.perf_counter_ns()

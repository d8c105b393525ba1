"""Keeps whole captured graphs of inference. A process that finds one traces nothing and compiles nothing.

The key consists of Dynamo's graph as text, the settings of PyTorch that a trace reads, all options, and the versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch.fx import GraphModule

from tt_torch import user_code
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver import report
from tt_torch.driver.cache.graph_text import UnknownToCache, text_of
from tt_torch.driver.cache.keys import hashed, options, sources, usable_store
from tt_torch.driver.cache.store import Store
from tt_torch.driver.devices import devices_at
from tt_torch.driver.exact_runner import ExactRunner
from tt_torch.driver.observer import NOBODY, Observer
from tt_torch.driver.package.contents import well_formed
from tt_torch.driver.package.loading import program_of
from tt_torch.driver.package.manifest import Graph, Json, graph_from_json, to_json
from tt_torch.driver.package.saving import graph_fields, programs_of, tensors_of
from tt_torch.driver.program import Program
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.errors import InexactError, KernelError, PackageError
from tt_torch.torch_private.aot import TracingContext, is_plain_inference, tracing
from tt_torch.torch_private.state import guards_of_aliases, settings
from tt_torch.torch_private.tensors import FakeTensorMode, without_modes

# Compiles the graph for inputs that have the forms of these examples, and tells the observer of the programs.
Compile: TypeAlias = Callable[[Sequence[object], Observer], Function]


def kept(
    gm: GraphModule, examples: Sequence[object], given: BackendOptions, observer: Observer, compile_graph: Compile
) -> Function:
    """The function that `compile_graph` makes of a captured graph. It comes from the cache if it is there."""
    config = given.compiler_config
    alone = observer is NOBODY and not config.device_map and not given.async_mode
    store = usable_store(config) if alone else None
    key = _key(gm, examples, config) if store else None
    if store is None or key is None:
        return compile_graph(examples, observer)
    with without_modes():  # while PyTorch captures a graph, new tensors have no elements
        program = _found(store, key, given)
    if program is not None:
        report.add(report.ProgramReport("a whole graph", report.ops_of(gm), {}, report.CACHED))
        return _run(program, lambda inputs: compile_graph(inputs, observer))
    programs: list[Program] = []
    with user_code.told() as warnings:
        run = compile_graph(examples, Observer(program=programs.append))
    if len(programs) == 1 and not warnings and _is_all(gm, programs[0]):
        with without_modes():
            _keep(store, key, programs[0], config)
    return run


def _key(gm: GraphModule, examples: Sequence[object], config: CompilerConfig) -> str | None:
    """The key of a graph; None if something about it has no place in keys."""
    state = settings()
    if state is None:
        return None
    try:
        return hashed("graph", text_of(gm, examples), json.dumps(state), options(config), str(sources()))
    except UnknownToCache:
        return None


def _found(store: Store, key: str, given: BackendOptions) -> Program | None:
    found = store.read(key)
    if found is None:
        return None
    data, tensors = found
    try:
        with well_formed(key):
            graph, flagged, texts = graph_from_json(data["graph"]), bool(data["flagged"]), data["texts"]
            program = program_of(graph, tensors, devices_at(set(), given)[0], flagged=flagged)
    except PackageError:  # its hashes are right, so somebody wrote it by hand
        return None
    outputs = given.compiler_config.outputs
    if given.compiler_config.profile_ops:
        outputs.torch_mlir_module, outputs.stablehlo_mlir_module = texts
    return program


def _run(program: Program, compile_graph: Callable[[Sequence[Argument]], Function]) -> Function:
    """Runs a program of the cache. It lacks the graph in eager PyTorch, so the first call that needs this graph
    compiles it, and all later calls use the result."""
    compiled: list[Function] = []

    def run(*inputs: Argument) -> Result:
        if not compiled:
            try:
                with torch.no_grad():
                    return program(list(inputs))
            except (InexactError, KernelError):
                with tracing(TracingContext(FakeTensorMode())):
                    compiled.append(compile_graph(inputs))
        return compiled[0](*inputs)

    return run


def _is_all(gm: GraphModule, program: Program) -> bool:
    """Whether a call of the program alone gives the results of the graph. A graph that draws random numbers also needs
    seeds."""
    (output,) = gm.graph.find_nodes(op="output")
    metadata = TracingContext.get().fw_metadata
    results = len(program.interface.outputs) - len(program.checks)
    plain = metadata is not None and is_plain_inference(metadata) and not guards_of_aliases()
    return plain and results == len(output.args[0]) and not program.interface.seeds


def _keep(store: Store, key: str, program: Program, config: CompilerConfig) -> None:
    programs, runner = programs_of(program), program.runner
    if programs is None:
        return
    assert isinstance(runner, ExactRunner)
    outputs = config.outputs
    data: dict[str, Json] = {
        "graph": to_json(Graph(**graph_fields(program, programs))),
        "flagged": runner.plan.flagged,
        "texts": [outputs.torch_mlir_module, outputs.stablehlo_mlir_module],
    }
    store.write(key, data, tensors_of(programs))

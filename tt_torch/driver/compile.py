"""Compiles an ATen graph to a binary: the stages in order, with the dumps and the stop points of the options."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch_mlir import ir

from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.driver import report
from tt_torch.driver.cache.binaries import binary_of
from tt_torch.driver.executor import CompiledProgram
from tt_torch.dynamo.decompositions.chebyshev import IN_FLOAT32
from tt_torch.dynamo.interface import module_path, weight_name
from tt_torch.dynamo.passes import run_passes
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.states import updates_of
from tt_torch.errors import ConfigError
from tt_torch.files import write
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import context_to_compile
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.layer_names import write_names
from tt_torch.mlir.mesh import mesh_of, set_mesh
from tt_torch.mlir.stablehlo.importer import import_graph
from tt_torch.mlir.ttir.passes.apply_dtype import keep_float32
from tt_torch.mlir.ttnn.to_binary import translate
from tt_torch.torch_private.tensors import is_non_overlapping_and_dense_or_false
from tt_torch.tt_mlir import compiler as tt_mlir

_graphs = itertools.count()  # numbers the dumps of a process
MARKS = {"STABLEHLO": "STABLEHLO", "BINARY": "TTNN_IR"}  # the stages that tt-torch's tests report, by our names
Form: TypeAlias = Any  # of a program: a graph, a module or a binary
Watch: TypeAlias = Callable[[str, Form], None]  # is called with each form of the program: its name, the form


@dataclass
class CompiledGraph(CompiledProgram):
    """The result of a compilation up to the configured depth. It has no binary if the compilation stops earlier."""

    timings: pipeline.Timings = field(default_factory=pipeline.Timings)


def compile_graph(
    gm: torch.fx.GraphModule, kinds: Sequence[str], config: CompilerConfig, watch: Watch | None = None
) -> CompiledGraph:
    """Compiles a functional ATen graph with `val` metadata; `kinds` are the roles of its placeholders.

    `watch` is called with the graph ("FX"), the imported module ("TORCH"), the module at each level, and the bytes
    ("BINARY"). `gm` is not changed. Raises UnsupportedOpError for an op without a rule, and StageError if a step fails.
    """
    dump = Dump(config, watch)
    with reported(report.ops_of(gm), dump.stem) as timings:
        return _compiled(gm, kinds, config, timings, dump)


def _compiled(
    gm: torch.fx.GraphModule,
    kinds: Sequence[str],
    config: CompilerConfig,
    timings: pipeline.Timings,
    dump: Dump,
) -> CompiledGraph:
    gm = copied(gm)  # the caller still needs its graph: to partition it after an error, or to run it on the CPU
    forms, updates = _forms(gm), updates_of(gm) if config.compiler == "tt-torch" else {}
    kinds = ["state" if i in updates.values() else kind for i, kind in enumerate(kinds)]
    constants = timings.measure("fx-passes", lambda: run_passes(gm, config))
    compiled = CompiledGraph(b"", list(constants.values()), [*kinds, *["constant"] * len(constants)], *forms)
    compiled.timings, compiled.compare_weights, compiled.updates = timings, config.compare_weights, updates
    dump("FX", gm.graph)
    if config.compile_depth == CompileDepth.TORCH_FX:
        return compiled
    module = stablehlo_of(gm, compiled.kinds, updates, config, timings, dump)
    if config.compile_depth != CompileDepth.STABLEHLO:
        compiled.binary = _finish(module, config, timings, dump)
    return compiled


def stablehlo_of(
    gm: torch.fx.GraphModule,
    kinds: Sequence[str],
    updates: Mapping[int, int],
    config: CompilerConfig,
    timings: pipeline.Timings,
    dump: Dump,
) -> ir.Module:
    """The StableHLO of a graph after our passes. `kinds` are the roles of its placeholders; for `updates` see
    import_graph."""
    context = timings.measure("context", context_to_compile)
    module = timings.measure("import-fx", lambda: import_graph(gm.graph, context, kinds, updates))
    if math.prod(config.mesh_shape) > 1:
        set_mesh(module, config.mesh_shape)
    if config.names_layers:
        write_names(module, *_layer_names(gm.graph, kinds))
    if config.dtype == "bf16" and config.compiler == "tt-torch":  # tt-mlir does not know this note
        keep_float32(module, [n.name for n in gm.graph.nodes if str(n.meta.get("original_aten")) in IN_FLOAT32])
    dump("TORCH", module)
    _lower(module, ["STABLEHLO"], config, timings, dump)
    return module


def _layer_names(graph: torch.fx.Graph, kinds: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The module path of each node, and the name of each placeholder, which is "" for an input."""
    placeholders = graph.find_nodes(op="placeholder")
    weights = [weight_name(n) if kind == "parameter" else "" for n, kind in zip(placeholders, kinds, strict=True)]
    return {n.name: module_path(n) for n in graph.nodes if n.op == "call_function"}, weights


@contextmanager
def reported(ops: int, name: str) -> Iterator[pipeline.Timings]:
    """Timings that the line on the terminal follows, and that go to the report at the end, also after an error."""
    now, timings = report.running(), pipeline.Timings()
    now.name, now.ops, now.steps = name, ops, timings.steps
    timings.started = partial(setattr, now, "step")
    outcome = report.REFUSED
    try:
        yield timings
        outcome = report.CACHED if timings.cached else report.COMPILED
    finally:
        report.add(report.ProgramReport(name, now.ops, timings.steps, outcome))
        now.step, now.ops = "loading", 0


def compile_module(module: ir.Module, config: CompilerConfig, watch: Watch | None = None) -> bytes:
    """The binary of a StableHLO module, which is changed on the way. For `watch` and errors see compile_graph.

    Raises ConfigError if `mesh_shape` is neither (1, 1) nor the mesh of the module.
    """
    dump = Dump(config, watch)
    if config.mesh_shape not in ((1, 1), mesh_of(module)):
        raise ConfigError("mesh_shape", config.mesh_shape, f"{mesh_of(module)}, the mesh of the module")
    with report.compiling(), reported(len(block(main(module)).operations), dump.stem) as timings:
        return _finish(module, config, timings, dump)


def _lower(
    module: ir.Module, levels: Iterable[str], config: CompilerConfig, timings: pipeline.Timings, dump: Dump
) -> None:
    for level in levels:
        pipeline.run_steps(module, pipeline.LEVELS[level], config, timings)
        dump(level, module)


def _finish(module: ir.Module, config: CompilerConfig, timings: pipeline.Timings, dump: Dump) -> bytes:
    """Compiles StableHLO to the binary, by our own stages or by tt-mlir. The compile cache may have it."""
    if config.compiler == "tt-mlir":
        binary = timings.measure("tt-mlir", lambda: tt_mlir.compile_stablehlo(module, config, dump))
    elif config.tt_mlir_options:
        raise ConfigError("tt_mlir_options", dict(config.tt_mlir_options), 'nothing unless compiler="tt-mlir"')
    elif dump.watch:
        binary = _by_our_stages(module, config, timings, dump)
    else:
        binary = binary_of(module, config, lambda: _by_our_stages(module, config, timings, dump))
        timings.cached = "flatbuffer" not in timings.steps
    dump("BINARY", binary)
    return binary


def _by_our_stages(module: ir.Module, config: CompilerConfig, timings: pipeline.Timings, dump: Dump) -> bytes:
    _, *later = pipeline.LEVELS
    _lower(module, later, config, timings, dump)
    return timings.measure("flatbuffer", lambda: translate(module, config))


def _forms(
    gm: torch.fx.GraphModule,
) -> tuple[list[torch.dtype], list[tuple[int, ...] | None] | None, list[torch.device] | None]:
    """Dtypes, strides and devices of the results. A later `view` may need the strides that eager PyTorch gives."""
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    values = [n.meta["val"] for n in output.args[0]]
    dense = [not v.is_contiguous() and is_non_overlapping_and_dense_or_false(v) for v in values]
    strides = [v.stride() if own else None for v, own in zip(values, dense, strict=True)]
    devices = [v.device for v in values]
    elsewhere = any(device.type != "cpu" for device in devices)
    return [v.dtype for v in values], strides if any(dense) else None, devices if elsewhere else None


class Dump:
    """Shows the forms of a program: to stderr and in files, as `ir_log_level`, `save_mlir` and `save_binary` say, to a
    watcher, and on the config."""

    def __init__(self, config: CompilerConfig, watch: Watch | None) -> None:
        self.config, self.watch = config, watch
        self.stem = f"{config.file_stem or 'graph'}_{next(_graphs)}"

    def __call__(self, name: str, form: Form) -> None:
        if self.watch:
            self.watch(name, form)
        self._give_back(name, form)
        if isinstance(form, bytes):
            if self.config.save_binary:
                write(Path(self.config.output_binary_dir) / f"{self.stem}.ttnn", form)
            return
        saved = name.partition("/")[0] in self.config.save_mlir
        if not (saved or self.config.ir_log_level):
            return
        text = form.operation.get_asm(enable_debug_info=True) if isinstance(form, ir.Module) else str(form)
        if self.config.ir_log_level:
            print(f"// --- {name} ---\n{text}", file=sys.stderr)
        if saved:
            write(
                Path(self.config.output_mlir_dir) / f"{self.stem}_{name.lower().replace('/', '_')}.mlir", text.encode()
            )

    def _give_back(self, name: str, form: Form) -> None:
        """Tells the owner of the config how far the compilation came, and leaves the text of the modules there."""
        outputs = self.config.outputs
        if outputs.record_property and name in MARKS:
            outputs.record_property("achieved_compile_depth", MARKS[name])
        if self.config.profile_ops and name == "TORCH":
            outputs.torch_mlir_module = form.operation.get_asm()
        if self.config.profile_ops and name == "STABLEHLO":
            outputs.stablehlo_mlir_module = form.operation.get_asm()

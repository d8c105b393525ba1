"""From an ATen graph to a binary: stages 2 to 6 in order, with the dumps and stop points that options ask for."""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch_mlir import ir

from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.dynamo.passes import run_passes
from tt_torch.files import write
from tt_torch.flatbuffer.from_ttnn import translate
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.stablehlo.importer import import_graph

_graphs = itertools.count()  # numbers the dumps of a process


@dataclass
class CompiledGraph:
    """The result of a compilation, as far as the configured depth went."""

    binary: bytes  # empty when the depth stops before it
    constants: list[torch.Tensor]  # the program's last inputs
    kinds: list[str]  # role of each input: input, parameter or constant
    output_dtypes: list[torch.dtype]
    output_strides: list[tuple[int, ...] | None] | None  # None for contiguous ones, and when all are
    timings: pipeline.Timings = field(default_factory=pipeline.Timings)


def compile_graph(gm: torch.fx.GraphModule, kinds: Sequence[str], config: CompilerConfig) -> CompiledGraph:
    """Compiles a functional ATen graph with `val` metadata; `kinds` are the roles of its placeholders.

    Raises UnsupportedOpError for an op without a rule and StageError when a step breaks. `gm` is not changed.
    """
    timings = pipeline.Timings()
    gm = copy.copy(gm)  # the passes change the graph, which still has to run on the CPU below depth EXECUTE
    gm.graph = copy.deepcopy(gm.graph)
    forms = _forms(gm)
    constants = timings.measure("fx-passes", lambda: run_passes(gm, config))
    compiled = CompiledGraph(b"", list(constants.values()), [*kinds, *["constant"] * len(constants)], *forms)
    compiled.timings = timings
    dump = Dump(config)
    dump("Torch FX", None, str(gm.graph))
    if config.compile_depth == CompileDepth.TORCH_FX:
        return compiled
    context = timings.measure("context", make_context)
    module = timings.measure("import-fx", lambda: import_graph(gm.graph, context, compiled.kinds))
    for level, steps in pipeline.LEVELS.items():
        pipeline.run_steps(module, steps, config, timings)
        dump(level, level, module)
        if config.compile_depth == CompileDepth.STABLEHLO:
            return compiled
    compiled.binary = timings.measure("flatbuffer", lambda: translate(module, config))
    dump.binary(compiled.binary)
    return compiled


def _forms(gm: torch.fx.GraphModule) -> tuple[list[torch.dtype], list[tuple[int, ...] | None] | None]:
    """Dtypes of the results, and the strides that eager PyTorch gives them, which a later `view` may rely on."""
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    values = [n.meta["val"] for n in output.args[0]]
    dense = [not v.is_contiguous() and is_non_overlapping_and_dense_or_false(v) for v in values]
    strides = [v.stride() if own else None for v, own in zip(values, dense, strict=True)]
    return [v.dtype for v in values], strides if any(dense) else None


class Dump:
    """Writes stages to stderr and to files, as `ir_log_level`, `save_mlir` and `save_binary` say."""

    def __init__(self, config: CompilerConfig) -> None:
        self.config = config
        self.stem = f"{config.file_stem or 'graph'}_{next(_graphs)}"

    def __call__(self, title: str, dialect: str | None, module: ir.Module | str) -> None:
        saved = dialect in self.config.save_mlir
        if not (saved or self.config.dump_info):
            return
        text = module if isinstance(module, str) else module.operation.get_asm(enable_debug_info=True)
        if self.config.dump_info:
            print(f"// --- {title} ---\n{text}", file=sys.stderr)
        if saved:
            write(Path(self.config.output_mlir_dir) / f"{self.stem}_{str(dialect).lower()}.mlir", text.encode())

    def binary(self, data: bytes) -> None:
        if self.config.save_binary:
            write(Path(self.config.output_binary_dir) / f"{self.stem}.ttnn", data)

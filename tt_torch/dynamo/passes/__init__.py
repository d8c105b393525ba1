"""FX passes on the functional ATen graph, in order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule

from tt_torch.config import CompilerConfig
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.passes.constant_fold import constant_fold
from tt_torch.dynamo.passes.redundant_casts import remove_redundant_casts
from tt_torch.dynamo.passes.repair import repair
from tt_torch.dynamo.passes.use_composites import use_composites


def run_passes(gm: GraphModule, config: CompilerConfig) -> dict[str, torch.Tensor]:
    """Runs all passes; returns the constants that became placeholders, by placeholder name."""
    # The host computes constants, so the device does not need to have their ops. Later passes make more constants.
    constants = constant_fold(gm, fold=config.enable_consteval)
    remove_redundant_casts(gm.graph)
    gm.graph.eliminate_dead_code()
    repair(gm.graph)
    use_composites(gm.graph)
    constants |= constant_fold(gm, fold=config.enable_consteval)
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    return constants


def pass_pipeline(
    gm: GraphModule, example_inputs: Sequence[torch.Tensor], compiler_config: CompilerConfig
) -> tuple[GraphModule, list[torch.Tensor]]:
    """A graph module after export, decompositions and our FX passes, and the values of its inputs that are constants.
    Only programs that were written for tt-torch call this function.

    The inputs are, in this order: parameters, buffers and constants that were attributes; `example_inputs`; constants
    that the passes made, whose values are returned.
    """
    program = torch.export.export(gm, tuple(example_inputs)).run_decompositions(DECOMPOSITIONS)
    graph_module = program.graph_module
    constants = run_passes(graph_module, compiler_config)
    graph_module.recompile()
    return graph_module, list(constants.values())

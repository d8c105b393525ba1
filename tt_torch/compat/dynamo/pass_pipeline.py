"""An old name: `tt_torch.dynamo.passes.pass_pipeline`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule

from tt_torch.config import CompilerConfig
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.passes import run_passes


def pass_pipeline(
    gm: GraphModule, example_inputs: Sequence[torch.Tensor], compiler_config: CompilerConfig
) -> tuple[GraphModule, list[torch.Tensor]]:
    """A graph module after export, decompositions and our FX passes, and the values of its inputs that are constants.

    The inputs are, in this order: parameters, buffers and constants that were attributes; `example_inputs`; constants
    that the passes made, whose values are returned.
    """
    program = torch.export.export(gm, tuple(example_inputs)).run_decompositions(DECOMPOSITIONS)
    graph_module = program.graph_module
    constants = run_passes(graph_module, compiler_config)
    graph_module.recompile()
    return graph_module, list(constants.values())

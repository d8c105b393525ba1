"""FX passes on the functional ATen graph, in order."""

from __future__ import annotations

import importlib

import torch
from torch.fx import GraphModule

from tt_torch.config import CompilerConfig
from tt_torch.dynamo.passes.constant_fold import constant_fold
from tt_torch.dynamo.passes.redundant_casts import remove_redundant_casts
from tt_torch.dynamo.passes.repair import repair
from tt_torch.dynamo.passes.use_composites import use_composites


def __getattr__(name: str) -> object:
    """`pass_pipeline` is a name of tt-torch."""
    if name != "pass_pipeline":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("tt_torch.dynamo.pass_pipeline").pass_pipeline


def run_passes(gm: GraphModule, config: CompilerConfig) -> dict[str, torch.Tensor]:
    """Runs all passes; returns the constants that became placeholders, by placeholder name."""
    # The host computes constants, so no op of theirs has to be one of the device. Later passes make further constants.
    constants = constant_fold(gm, fold=config.enable_consteval)
    remove_redundant_casts(gm.graph)
    gm.graph.eliminate_dead_code()
    repair(gm.graph)
    use_composites(gm.graph)
    constants |= constant_fold(gm, fold=config.enable_consteval)
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    return constants

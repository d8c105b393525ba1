"""The sweep of whole models: each row of the registry, compiled and compared with eager."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Any

import torch

from tt_torch.sweep import registry
from tt_torch.sweep.compare import check_model
from tt_torch.sweep.engine import Item


def items(source: str = "") -> Iterator[Item]:
    """One item per model of the registry, or of the Python file `source`."""
    for model in registry.load(source):
        yield Item(model.name, f"{__name__}:run_model", {"model": model.name, "source": source})


def run_model(model: str, source: str) -> dict[str, Any]:
    """The record of one model."""
    (row,) = (row for row in registry.load(source) if row.name == model)
    torch.manual_seed(0)
    module, inputs = row.make()
    registry.randomize(module)
    parameters = sum(p.numel() for p in module.parameters())
    labels = {"group": row.group, "config": row.config, "parameters": parameters}
    record = check_model(module, ((), inputs))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**labels, **record, "peak_memory": peak}

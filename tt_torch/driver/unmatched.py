"""Tells the user of entries of the option `precision` that match nothing."""

from __future__ import annotations

from torch.fx import GraphModule

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.dynamo.interface import layer_names
from tt_torch.layers import matches
from tt_torch.option_kinds import nearest


class PrecisionWarning(UserWarning):
    """An entry of the option `precision` matches no module and no parameter of a captured graph."""


def tell_unmatched(graph: GraphModule, config: CompilerConfig) -> None:
    """Warns with PrecisionWarning, once for all entries that match nothing in a graph with named inputs."""
    names = layer_names(graph.graph) if config.precision else set()
    unmatched = [pattern for pattern, _ in config.precision if not matches(pattern, names)]
    if unmatched:
        hint = nearest(unmatched[0], names)
        user_code.warn(
            PrecisionWarning(
                f"precision: no module and no parameter of this graph matches {', '.join(map(repr, unmatched))}{hint}; "
                "tt_torch.dump_weight_names(model) gives the names of weights"
            )
        )

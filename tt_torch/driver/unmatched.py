"""Tells the user of entries of the option `precision` that match nothing."""

from __future__ import annotations

from collections.abc import Collection

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.layers import matches
from tt_torch.option_kinds import nearest


class PrecisionWarning(UserWarning):
    """An entry of the option `precision` matches no module and no parameter of a graph."""


def tell_unmatched(names: Collection[str], config: CompilerConfig) -> None:
    """Warns with PrecisionWarning, once for all entries that match none of a graph's names."""
    unmatched = [pattern for pattern, _ in config.precision if not matches(pattern, names)]
    if unmatched:
        hint = nearest(unmatched[0], names)
        user_code.warn(
            PrecisionWarning(
                f"precision: no module and no parameter of this graph matches {', '.join(map(repr, unmatched))}{hint}; "
                "tt_torch.dump_weight_names(model) gives the names of weights"
            )
        )


def tell_nameless(config: CompilerConfig) -> None:
    """Warns of entries that match nothing, because the model has several programs, whose weights have no names."""
    if any(pattern != "*" for pattern, _ in config.precision):
        user_code.warn(
            PrecisionWarning(
                "precision: the host decides between the programs of this model, in which weights have no names; "
                "only an entry '*' has an effect"
            )
        )

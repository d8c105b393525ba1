"""Warnings about options that have no effect: a precision changes nothing, or an entry matches no module."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.layers import matches
from tt_torch.option_kinds import nearest


class PrecisionWarning(UserWarning):
    """An entry of the option `precision` matches no module and no parameter of a graph, or has no effect on it."""


class DeviceMapWarning(UserWarning):
    """An entry of the option `device_map` is for a module that no op of a graph is in."""


def tell_idle(names: Collection[str], config: CompilerConfig) -> None:
    """Warns with DeviceMapWarning, once for all modules with an entry but without one of a graph's names."""
    modules = [path for path, _ in config.device_map]
    idle = [path for path in modules if path and not any(f"{name}.".startswith(f"{path}.") for name in names)]
    if idle:
        hint = nearest(idle[0], names)
        user_code.warn(DeviceMapWarning(f"device_map: no op of this graph is in {', '.join(map(repr, idle))}{hint}"))


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


def tell_wide(has_bfloat16: Callable[[], bool], config: CompilerConfig) -> None:
    """Warns with PrecisionWarning if `activation_dtype` is set for a graph that computes in float32."""
    asked = config.activation_dtype or any(dict(values).get("activation_dtype") for _, values in config.precision)
    if asked and config.dtype != "bf16" and not (config.dtype is None and has_bfloat16()):
        user_code.warn(
            PrecisionWarning(
                "activation_dtype: it changes values in bfloat16, and this graph computes in float32; "
                'dtype="bf16" computes in bfloat16'
            )
        )

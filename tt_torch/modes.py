"""The modes of `torch.compile(..., mode=...)`, which inductor defines, and what each one means here."""

from __future__ import annotations

from dataclasses import dataclass

from tt_torch import user_code
from tt_torch.errors import ConfigError
from tt_torch.option_kinds import nearest

EMULATED = "only a device of Tenstorrent's library records its commands; the emulated one has none to record"


@dataclass(frozen=True)
class Mode:
    """A mode. `records` says whether it sets the option `enable_trace` for `device="ttnn"`. `reason` says why the rest
    of the mode has no effect here; it is "" if the mode has no other effect."""

    records: bool
    reason: str


MODES = {
    "default": Mode(False, ""),
    "reduce-overhead": Mode(True, ""),
    "max-autotune": Mode(True, "layouts and kernels follow fixed rules, so nothing is tuned by measurements"),
    "max-autotune-no-cudagraphs": Mode(
        False, "layouts and kernels follow fixed rules, so nothing is tuned by measurements"
    ),
    "lite": Mode(False, "it switches off passes of inductor, which does not take part"),
}


def known(name: str | None) -> Mode:
    """The mode; None is "default". Raises ConfigError for an unknown name."""
    name = "default" if name is None else name
    if name not in MODES:
        raise ConfigError("mode", name, f"{', '.join(MODES)}{nearest(str(name), MODES)}")
    return MODES[name]


def tell(name: str | None, device: str) -> None:
    """Warns once per process of the part of a mode that has no effect for programs on the option's `device`."""
    mode = known(name)
    reasons = [EMULATED] * (mode.records and device != "ttnn") + [mode.reason] * bool(mode.reason)
    if reasons:
        part = "a part of its effect only" if mode.records and device == "ttnn" else "no effect"
        message = f"mode={name!r} has {part} here: {'; '.join(reasons)}"
        user_code.warn_once(f"mode {name}", UserWarning(message))

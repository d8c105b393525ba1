"""The environment variables `TT_TORCH_...`: the known variables, and the warning about unknown ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from tt_torch import user_code
from tt_torch.option_kinds import nearest

PREFIX = "TT_TORCH_"

# The variables that are no options of the compiler, and their purposes.
OTHERS = {
    "TT_TORCH_HOME": "the folder of the repository, which env/activate sets",
    "TT_TORCH_DEVICE_COUNT": "the number of devices `tt:0`, `tt:1`, ...: docs/eager_device.md",
    "TT_TORCH_LOG": "`fallback` prints the ops of device='tt' that run on the CPU: docs/eager_device.md",
    "TT_TORCH_PROGRESS": "`0` hides the line that a terminal shows while something takes more than two seconds",
    "TT_TORCH_HOST_TIMEOUT": "how many seconds the processes of a mesh wait for each other: docs/many_chips.md",
    "TT_TORCH_CI_LIMITED": "CI sets it, so that its time limit is set once",
    "TT_TORCH_MUTATION_MAP": "the folder into which the tests of mutation write which lines they run",
}


class UnknownVariableWarning(UserWarning):
    """An environment variable `TT_TORCH_...` is set, but nothing reads it; the message has the nearest known name."""


def unknown(environ: Mapping[str, str], options: Iterable[str]) -> dict[str, str]:
    """The variables that are set and that nothing reads, each with a question about the nearest known name.

    `options` are the variables of options. An empty variable counts as not set.
    """
    known = {*options, *OTHERS}
    given = sorted(name for name, text in environ.items() if name.startswith(PREFIX) and text)
    return {name: nearest(name, known, PREFIX) for name in given if name not in known}


def tell_unknown(options: Iterable[str]) -> None:
    """Warns once per process of the unknown variables, all in one warning."""
    if found := unknown(os.environ, options):
        names = ", ".join(f"{name}{question}" for name, question in found.items())
        message = f"no variable of these names is read: {names}"
        user_code.warn_once("unknown variables", UnknownVariableWarning(message))

"""Names of tt-torch, at tt-torch's module paths, for programs that were written for it: docs/coming_from.md.

The folder `dynamo` here has modules of `tt_torch.dynamo`, and the folder `tools` has modules of `tt_torch.tools`. Each
of these two packages has the folder with its name in its `__path__`. So the module `tt_torch.dynamo.executor` is the
file `tt_torch/compat/dynamo/executor.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from tt_torch.errors import NoCounterpartError


def refused(name: str, instead: str) -> Callable[..., NoReturn]:
    """A stand-in for a function or class of tt-torch that has no counterpart. Calling it raises NoCounterpartError.

    `instead` is a sentence about what to do.
    """

    def refuse(*arguments: object, **named: object) -> NoReturn:
        raise NoCounterpartError(name, instead)

    return refuse

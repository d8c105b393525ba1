"""Other packages offer functions to the driver, as entry points of one group. This module finds them, and imports no
compiler."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from tt_torch.errors import EnvironmentMissingError

GROUP = "tt_torch.observers"


def offered(name: str) -> Callable[..., Any]:
    """The function behind an entry point. Raises EnvironmentMissingError if no installed package offers it."""
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise EnvironmentMissingError(
            f"no installed package has the entry point {name!r} of the group {GROUP!r}: install tt-torch again"
        )
    function: Callable[..., Any] = next(iter(found)).load()
    return function

"""Room on Python's own stack for work that makes many short calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Frames of Python 3.11 to 3.13 lie in chunks of memory. A chunk has 16 KiB, or the next power of two that holds the
# frame for which it is made and 1,000 words (`push_chunk` in CPython's Python/pystate.c). A frame of 512 KiB gets a
# chunk of 1 MiB, so nearly 512 KiB are left for the frames of the functions that it calls.
_WORDS = 512 * 1024 // 8


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with room on Python's stack for about a thousand frames of the functions that it calls.

    A call whose frame does not fit in the current chunk maps a new chunk, and its return unmaps it. If a loop is near
    the end of a chunk, each of its calls does so: short calls take ten times as long. How near the loop is depends on
    the functions of the user that lead to it. The memory of a large frame is not touched, so it costs nothing.
    """

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        return function(*args, **kwargs)

    call.__code__ = call.__code__.replace(co_stacksize=_WORDS)

    @functools.wraps(function)
    def roomy(*args: P.args, **kwargs: P.kwargs) -> R:
        return call(args, kwargs)

    return roomy

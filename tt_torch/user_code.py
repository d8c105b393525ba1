"""The line of the user's code that is running now. Warnings point at it."""

from __future__ import annotations

import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).parent)
_TORCH = str(Path(find_spec("torch").origin).parent)  # type: ignore[union-attr, arg-type]
_LIBRARY = sysconfig.get_paths()["stdlib"]  # a virtual environment has packages below it, but no library
_COMMAND = str(Path(sysconfig.get_path("scripts"), "tt-torch"))  # pip makes it, and it calls typer, which calls us
_TYPER = str(Path(find_spec("typer").origin).parent)  # type: ignore[union-attr, arg-type]


_hearing: list[list[Warning]] = []  # the lists of `told`
_once: set[str] = set()  # the subjects of which this process has been warned


@contextmanager
def told() -> Iterator[list[Warning]]:
    """A list of the messages of `warn` in this context, also of the messages that a filter hides."""
    heard: list[Warning] = []
    _hearing.append(heard)
    try:
        yield heard
    finally:
        _hearing[:] = [other for other in _hearing if other is not heard]


def warn(message: Warning, location: str = "") -> None:
    """Warns at `location` if it is a line of the form `file.py:12`, or else at the user's line that is running.

    The line of this package or of PyTorch that calls this function does not matter.
    """
    for heard in _hearing:
        heard.append(message)
    frame = _innermost()
    if re.search(r":\d+$", location):
        warn_at(location, message)
    elif frame is None:
        warnings.warn(message, stacklevel=2)
    else:
        # As `warnings.warn` does, so that each line is told once.
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        module = frame.f_globals.get("__name__", "<unknown>")
        warnings.warn_explicit(message, type(message), frame.f_code.co_filename, frame.f_lineno, module, registry)


def warn_once(subject: str, message: Warning) -> None:
    """Warns at the user's line, once per subject and process."""
    if subject not in _once:
        _once.add(subject)
        warn(message)


def warn_at(location: str, message: Warning) -> None:
    """Warns at a line of the form `file.py:12`."""
    file, _, number = location.rpartition(":")
    warnings.warn_explicit(message, type(message), file, int(number))


def line() -> str:
    """The user's line as `file.py:12`, or an empty string where no code of a user is running."""
    frame = _innermost()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def innermost(files: Sequence[str]) -> int | None:
    """The position of the user's line in a stack. The files of the stack's lines are given, the innermost one last.

    It is the innermost line outside of installed packages. If there is none, it is the innermost line outside of
    PyTorch, this package and Python's library. The position is None if there is no such line either.
    """
    foreign = [i for i, file in enumerate(files) if _is_foreign(file)]
    own = [i for i in foreign if not is_installed(files[i])]
    return max(own or foreign, default=None)


def is_installed(file: str) -> bool:
    """Whether a file is part of an installed package."""
    return "/site-packages/" in file


def is_pytorchs_or_ours(file: str) -> bool:
    """Whether a file is part of PyTorch or of this package."""
    return any(file.startswith(f"{folder}/") for folder in (_OURS, _TORCH))


def _innermost() -> FrameType | None:
    """The frame of the user's line that is running now."""
    frames = [frame for frame in _frames() if not _is_made(frame)][::-1]
    position = innermost([frame.f_code.co_filename for frame in frames])
    return None if position is None else frames[position]


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame:
        yield frame
        frame = frame.f_back


def _is_made(frame: FrameType) -> bool:
    """Whether a library has made this code from a string, as PyTorch does while it traces. `python -c` gives the
    user's code the same file name, and runs it as `__main__`."""
    return frame.f_code.co_filename == "<string>" and frame.f_globals.get("__name__") != "__main__"


def _is_foreign(file: str) -> bool:
    """Whether a file belongs neither to this package and its command, nor to PyTorch, nor to Python's library."""
    of_library = file.startswith(f"{_LIBRARY}/") and not is_installed(file)
    of_command = file == _COMMAND or file.startswith(f"{_TYPER}/")
    return not (is_pytorchs_or_ours(file) or of_library or of_command or file.startswith("<frozen "))

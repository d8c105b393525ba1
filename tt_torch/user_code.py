"""The line of the user's code that is running now: what warnings point at."""

from __future__ import annotations

import sys
import sysconfig
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).parent)
_TORCH = str(Path(find_spec("torch").origin).parent)  # type: ignore[union-attr, arg-type]
_LIBRARY = sysconfig.get_paths()["stdlib"]  # a virtual environment has packages below it, but no library


def warn(message: Warning) -> None:
    """Warns at the user's line, wherever in this package or in PyTorch that was found out."""
    frame = _innermost()
    if frame is None:
        warnings.warn(message, stacklevel=2)
        return
    # As `warnings.warn` does, so that each line is told once.
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<unknown>")
    warnings.warn_explicit(message, type(message), frame.f_code.co_filename, frame.f_lineno, module, registry)


def line() -> str:
    """The user's line as `file.py:12`, or an empty string where no code of a user is running."""
    frame = _innermost()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _innermost() -> FrameType | None:
    """The innermost frame outside of installed packages; if there is none, outside of PyTorch and this package."""
    frames = [frame for frame in _frames() if _is_foreign(frame.f_code.co_filename)]
    own = [frame for frame in frames if "/site-packages/" not in frame.f_code.co_filename]
    return next(iter(own or frames), None)


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame:
        yield frame
        frame = frame.f_back


def _is_foreign(file: str) -> bool:
    """Whether a file is neither this package's, nor PyTorch's, nor of Python's library."""
    inside = any(file.startswith(f"{folder}/") for folder in (_OURS, _TORCH))
    of_library = file.startswith(f"{_LIBRARY}/") and "/site-packages/" not in file
    return not inside and not of_library and not file.startswith("<frozen ")

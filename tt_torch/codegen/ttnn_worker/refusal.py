"""Shortens the error messages of the `ttnn` package."""

from __future__ import annotations

import traceback


def refusal(error: BaseException) -> str:
    """The message of the library's check, at most 600 characters, without its source locations and backtrace."""
    text = str(error)
    if "info:\n" in text:
        text = text.partition("info:\n")[2]
    text = text.partition("\nbacktrace:")[0].strip()
    if "incompatible function arguments" in text:
        text = "incompatible function arguments; got" + text.rpartition("Invoked with types:")[2]
    return f"{type(error).__name__}: {' '.join(text.split())}"[:600]


def explanation(error: Exception) -> str:
    """The text of an error for the user: the library's refusal with the lines of the generated program.

    For an error in our own code it is the whole traceback.
    """
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("<program")]
    if lines or isinstance(error, RuntimeError):
        return "".join([refusal(error), *(f"\n  in {frame.name}: {frame.line}" for frame in lines)])
    return traceback.format_exc()

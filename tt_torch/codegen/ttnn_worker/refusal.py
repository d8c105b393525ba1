"""What the `ttnn` package has to say, in few lines."""

from __future__ import annotations

import traceback


def refusal(error: BaseException) -> str:
    """The words of the library's check, without places in its sources and without the backtrace."""
    text = str(error)
    if "info:\n" in text:
        text = text.partition("info:\n")[2]
    text = text.partition("\nbacktrace:")[0].strip()
    if "incompatible function arguments" in text:
        text = "incompatible function arguments; got" + text.rpartition("Invoked with types:")[2]
    return f"{type(error).__name__}: {' '.join(text.split())}"[:600]


def explanation(error: Exception) -> str:
    """For the user: a refusal and the line of the generated program, or, for errors of ours, the whole traceback."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("<program")]
    if lines or isinstance(error, RuntimeError):
        return "".join([refusal(error), *(f"\n  in {frame.name}: {frame.line}" for frame in lines)])
    return traceback.format_exc()

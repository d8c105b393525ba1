"""Ops of the user in a message: a `CpuOp` that names an op instead of a function of a library.

`func_name` is `tt_torch.kernel mylib::scaled.default {"arguments": ...}`: a prefix, the name of the op, and its
arguments as JSON (see extending/arguments.py). The runtime has the same prefix, in kernels/custom_op.cpp.
"""

from __future__ import annotations

import re

from tt_torch.wire.messages import Record

TABLE = "CpuOp"
PREFIX = "tt_torch.kernel"
MOST_RESULTS = 8  # of an op; the dialects have an op for each number of results
NO_LIBRARY = (1 << 32) - 1  # `dylib_id` of these ops, so that a runtime that does not know them finds no code
_TEXT = re.compile(rf"{re.escape(PREFIX)} ([A-Za-z0-9_:.]+) (.*)", re.DOTALL)


def text_of(op: str, arguments: str) -> str:
    """The `func_name` of an op with its arguments."""
    return f"{PREFIX} {op} {arguments}"


def parsed(text: str) -> tuple[str, str] | None:
    """The op and its arguments in a `func_name`; None if it is the name of a function."""
    found = _TEXT.fullmatch(text)
    return (found[1], found[2]) if found else None


def op_of(record: Record) -> str:
    """The name of the user's op in a table of a message; "" if it has none."""
    text = record.get("func_name")
    found = parsed(text) if isinstance(text, str) else None
    return found[0] if found else ""

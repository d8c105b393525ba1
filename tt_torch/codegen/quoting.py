"""Puts text of a file into the source of a generated program, as a literal, a comment or an identifier.

Generated programs are executed, and anybody can write a file. No other code puts text of a file into source.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Container

# Names that mean something in any program.
TAKEN = frozenset((*keyword.kwlist, *dir(builtins)))


def literal(text: str) -> str:
    """A string literal whose value is `text`, in double quotes if `text` is plain ASCII, as ruff writes it."""
    return f'"{text}"' if _is_plain(text) else ascii(text)


def docstring(text: str) -> str:
    """A literal that ruff accepts as the first line of a module."""
    return f'"""{text}"""' if _is_plain(text) else ascii(text)


def _is_plain(text: str) -> bool:
    return ascii(text) == f"'{text}'" and '"' not in text


def comment(text: str, most: int = 110) -> str:
    """One line for a comment, with at most `most` characters. Characters that are not printable become `?`."""
    return "".join(c if c.isprintable() else "?" for c in text)[:most]


def identifier(text: str) -> str:
    """An ASCII identifier that resembles `text`; "" for an empty text."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"_{name}" if name[:1].isdigit() else name


def unique(name: str, taken: Container[str]) -> str:
    """`name`, or `name` with the first number that makes it different from all names in `taken` and `TAKEN`."""
    found, count = name, 1
    while found in taken or found in TAKEN:
        found, count = f"{name}_v{count}", count + 1
    return found

"""Where a C++ file can be broken: patterns on its text, as clang-format lays it out. `places` has the same for Python.

Comments, strings, preprocessor lines and messages of errors are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tests.mutation.places import SYMMETRIC, Place, numbered

Change = tuple[str, int, int, str]  # kind, start and end in the text, new text

NO_CODE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'|^ *#(?:[^\n]*\\\n)*[^\n]*', re.MULTILINE)
NO_BREAK = re.compile(r"\b(?:static_assert|using|namespace|template|throw|damaged|invalid)\b[^;{]*")
EXCHANGED = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ",
    " || ": " && ", " + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " % ": " / ", " += ": " -= ",
    " -= ": " += ", "true": "false", "false": "true", "std::min": "std::max", "std::max": "std::min",
}  # fmt: skip
KINDS = {"<": "comparison", ">": "comparison", "=": "comparison", "!": "comparison", "&": "connective",
         "|": "connective", "t": "number", "f": "number", "s": "call"}  # fmt: skip
SIGN = re.compile("|".join(rf"(?<![\w:]){k}\b" if k[0] != " " else re.escape(k) for k in EXCHANGED))
NUMBER = re.compile(r"(?<![\w.'])\d+(?:\.\d+)?(?![\w.'])")
CONDITION = re.compile(r"\b(?:if|while) (?=\()|= (?=[^=?;(]+ \? )")
ENTRY = re.compile(r'\{"\w*", ')
CASE = re.compile(r"^ *case [\w:]+:\n *return (?P<value>[^;\n]+);\n", re.MULTILINE)
OPERANDS = re.compile(r"\b(?P<name>\w+)\((?P<first>[a-z][\w.]*(?:\[\w+\])?), (?P<second>[a-z][\w.]*(?:\[\w+\])?)[,)]")
STATEMENT = re.compile(
    r"(?<=[;{})])\n +(?:else\n +)?(?P<text>throw\b|continue;|(?:\+\+|--)[\w.>\[\]-]+;"
    r"|\w[\w.:>\[\]-]* (?:[-+*/&|]?)= |(?!(?:return|case|default)\b)\w[\w.:>\[\]-]*\()"
)
FUNCTION = re.compile(r"^(?!namespace|using|constexpr|//|#|\s)[^\n(=]*?\b(?P<name>[\w:~]+)\(", re.MULTILINE)


def places_in(path: str, source: bytes) -> list[Place]:
    """Every place of a file. Its text must be ASCII, so that a position in the text is also that of a byte."""
    text = source.decode("ascii")
    functions = [(found.start(), found["name"]) for found in FUNCTION.finditer(text)]

    def place(kind: str, start: int, end: int, after: str) -> Place:
        scope = next((name for at, name in reversed(functions) if at <= start), "")
        line = text.count("\n", 0, start) + 1
        return Place(path, kind, scope, line, (line,), start, end, text[start:end], after)

    return list(numbered(place(*change) for change in changes(text) if text[change[1] : change[2]] != change[3]))


def changes(text: str) -> Iterator[Change]:
    code = NO_CODE.sub(blank, text)
    yield from statements(code)
    code = NO_BREAK.sub(blank, code)
    yield from signs(code)
    yield from conditions(text, code)
    yield from operands(code)
    yield from rows(text, code)


def blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def signs(code: str) -> Iterator[Change]:
    for found in SIGN.finditer(code):
        yield KINDS.get(found[0].strip()[0], "arithmetic"), *found.span(), EXCHANGED[found[0]]
    for found in NUMBER.finditer(code):
        number = float(found[0]) * 2 or 1.0 if "." in found[0] else int(found[0]) + 1
        yield "number", *found.span(), str(number)


def conditions(text: str, code: str) -> Iterator[Change]:
    """Negates the conditions of `if`, `while` and `?`."""
    for found in CONDITION.finditer(code):
        start = found.end()
        end = closing(code, start) if code[start] == "(" else code.index(" ? ", start)
        if ";" not in code[start:end]:  # otherwise, the condition declares something
            asked = text[start:end] if code[start] == "(" else f"({text[start:end]})"
            yield "condition", start, end, f"(!{asked})"


def operands(code: str) -> Iterator[Change]:
    """The first two operands of a call change places."""
    for found in OPERANDS.finditer(code):
        if found["name"] not in SYMMETRIC | {"infer_size", "__builtin_mul_overflow"}:
            yield "call", found.start("first"), found.end("second"), f"{found['second']}, {found['first']}"


def statements(code: str) -> Iterator[Change]:
    """A call, an assignment, an error that is thrown or a `continue` is left out."""
    for found in STATEMENT.finditer(code):
        start = found.start("text")
        end = statement_end(code, start)
        if end and not re.search(r"\breserve\(", code[start:end]):
            yield "statement", start, end, ";"


def rows(text: str, code: str) -> Iterator[Change]:
    """A row of a table by name is left out, or its value changes places with the next one's. The results of two
    neighbouring cases of a `switch` change places, too."""
    entries = [(found.start(), found.end(), closing(code, found.start())) for found in ENTRY.finditer(text)]
    spans = [(start, value, end - 1) for start, value, end in entries if is_pair(code[value : end - 1])]
    for start, _, end in spans:
        yield "row", start, end + (2 if text[end + 1] == "," else 1), ""
    pairs = [(a[1:], b[1:]) for a, b in pairwise(spans) if not text[a[2] + 1 : b[0]].strip(", \n")]
    cases = list(CASE.finditer(code))
    pairs += [(a.span("value"), b.span("value")) for a, b in pairwise(cases) if a.end() == b.start()]
    for first, second in pairs:
        between = text[first[1] : second[0]]
        yield "row", first[0], second[1], f"{text[slice(*second)]}{between}{text[slice(*first)]}"


def is_pair(value: str) -> bool:
    """Whether the text after the name in a row is one value. In a list of names it has several."""
    depth = 0
    for character in value:
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and character == ",":
            return False
    return True


def closing(code: str, start: int) -> int:
    """The position after the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at + 1
    raise ValueError(f"a bracket is never closed: {code[start : start + 40]}")


def statement_end(code: str, start: int) -> int | None:
    """The position after the semicolon that ends the statement at `start`; None when none starts there."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth < 0:
            return None
        if depth == 0 and code[at] == ";":
            return at + 1
    return None

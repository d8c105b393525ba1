"""Places where a C++ file can be broken, found by a few patterns on the text of its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.mutation.places import Place

SILENT = re.compile(r"\s*(//|#|static_assert|using |namespace |template|throw |constexpr int64_t k\w+ = )")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
EXCHANGED = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ",
    " || ": " && ", " + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " % ": " / ", "true": "false",
    "false": "true",
}  # fmt: skip
SIGN = re.compile("|".join(rf"\b{k}\b" if k.isalpha() else re.escape(k) for k in EXCHANGED))
NUMBER = re.compile(r"(?<![\w.'-])\d+(?![\w.'])")
CONDITION = re.compile(r"\bif (\(.*)|= ([^=?;]+) \? ")
ENTRY = re.compile(r'\{(?:"\w+"|[\w:]+), (?P<value>[^{}]*(?:\{[^{}]*\})?[^{}]*)\}')
REFUSAL = re.compile(r"^\s*(?P<call>op\.require\(.*\);)$")
FUNCTION = re.compile(r"^(?!namespace|using|//|#|\s)[\w:<>*& ]+?\b(?P<name>\w+)\(")


def places_in(path: str, source: bytes) -> Iterator[Place]:
    offset, scope = 0, ""
    lines = source.decode().split("\n")
    for number, line in enumerate(lines, 1):
        if found := FUNCTION.match(line):
            scope = found["name"]
        if not SILENT.match(line):
            for kind, start, end, after in breaks(line):
                yield _place(path, kind, scope, number, offset, line, (start, end), after)
            following = lines[number] if number < len(lines) else ""
            if exchanged := exchanged_entries(line, following):
                at = (0, len(line) + 1 + len(following))
                yield _place(path, "row", scope, number, offset, f"{line}\n{following}", at, exchanged)
        offset += len(line.encode()) + 1


def _place(
    path: str, kind: str, scope: str, number: int, offset: int, text: str, at: tuple[int, int], after: str
) -> Place:
    start, end = (offset + len(text[:i].encode()) for i in at)
    return Place(path, kind, scope, number, (number,), start, end, text[at[0] : at[1]], after)


def breaks(line: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields the kind, start, end and new text of each way to break a line."""
    code = STRING.sub(lambda text: " " * len(text[0]), line).split("//")[0]
    for found in SIGN.finditer(code):
        kind = "comparison" if found[0][1] in "<>=!" else "arithmetic" if found[0][1] in "+-*/%" else "connective"
        yield kind, *found.span(), EXCHANGED[found[0]]
    for found in NUMBER.finditer(code):
        yield "number", *found.span(), str(int(found[0]) + 1)
    if (found := CONDITION.search(code)) and (test := balanced(found[1]) if found[1] else found[2]):
        start = found.start(1 if found[1] else 2)
        yield "condition", start, start + len(test), f"(!({line[start : start + len(test)]}))"
    if found := REFUSAL.match(line):
        yield "statement", *found.span("call"), ";"


def balanced(text: str) -> str:
    """The beginning of a text, up to the bracket that closes its first one. It is empty if that is on another line."""
    depth = 0
    for i, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return text[: i + 1]
    return ""


def exchanged_entries(line: str, following: str) -> str | None:
    """Two rows of a table with their values exchanged, or None if the lines are no such rows."""
    first, second = ENTRY.search(line), ENTRY.search(following)
    if not first or not second or first["value"] == second["value"]:
        return None
    swap = [(line, first, second["value"]), (following, second, first["value"])]
    return "\n".join(text[: m.start("value")] + value + text[m.end("value") :] for text, m, value in swap)

"""Places where the package can be broken: `places_in` reads a Python file and returns one `Place` per way to break it.

A place replaces one piece of the source by another. It breaks what the code does; messages, annotations, assertions,
docstrings and caches are left alone.
"""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

SILENT_FUNCTIONS = {"__repr__", "__str__"}
SILENT_CALLS = {"print", "warn", "debug", "info", "warning", "TypeVar", "NewType", "getLogger", "cast"}
SILENT_DECORATORS = {"cache", "lru_cache", "cached_property", "dataclass", "wraps", "property", "staticmethod"}
SILENT_DECORATORS |= {"contextmanager", "overload", "classmethod", "emitted_once"}
SENTENCE = {"the", "is", "of", "it", "its", "to", "have", "incompatible"}  # words of messages, in strings of names
SILENT_NAMES = {"__all__", "TYPE_CHECKING", "__slots__"}
SILENT_KEYWORDS = {"strict", "stacklevel", "help"}  # they have an effect only after another error, or are messages
# An exchange of operands does not break these calls, or it breaks all of them, so that every test notices.
SYMMETRIC = {"add", "mul", "multiply", "maximum", "minimum", "max", "min", "eq", "ne", "logical_and", "logical_or"}
SYMMETRIC |= {"hypot", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "isclose", "hull", "zip"}
SYMMETRIC |= {"isinstance", "getattr", "hasattr", "setattr"}
SYMMETRIC |= {"RULES", "rule", "decomposes", "register"}  # they register something for each operand

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any"}
CONTEXT = {"a", "b", "p", "op", "of", "self", "node", "module", "config", "context", "builder", "cls", "graph"}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip


KEY = ("path", "kind", "scope", "before", "after", "nth")  # these fields identify a place in later versions, too


@dataclass(frozen=True)
class Place:
    """The text `before`, from byte `start` to byte `end` of the file `path`, becomes `after`.

    `lines` are the lines that run the broken code: a test that runs none of them cannot notice the break. `scope` is
    the function, with its class. It is empty for code that runs at import. `nth` counts equal changes of one scope.
    """

    path: str
    kind: str
    scope: str
    line: int
    lines: tuple[int, ...]
    start: int
    end: int
    before: str
    after: str
    nth: int = 0

    @property
    def key(self) -> tuple[str | int, ...]:
        return tuple(getattr(self, field) for field in KEY)

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {_short(self.before)} -> {_short(self.after)}"


def numbered(places: Iterable[Place]) -> Iterator[Place]:
    """The places of a file, each with a key of its own."""
    seen = Counter[tuple]()
    for place in places:
        yield replace(place, nth=seen[place.key])
        seen[place.key] += 1


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 70 else f"{text[:34]} … {text[-34:]}"


# --- ways to break a node: each yields pairs of an old node and its replacement -------------------


def changed(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def without(items: list, index: int) -> list:
    return items[:index] + items[index + 1 :]


def conditions(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    tests = (
        [node.test] if isinstance(node, ast.If | ast.IfExp) else node.ifs if isinstance(node, ast.comprehension) else []
    )
    for test in tests:
        negated = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
        yield test, negated or ast.UnaryOp(ast.Not(), test)


def comparisons(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield node, changed(node, ops=[*node.ops[:i], COMPARISONS[type(op)](), *node.ops[i + 1 :]])


def connectives(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """`a and b` becomes `a or b`, and each part is left out."""
    if isinstance(node, ast.BoolOp):
        yield node, changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for i in range(len(node.values)):
            rest = without(node.values, i)
            yield node, changed(node, values=rest) if len(rest) > 1 else rest[0]


def numbers(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield node, ast.Constant(node.value * 2 or 1.0)


def arithmetic(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _joins_text(node):
        yield node, changed(node, op=ARITHMETIC[type(node.op)]())
        if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
            yield node, changed(node, left=node.right, right=node.left)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield node, node.operand


def _joins_text(node: ast.BinOp) -> bool:
    return any(isinstance(n, ast.JoinedStr) or isinstance(getattr(n, "value", 0), str) for n in ast.walk(node))


def calls(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The first two operands are exchanged; `min` becomes `max`, `any` becomes `all`, and vice versa."""
    if not isinstance(node, ast.Call):
        return
    name = called(node)
    if isinstance(node.func, ast.Name) and name in OPPOSITE:
        yield node, changed(node, func=ast.Name(OPPOSITE[name]))
    if len(node.args) >= 2 and name not in SYMMETRIC:
        first, second, *rest = node.args
        alike = all(isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) not in CONTEXT for n in (first, second))
        if alike and ast.dump(first) != ast.dump(second):
            yield node, changed(node, args=[second, first, *rest])


def keywords(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.Call):
        for i, keyword in enumerate(node.keywords):
            if keyword.arg and keyword.arg not in SILENT_KEYWORDS:
                yield node, changed(node, keywords=without(node.keywords, i))


def results(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield node, ast.Return(ast.Constant(None))


def statements(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """A statement with an effect is left out, such as a `raise`, a call, or an assignment to an element."""
    stored = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Attribute)
    acting = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) not in SILENT_CALLS
    if stored or acting or isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Delete):
        yield node, ast.Pass()


def rows(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """An entry of a dict is left out, or exchanged with the next one.

    An entry of a collection in a test with `in` is left out, and so is a name in a string of names.
    """
    if isinstance(node, ast.Dict) and len(node.keys) > 1:
        for i in range(len(node.keys)):
            yield node, changed(node, keys=without(node.keys, i), values=without(node.values, i))
        for i, (a, b) in enumerate(zip(node.values, node.values[1:], strict=False)):
            if node.keys[i] and node.keys[i + 1] and ast.dump(a) != ast.dump(b):
                yield node, changed(node, values=[*node.values[:i], b, a, *node.values[i + 2 :]])
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield from entries(node.comparators[0])
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        names = node.value.split()
        if len(names) > 1 and not SENTENCE & set(names) and all(re.fullmatch(r"[a-z_][\w.]*", n) for n in names):
            yield from ((node, ast.Constant(" ".join(without(names, i)))) for i in range(len(names)))


def entries(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each entry of a list, tuple or set is left out."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) > 1:
        yield from ((node, changed(node, elts=without(node.elts, i))) for i in range(len(node.elts)))


WAYS: dict[str, Callable[[ast.AST], Iterator[tuple[ast.AST, ast.AST]]]] = {
    "condition": conditions,
    "comparison": comparisons,
    "connective": connectives,
    "number": numbers,
    "arithmetic": arithmetic,
    "call": calls,
    "keyword": keywords,
    "result": results,
    "statement": statements,
    "row": rows,
}


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


# --- reading a file -------------------------------------------------------------------------------


class Reader(ast.NodeVisitor):
    """Walks a file and collects its places."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source, self.places = path, source, list[Place]()
        self.scope: list[str] = []
        self.body: tuple[int, ...] = ()  # lines of the innermost function
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self.line_starts = starts

    def offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def add(self, kind: str, node: ast.AST, after: str, lines: tuple[int, ...] | None = None) -> None:
        start = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        own = tuple(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]
        before = self.source[start:end].decode()
        scope = ".".join(self.scope)
        self.places.append(Place(self.path, kind, scope, own[0], lines or own, start, end, before, after))

    def visit(self, node: ast.AST) -> None:
        if silent(node):
            return
        for kind, way in WAYS.items():
            self.break_by(kind, way(node))
        if not self.scope and isinstance(node, ast.Assign | ast.AugAssign | ast.keyword) and node.value:
            self.break_by("row", entries(node.value))
        self.visit_children(node)

    def break_by(self, kind: str, ways: Iterator[tuple[ast.AST, ast.AST]]) -> None:
        for old, new in ways:
            text = ast.unparse(ast.fix_missing_locations(new))
            self.add(kind, old, f"({text})" if isinstance(old, ast.expr) else text)

    def visit_children(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.visit_definition(node)
        elif isinstance(node, ast.AnnAssign):
            if node.value:
                self.visit(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            pass  # a docstring
        else:
            self.generic_visit(node)

    def visit_definition(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        outside = self.body
        lines = tuple(range(node.body[0].lineno, node.body[-1].end_lineno + 1))  # type: ignore[operator]
        for decorator in node.decorator_list:
            if not any(name in SILENT_DECORATORS for name in re.findall(r"\w+", ast.unparse(decorator))):
                at = copy.copy(decorator)
                at.col_offset -= 1
                self.add("decorator", at, "", lines)
                self.visit(decorator)
        self.scope.append(node.name)
        if isinstance(node, ast.FunctionDef):
            self.body = lines
            for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()
        self.body = outside


def silent(node: ast.AST) -> bool:
    """Whether a node has no effect that a test could notice."""
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name in SILENT_FUNCTIONS
    if isinstance(node, ast.keyword):
        return node.arg in SILENT_KEYWORDS
    if isinstance(node, ast.Call):
        return called(node) in SILENT_CALLS
    if isinstance(node, ast.Assign):
        is_type = isinstance(node.value, ast.Subscript) and called_type(node.value)
        return is_type or any(isinstance(t, ast.Name) and t.id in SILENT_NAMES for t in node.targets)
    return isinstance(node, ast.If) and any(getattr(n, "id", "") in SILENT_NAMES for n in ast.walk(node.test))


def called_type(node: ast.Subscript) -> bool:
    return ast.unparse(node.value) in ("Callable", "tuple", "dict", "list", "type", "Literal", "Annotated")


class Refusals(ast.NodeTransformer):
    """Leaves out the exception of each `raise`, since its arguments are the message."""

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        return ast.copy_location(ast.Raise(), node)


def places_in(path: str, source: bytes) -> list[Place]:
    reader = Reader(path, source)
    reader.visit(Refusals().visit(ast.parse(source)))
    return list(numbered(reader.places))

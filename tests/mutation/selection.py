"""Selects the tests that can notice a break: those that run the broken lines, as `recorder` found, nearest first."""

from __future__ import annotations

import ast
import difflib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import coverage

from tests.mutation.places import Place

IR_TESTS = "tests/ir/test_lit.py"
COMMON = {"aten", "default", "tensor", "torch", "ttir", "ttnn", "stablehlo", "return", "self", "test", "none", "not"}


class Recording:
    """The result of one run of `recorder`: the tests that ran each line, and the sources at that time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}
        for file in folder.glob("seconds.*.json"):
            self.seconds |= json.loads(file.read_text())
        recorded = coverage.Coverage(data_file=folder / "all", config_file=False, messages=False)
        recorded.combine([str(file) for file in folder.glob("lines.*")], keep=True)
        data = recorded.get_data()
        self.lines: dict[str, dict[int, set[str]]] = {}
        for file in data.measured_files():
            path = file[file.rindex("tt_torch/") if "/tt_torch/" not in file else file.index("/tt_torch/") + 1 :]
            self.lines[path] = {line: set(tests) for line, tests in data.contexts_by_lineno(file).items()}
        self.sources = {path: (folder / "sources" / path).read_text() for path in self.lines}

    def running(self, place: Place, source: str) -> set[str]:
        """Tests that run the lines of a place in today's `source`. If there are none, tests of functions that the
        place names, or tests that use its module. If the module was not recorded, tests in the folder of its part."""
        if place.path not in self.lines:
            return {test for test in self.seconds if test.startswith(f"tests/{place.path.split('/')[1]}/")}
        lines = moved(place.lines, source, self.sources[place.path])
        found = self._of(place.path, lines)
        if found - {""}:
            return found
        named = set(re.findall(r"\w+", place.before))
        for function in ast.walk(ast.parse(self.sources[place.path])):
            if isinstance(function, ast.FunctionDef) and function.name in named:
                found |= self._of(place.path, range(function.body[0].lineno, (function.end_lineno or 0) + 1))
        return found if found - {""} else self._using(place.path)

    def _of(self, path: str, lines: Iterable[int]) -> set[str]:
        return set().union(*(self.lines[path].get(line, set()) for line in lines))

    def _using(self, path: str) -> set[str]:
        """Tests that run any line of a module, or of a module that imports it."""
        module = path.removesuffix(".py").removesuffix("/__init__").rsplit("/", 1)[-1]
        users = [other for other, text in self.sources.items() if other == path or imports(text, module)]
        return set().union(*chain.from_iterable(self.lines[user].values() for user in users))


def moved(lines: Iterable[int], source: str, earlier: str) -> list[int]:
    """The lines of the earlier source that correspond to lines of `source`. New lines correspond to replaced ones."""
    blocks = difflib.SequenceMatcher(None, earlier.splitlines(), source.splitlines(), autojunk=False).get_opcodes()
    spans = [
        range(i1 + 1, i2 + 1) if tag != "equal" else [line - j1 + i1]
        for line in lines
        for tag, i1, i2, j1, j2 in blocks
        if j1 < line <= j2
    ]
    return list(chain.from_iterable(spans))


class Map:
    """All recordings together, without tests that are not in `existing`. If a file of tests was recorded again, the
    last recording counts."""

    def __init__(self, folder: Path, root: Path, existing: set[str]) -> None:
        self.root = root
        self.recordings = [Recording(one) for one in sorted(folder.iterdir())]
        files = {test.split("::")[0]: one for one in self.recordings for test in one.seconds}
        recorded = ((test, one) for one in self.recordings for test in one.seconds if test in existing)
        self.last = {test: one for test, one in recorded if files[test.split("::")[0]] is one}
        self.seconds = {test: one.seconds[test] for test, one in self.last.items()}
        self.breadth: dict[str, int] = defaultdict(int)
        for recording in self.recordings:
            for tests in chain.from_iterable(lines.values() for lines in recording.lines.values()):
                for test in tests:
                    self.breadth[test] += 1

    def running(self, place: Place) -> set[str]:
        source = (self.root / place.path).read_text()
        found = ((one, one.running(place, source)) for one in self.recordings)
        return {test for one, tests in found for test in tests if self.last.get(test) is one}

    def choose(self, place: Place, seconds: float) -> list[str]:
        """Tests of `place` that take at most `seconds` together, in the order in which to run them.

        Tests come first if their file imports the broken module or has its name. For a module that handles IR, the IR
        tests come first, too. In both groups, the test files take turns. In each file, tests whose names have words of
        the place come first. Then come tests that run few other lines.
        """
        words = words_of(place)
        by_file: dict[str, list[str]] = defaultdict(list)
        for test in self.running(place):
            by_file[test.split("::")[0]].append(test)
        for tests in by_file.values():
            tests.sort(key=lambda test: (-near(test, words), self.breadth[test]))
        direct = {file for file in by_file if self._is_about(file, place.path)}
        turns = chain.from_iterable(
            sorted(filter(None, turn), key=lambda test: (-near(test, words), self.seconds[test]))
            for files in (direct, by_file.keys() - direct)
            for turn in zip_longest(*(by_file[file] for file in sorted(files)))
        )
        chosen, left = [], seconds
        for test in turns:
            if self.seconds[test] <= left:
                chosen.append(test)
                left -= self.seconds[test]
        return chosen

    def _is_about(self, file: str, path: str) -> bool:
        if file == IR_TESTS and path.startswith("tt_torch/mlir/"):
            return True
        return Path(file).stem == f"test_{Path(path).stem}" or names_module((self.root / file).read_text(), path)


def words_of(place: Place) -> set[str]:
    """The names in a place, the names of its file and folder, and the parts of all these names."""
    file = Path(place.path)
    text = f"{file.parent.name} {file.stem} {place.scope} {place.before}".lower()
    return {w for pattern in (r"[a-z]\w+", r"[a-z0-9]+") for w in re.findall(pattern, text) if len(w) > 2} - COMMON


def imports(text: str, module: str) -> bool:
    return re.search(rf"^(from|import) .*\b{module}\b", text, re.MULTILINE) is not None


def names_module(text: str, path: str) -> bool:
    """Whether a text imports the module of a path, a package around it such as `tt_torch.driver.x`, or from these."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return any(_imports_from(text, parts[:count]) for count in range(min(3, len(parts)), len(parts) + 1))


def _imports_from(text: str, parts: Sequence[str]) -> bool:
    package, module = re.escape(".".join(parts[:-1])), parts[-1]
    named = rf"\b{package}\.{module}\b|^ *from {package} import .*\b{module}\b"
    return re.search(named, text, re.MULTILINE) is not None


def near(test: str, words: set[str]) -> int:
    name = test.lower()
    return sum(len(word) for word in words if word in name)

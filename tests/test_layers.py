"""The layers of docs/map.md: every import of the package points up in that list, and no imports form a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tt_torch"


def layers() -> dict[str, int]:
    """Maps each package or module of the list to the number of its line."""
    page = (ROOT / "docs" / "map.md").read_text()
    (rows,) = re.findall(r"<!-- layers -->(.*)<!-- layers end -->", page, re.DOTALL)
    found = {}
    for number, row in enumerate(re.findall(r"^\| (`tt_torch.*?) \|", rows, re.MULTILINE)):
        found |= dict.fromkeys(re.findall(r"`([\w.]+)`", row), number)
    return found


def modules() -> dict[str, Path]:
    paths = {path: path.relative_to(ROOT).with_suffix("") for path in PACKAGE.rglob("*.py")}
    return {".".join(p.parts).removesuffix(".__init__"): path for path, p in paths.items()}


MODULES = modules()
KNOWN = {*MODULES, "tt_torch.device._device", "tt_torch.runtime._runtime"}  # the last two are C++


def imported(source: str, package: str, known: set[str]) -> Iterator[tuple[str, int]]:
    """Yields each module of `known` that a file of `package` imports, at the top or in a function, and its line.

    A string counts as an import, too, if it names a module, or a function in a module such as "tt_torch.x:f". The name
    of a package around the file does not count, because it names a folder from which a data file is read.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            module = re.sub(r":\w+$", "", node.value)
            names = [module] if module in known and not f"{package}.".startswith(f"{module}.") else []
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            names = [".".join([*parents, *filter(None, [node.module]), alias.name]) for alias in node.names]
        else:
            continue
        for name in names:
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name:
                yield name, node.lineno


def wrong_arrows(name: str, source: str, known: set[str], order: dict[str, int]) -> list[str]:
    """Describes each import of the module `name` that points down."""
    return [
        f"{name}, line {line}, imports {target}"
        for target, line in imported(source, name.rpartition(".")[0], known)
        if layer(target, order) > layer(name, order)
    ]


def layer(module: str, order: dict[str, int]) -> int:
    """The line of the list that has the module's name, or else the name of the nearest package around it."""
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        if (name := ".".join(parts[:length])) in order:
            return order[name]
    assert module == "tt_torch", f"docs/map.md has no layer for {module}"
    return order["tt_torch"]


def test_every_import_points_up():
    order = layers()
    found = [
        w
        for name, path in MODULES.items()
        if name != "tt_torch"
        for w in wrong_arrows(name, path.read_text(), KNOWN, order)
    ]
    assert not found, "\n".join(found)


def test_a_level_of_ir_knows_nothing_of_the_next():
    """The steps of TTIR do not depend on how TTNN is written."""
    prefix = "tt_torch.mlir.ttir"
    found = {name: arrows(name, path.read_text()) for name, path in MODULES.items() if name.startswith(prefix)}
    assert len(found) > 30
    assert not {name: bad for name, to in found.items() if (bad := [t for t in to if "tt_torch.mlir.ttnn" in t])}


def arrows(name: str, source: str) -> set[str]:
    return {target for target, _ in imported(source, name.rpartition(".")[0], KNOWN)} - {name, "tt_torch"}


def test_no_module_imports_itself_through_others():
    graph = {name: arrows(name, path.read_text()) for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1][::-1]))


def test_the_list_has_no_name_without_a_module():
    assert set(layers()) <= set(MODULES)


def test_the_files_of_each_stage_are_in_its_folder():
    page = (ROOT / "docs" / "map.md").read_text()
    (rows,) = re.findall(r"## Stages and folders\n(.*?)\n## ", page, re.DOTALL)
    found = [
        (ROOT / folder / file, PACKAGE / file)
        for folder, cell in re.findall(r"^\| .*\| `(tt_torch/.*?)` \| (.*) \|$", rows, re.MULTILINE)
        for file in re.findall(r"`([\w/]+\.(?:py|cpp)|[\w/]+/)`", cell)
    ]
    assert len(found) > 25 and not [str(here) for here, other in found if not here.exists() and not other.exists()]


@pytest.mark.parametrize(
    "line",
    [
        "from tt_torch.high import x",
        "import tt_torch.high",
        "def f():\n    from tt_torch import high",
        "importlib.import_module('tt_torch.high')",
        "Item('tt_torch.high:x')",
    ],
)
def test_an_arrow_down_is_found(line: str):
    order = {"tt_torch": 0, "tt_torch.low": 1, "tt_torch.high": 2}
    assert wrong_arrows("tt_torch.low", line, {*order}, order)
    assert not wrong_arrows("tt_torch.high", line.replace("high", "low"), {*order}, order)

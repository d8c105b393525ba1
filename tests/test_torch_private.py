"""Private names of PyTorch are used in `tt_torch/torch_private/` only, each with the version in which it was read."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
DOOR = ROOT / "tt_torch" / "torch_private"
FILES = sorted(p for p in (ROOT / "tt_torch").rglob("*.py") if DOOR not in p.parents)

# Packages without an underscore that PyTorch does not promise to keep, and a package whose names are data, not API.
UNSTABLE, DATA = ("torch.fx.experimental", "functorch"), ("torch.ops",)
# Prefixes of attributes that Dynamo and AOTAutograd read from functions.
MARKS = ("_torchdynamo", "_dynamo", "_boxed")


def attributes() -> set[str]:
    """The private attributes of PyTorch objects that a program commonly meets."""
    graph = torch.fx.symbolic_trace(torch.nn.ReLU())
    x, op = torch.ones(1), torch.ops.aten.add.Tensor
    objects = (torch, x, x.untyped_storage(), op, op.overloadpacket, torch.ops.higher_order.cond, graph, graph.graph)
    objects += (next(iter(graph.graph.nodes)), torch.Generator(), torch.accelerator, torch.nn.functional, torch.optim)
    return {name for value in objects for name in dir(value) if is_private(name)}


def is_private(path: str) -> bool:
    """By PyTorch's rule, a path is private if a part of it begins with one underscore; `__name__` is not private."""
    if path.startswith(UNSTABLE):
        return True
    return not path.startswith(DATA) and any(p.startswith("_") and not p.startswith("__") for p in path.split("."))


class Names:
    """The private names of PyTorch that a file uses, and the places where it alters PyTorch."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.imported = dict(self._imports())

    def _imports(self) -> Iterator[tuple[str, str]]:
        """Yields the local name of each import from PyTorch, with its path."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                roots = [(a.asname, a.name) if a.asname else (a.name.partition(".")[0],) * 2 for a in node.names]
                yield from ((local, path) for local, path in roots if self._of_torch(path))
            elif isinstance(node, ast.ImportFrom) and node.module and self._of_torch(node.module):
                yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)

    @staticmethod
    def _of_torch(module: str) -> bool:
        return module.partition(".")[0] in ("torch", "functorch", "torchgen")

    def path(self, node: ast.AST) -> str:
        """The path `torch.x.y` of an expression, or "" if it is not known to be PyTorch's."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        inner = self.path(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{inner}.{node.attr}" if inner else ""

    def found(self, known: set[str]) -> Iterator[tuple[int, str]]:
        """Yields each use of a private name: its line, and the name."""
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                module = getattr(node, "module", None)
                paths = [f"{module}.{a.name}" if module else a.name for a in node.names]
                yield from ((node.lineno, p) for p in paths if self._of_torch(p) and is_private(p))
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node, known)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr"):
                name = node.args[1].values[0] if isinstance(node.args[1], ast.JoinedStr) else node.args[1]
                value = str(getattr(name, "value", ""))
                if is_private(value) and (value in known or isinstance(node.args[1], ast.JoinedStr)):
                    yield node.lineno, ast.unparse(node)

    def _attribute(self, node: ast.Attribute, known: set[str]) -> Iterator[tuple[int, str]]:
        path = self.path(node)
        if path and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.lineno, f"{path} is altered"
        if path:
            root = next(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            if is_private(path) and not is_private(self.imported[root]):  # a private import is reported at the import
                yield node.lineno, path
        elif node.attr in known or node.attr.startswith(MARKS):
            owner = ast.unparse(node.value)
            if owner not in ("self", "cls", "aten", "torch.ops.aten"):
                yield node.lineno, f"{owner}.{node.attr}"


KNOWN = attributes()


def test_private_names_are_behind_the_door() -> None:
    found = [
        f"{path.relative_to(ROOT)}, line {line}: {name}"
        for path in FILES
        for line, name in Names(path.read_text()).found(KNOWN)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "import torch._dynamo",
        "import torch._guards as g",
        "from torch._guards import tracing",
        "from torch import _guards",
        "from torch.utils import _pytree as trees",
        "from torch.fx.experimental.proxy_tensor import make_fx",
        "def f():\n    from functorch.compile import aot_function",
        "import torch\nprint(torch._C._get_mkldnn_enabled())",
        "import torch.nn.functional as F\nF._verify_batch_size",
        "from torch import fx\nfx._symbolic_trace",
        "x.target._schema",
        "parameter._version",
        "x.untyped_storage()._cdata",
        "getattr(x, '_version')",
        "getattr(module, f'_fused_{name}')",
        "def f(): pass\nf._boxed_call = True",
        "f._torchdynamo_disable = True",
        "import torch\ntorch.jit.trace = None",
        "from torch.testing import assert_close\ndel assert_close.name",
    ],
)
def test_a_private_name_is_found(line: str) -> None:
    assert list(Names(line).found(KNOWN))


@pytest.mark.parametrize(
    "line",
    [
        "import torch\ntorch.ops.aten._to_copy.default",
        "aten._to_copy.default",
        "from torch.fx.node import map_arg",
        "self._version",
        "from tt_torch.runtime import _runtime",
        "import os\nos._exit(0)",
        "print(x.__dict__, torch.__version__)",
    ],
)
def test_a_public_name_is_not_reported(line: str) -> None:
    assert not list(Names(line).found(KNOWN))


def versions(source: str) -> Iterator[tuple[int, str]]:
    """Yields the private names in a file of `torch_private` that have no comment like `# 2.13.0: without it ...`.

    The comment may stand at the end of the line, or above the top-level statement that the line belongs to.
    """
    names, lines = Names(source), source.splitlines()
    said = f"# {torch.__version__.partition('+')[0]}: "
    tops = [(min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", []))]), n) for n in names.tree.body]
    for node in (n for n in ast.walk(names.tree) if isinstance(n, (ast.Import, ast.ImportFrom))):
        for alias in node.names:
            path = f"{getattr(node, 'module', '')}.{alias.name}"
            if path.startswith(("torch", "functorch")) and is_private(path) and said not in lines[alias.lineno - 1]:
                yield alias.lineno, path
    for line, name in names.found(KNOWN):
        first, top = next((first, n) for first, n in tops if first <= line <= (n.end_lineno or 0))
        if isinstance(top, (ast.Import, ast.ImportFrom)) or said in lines[line - 1]:
            continue
        above = first - 1
        while above and lines[above - 1].startswith("#"):
            above -= 1
        if not any(said in comment for comment in lines[above : first - 1]):
            yield line, name


@pytest.mark.parametrize("path", sorted(DOOR.glob("*.py")), ids=lambda p: p.name)
def test_each_name_says_in_which_version_it_was_read(path: Path) -> None:
    assert not list(versions(path.read_text()))


def test_a_name_without_a_version_is_found() -> None:
    said = f"# {torch.__version__.partition('+')[0]}: without it x"
    old = "# 1.0.0: without it x"
    assert list(versions("from torch._guards import tracing"))
    assert list(versions(f"from torch._guards import tracing  {old}"))
    assert list(versions(f"from torch._guards import (\n    tracing,  {said}\n    TracingContext,\n)"))
    assert list(versions("def f(op):\n    return op._schema"))
    assert list(versions(f"{said}\ndef g(): pass\ndef f(op):\n    return op._schema"))
    assert not list(versions(f"from torch._guards import tracing  {said}"))
    assert not list(versions(f"{said}\n# And more.\n@cache\ndef f(op):\n    return op._schema"))


def test_programs_are_loaded_and_run_without_dynamo() -> None:
    """StableHLO is read without it, too."""
    code = "import sys, torch, tt_torch.runtime, tt_torch.mlir.reading; print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

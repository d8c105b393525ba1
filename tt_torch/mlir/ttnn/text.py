"""The text of a TTNN module as a binary carries it: as a whole, and as a line per op.

Most of a file is text, so it is kept short. A layout stands in the type of each operand and result: it gets a name,
which the first lines define. Constants of more than 16 elements are left out, because their ConstantOp has them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from torch_mlir import ir

from tt_torch.mlir.types import Function

_LAYOUT = re.compile(r"#ttnn\.layout<([^<>]*), array<i64: ([^<>]*)>>")
_LOCATION = re.compile(r" loc\(\S*\)$")
_USUAL = "_Interleaved_1_1"  # not part of a name


def of_module(module: ir.Module) -> str:
    """The text of a module with its locations. MLIR's parser can read it, but the large constants are missing."""
    # The binding makes strings slowly. It is faster to let it make bytes and to decode these in Python.
    text = module.operation.get_asm(
        binary=True, enable_debug_info=True, large_elements_limit=16, assume_verified=True
    ).decode()
    names: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        layout = found[0]
        if layout not in names:
            names[layout] = "#" + "_".join(re.findall(r"\w+", f"{found[1]} {found[2]}")).removesuffix(_USUAL)
        return names[layout]

    body = _LAYOUT.sub(name, text)
    return "".join(f"{alias} = {layout}\n" for layout, alias in sorted(names.items())) + body


def by_function(source: str, functions: Sequence[Function]) -> dict[str, list[str]]:
    """The lines of each function's ops, without locations. `functions` has the functions with a body, in the order of
    `source`."""
    lines = iter(source.splitlines())
    return {function.name.value: list(_ops(lines)) for function in functions}


def _ops(lines: Iterator[str]) -> Iterator[str]:
    """The ops of the next function. A function's lines are indented by two columns, its ops' by four."""
    next(line for line in lines if line.startswith("  func.func ") and line.endswith("{"))
    return (
        _LOCATION.sub("", line.strip()) for line in itertools.takewhile(lambda line: line.startswith("    "), lines)
    )

"""The functions of a module: which is the program, what its arguments are, replacing ops in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir


def main(module: ir.Module) -> Any:
    """The program's entry function."""
    return next(f for f in module.body.operations if f.name.value == "main")


def mark_arguments(function: Any, kinds: Sequence[str]) -> None:
    """Writes each argument's role where tt-mlir keeps it, as `ttcore.argument_type`."""
    roles = [ir.DictAttr.get({"ttcore.argument_type": ir.StringAttr.get(kind)}) for kind in kinds]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(roles)


def argument_kind(function: Any, number: int) -> str:
    """Role of one argument; arguments of a module without roles are inputs."""
    if "arg_attrs" not in function.attributes:
        return "input"
    roles = function.attributes["arg_attrs"][number]
    return roles["ttcore.argument_type"].value if "ttcore.argument_type" in roles else "input"


def argument_kinds(function: Any) -> list[str]:
    return [argument_kind(function, i) for i in range(len(function.arguments))]


def block(function: Any) -> Any:
    """The one block of a function."""
    return function.regions[0].blocks[0]


def replace(op: ir.Operation, new: ir.Operation) -> None:
    """Uses the results of `new` instead of those of `op`, which goes."""
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()

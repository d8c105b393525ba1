"""Writes the annotations of GSPMD as annotations of Shardy. This runs in the process of shardy_worker.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from tt_torch.mlir.stablehlo import gspmd
from tt_torch.mlir.stablehlo.shardy_rules import rank

NAMES = ("rows", "columns")
SHARDING = "sdy.sharding"


def use_shardy(module: Any, function: Any, calls: Sequence[Any]) -> None:
    """Gives the module a mesh, and the inputs, the results and the custom calls `calls` shardings on it.

    Raises ValueError if there is no mesh on which all of them have equal parts along whole axes.
    """
    (block,) = function.regions[0].blocks
    end = list(block.operations)[-1].operation
    borders = {"arg_attrs": list(block.arguments), "res_attrs": list(end.operands)}
    said = [(op.attributes, op.results[0]) for op in calls]
    for name, values in borders.items():
        said += list(zip(_attributes(function, name, len(values)), values, strict=True))
    texts = {each[gspmd.ATTRIBUTE].value: rank(value) for each, value in said if gspmd.ATTRIBUTE in each}
    found = {text: gspmd.tiles(text, dims) for text, dims in texts.items()}
    split = [each for each in found.values() if each]
    try:
        mesh = gspmd.mesh_of(split, max(len(dim) for each in split for dim in each))
    except ValueError as error:
        raise ValueError(f"{error}: {', '.join(sorted(texts))}") from None
    _make_mesh(module, mesh)
    for op in calls:
        text = _on_mesh(op.attributes, op.results[0], mesh)
        made = ir.Operation.create(
            "sdy.sharding_constraint",
            [op.results[0].type],
            [op.operands[0]],
            {"sharding": ir.Attribute.parse(text)},
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        op.results[0].replace_all_uses_with(made.results[0])
        op.erase()
    for name, values in borders.items():
        pairs = zip(_attributes(function, name, len(values)), values, strict=True)
        rows = [_with_sharding(each, value, mesh) for each, value in pairs]
        function.attributes[name] = ir.ArrayAttr.get(rows)


def _attributes(function: Any, name: str, count: int) -> list[Any]:
    return list(function.attributes[name]) if name in function.attributes else [ir.DictAttr.get({})] * count


def _make_mesh(module: Any, mesh: gspmd.Mesh) -> None:
    sizes = ", ".join(f'"{name}"={size}' for name, size in zip(NAMES, mesh, strict=True))
    named = {"sym_name": ir.StringAttr.get("mesh"), "mesh": ir.Attribute.parse(f"#sdy.mesh<[{sizes}]>")}
    ir.Operation.create("sdy.mesh", [], [], named, ip=ir.InsertionPoint.at_block_begin(module.body))


def _with_sharding(attributes: Any, value: Any, mesh: gspmd.Mesh) -> Any:
    named = {each.name: each.attr for each in attributes if each.name != gspmd.ATTRIBUTE}
    if gspmd.ATTRIBUTE in attributes:
        named[SHARDING] = ir.Attribute.parse(_on_mesh(attributes, value, mesh))
    return ir.DictAttr.get(named)


def _on_mesh(attributes: Any, value: Any, mesh: gspmd.Mesh) -> str:
    """The text of Shardy's sharding of a value. Shardy may split the dimensions that GSPMD calls unspecified."""
    config = str(attributes["backend_config"]) if "backend_config" in attributes else ""
    unspecified = re.search(r"unspecified_dims=\[([\d,]*)\]", config)
    free = [int(dim) for dim in unspecified[1].split(",")] if unspecified else []
    tiles = gspmd.tiles(attributes[gspmd.ATTRIBUTE].value, rank(value))
    split = gspmd.axes(tiles, mesh) if tiles else [()] * rank(value)
    dims = [[f'"{NAMES[axis]}"' for axis in along] for along in split or ()]
    return f"#sdy.sharding<@mesh, [{', '.join(_braces([*d, '?'] if i in free else d) for i, d in enumerate(dims))}]>"


def _braces(names: Sequence[str]) -> str:
    return "{" + ", ".join(names) + "}"

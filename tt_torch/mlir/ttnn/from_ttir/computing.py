"""Ops that both dialects have, with the same operands and attributes: all those without a rule of their own."""

from __future__ import annotations

from typing import Any

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.ttnn.from_ttir.registry import RULES
from tt_torch.mlir.ttnn.from_ttir.types import result_types


def rename(op: Any, b: Builder) -> Any:
    """The op of the same name, with those attributes that TTNN's has."""
    name = op.operation.name.replace("ttir.", "ttnn.")
    attributes = {k: v for k, v in ods.attrs_of(op).items() if k in ods.OPS[name].attrs}
    operands = ods.operands_of(op).values()
    return b(name, *operands, type=result_types(name, op.results), **attributes)


def take_the_rest() -> None:
    """Registers `rename` for each op that both dialects have and that no other family has a rule for."""
    own = {name for name, _ in RULES.rules}
    for name in ods.OPS:
        if name.startswith("ttir.") and name not in own and name.replace("ttir.", "ttnn.") in ods.OPS:
            RULES.rewrites(name)(rename)

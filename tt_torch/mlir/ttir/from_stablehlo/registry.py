"""The rule set that the families of this folder fill, and the error of what none of them takes."""

from __future__ import annotations

from typing import Any

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.context import describe, node_of
from tt_torch.mlir.rules import RuleSet

RULES = RuleSet("stablehlo-to-ttir")


def unsupported(op: Any, accepted: str = "") -> UnsupportedOpError:
    """The error of an op without a rule, by its ATen name where the location has it; `accepted` says what has one."""
    name, target = node_of(op.location)
    signature = str(op).split(" loc(")[0].strip().splitlines()[0][:200]
    detail = f"node {name} needs {signature}" if name else signature
    detail = f"{detail}\n  accepted is {accepted}" if accepted else detail
    return UnsupportedOpError(target or op.operation.name, "stablehlo-to-ttir", describe(op.location), detail)

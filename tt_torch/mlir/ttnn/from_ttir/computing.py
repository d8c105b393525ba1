"""Ops that both dialects have with the same operands and attributes: all ops without a rule of their own."""

from __future__ import annotations

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn.from_ttir.registry import RULES
from tt_torch.mlir.ttnn.from_ttir.types import result_types
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.types import Built, Op, Value


def rename(op: Op, b: Builder) -> Built:
    """The TTNN op of the same name, with the attributes that it has."""
    name = op.operation.name.replace("ttir.", "ttnn.")
    attributes = {k: v for k, v in ods.attrs_of(op).items() if k in ods.OPS[name].attrs}
    operands = ods.operands_of(op).values()
    return b(name, *operands, type=result_types(name, op.results), **attributes)


@RULES.rewrites(*(f"ttir.{name}" for name in ttir.UNARY_PREDICATES))
def predicate(op: Op, b: Builder) -> Value:
    """The library returns the data type of the operand, but a boolean is bf16."""
    name, (x,) = op.operation.name.replace("ttir.", "ttnn."), op.operands
    answer = b(name, x, type=with_layout(shape(x), Layout(layout_of(x).dtype)))
    (wanted,) = result_types(name, op.results)
    return answer if answer.type == wanted else b("ttnn.typecast", answer, type=wanted)


def take_the_rest() -> None:
    """Registers `rename` for each op that both dialects have and that no other family has a rule for."""
    own = {name for name, _ in RULES.rules}
    for name in ods.OPS:
        if name.startswith("ttir.") and name not in own and name.replace("ttir.", "ttnn.") in ods.OPS:
            RULES.rewrites(name)(rename)

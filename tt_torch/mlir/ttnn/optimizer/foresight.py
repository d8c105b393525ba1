"""The modelled time of a form of an op, with what the ops that read the result pay for the place of the result."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn import sharded
from tt_torch.mlir.ttnn.layout import Layout, layout_of
from tt_torch.mlir.ttnn.optimizer import families
from tt_torch.mlir.ttnn.optimizer.choice import LAUNCH, Choice, moving, reading, seconds
from tt_torch.mlir.ttnn.optimizer.cores import Cores, like
from tt_torch.mlir.types import Value

# Ops that run well on values in L1 that are not split.
INTERLEAVED = (sharded.ELEMENTWISE | sharded.NORMS | sharded.PRODUCTS | sharded.MOVES | sharded.HEADS) | {
    f"ttnn.{name}" for name in ("concat", "max", "mean", "min", "reshape", "softmax", "sum", "to_layout")
}
JOINING = INTERLEAVED - sharded.ELEMENTWISE - sharded.NORMS - sharded.PRODUCTS  # the others read split values as well


def seconds_to_readers(op: ir.Operation, choice: Choice, cores: Cores) -> float:
    """Returns the modelled seconds that an op takes in this form, and that its readers take to read the result."""
    total = seconds(op, choice, cores)
    for result, layout in choice.makes(op):
        total += sum(reading(_back(use, layout, cores), shape(result), cores) for use in result.uses)
        total += _joining(result, layout, cores)
    return total


def _back(use: ir.OpOperand, layout: Layout, cores: Cores) -> Layout:
    """The layout in which a reader reads a value that lies as `layout`: where it joins the parts if it must."""
    reader = use.owner.operation
    if not layout.sharded or families.reads(reader, use.operand_number, layout, cores):
        return layout
    return layout.interleaved("L1" if reader.name in JOINING else "DRAM")


def _joining(result: Value, layout: Layout, cores: Cores) -> float:
    """The modelled seconds to join the parts of a value for its readers.

    An op with one operand keeps the parts. If a reader of its result must join them, this is an op more. The op with
    one operand would else write what the op that joins writes, so that only the launch counts here.
    """
    total = 0.0
    for use in result.uses if layout.sharded else ():
        if (back := _back(use, layout, cores)) != layout:
            total += moving(result, back, cores, layout)
        elif use.owner.name in sharded.ONE_OPERAND:
            made = use.owner.results[0]
            total += LAUNCH if _joining(made, like(layout_of(made), layout), cores) else 0.0
    return total


def spilling(value: Value, readers: int, cores: Cores) -> float:
    """Returns the modelled seconds that it takes to move a value from L1 to DRAM, and that its readers take longer."""
    now, dims = layout_of(value), shape(value)
    return moving(value, now.interleaved(), cores) + readers * (
        reading(now.interleaved(), dims, cores) - reading(now, dims, cores)
    )

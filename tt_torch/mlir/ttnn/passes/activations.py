"""Gives results of matrix products the data type `activation_dtype`, where the library has the ops around them for it.

Most ops give their result the data type of their first operand, so the new type spreads from a product to the ops that
read it. Either all of these values change, or none of them does, because an op that only converts would cost more than
it saves.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import block, main
from tt_torch.mlir.rules import shape, users
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.ttnn.layout import layout_of, with_layout
from tt_torch.mlir.ttnn.legality import RULES, refusal
from tt_torch.mlir.ttnn.precision import Precision
from tt_torch.mlir.types import Value
from tt_torch.wire.facts import BLOCK_FLOATS

PRODUCTS = ("ttnn.matmul", "ttnn.linear")
# Masks add large negative numbers to what a softmax reads. Numbers beside these in a block would vanish.
WIDE_READERS = ("ttnn.softmax",)

Types = dict[Value, ir.Type]  # the types that changed values had before


def narrow_activations(module: ir.Module, precision: Precision) -> None:
    """Changes the types of values, and inserts no ops. Results of the program keep their types."""
    if not precision.has("activation_dtype"):
        return
    constant = constant_values(main(module))
    with module.context, ir.Location.unknown():
        for op in [op.operation for op in block(main(module)).operations]:
            if op.name in PRODUCTS and op.results[0] not in constant:
                _narrow(op.results[0], precision)


def _narrow(product: Value, precision: Precision) -> None:
    before: Types = {}
    legal = _spread(product, before, precision)
    ops = [value.owner.operation for value in before] + [user for value in before for user in users(value)]
    if not legal or any(refusal(op) for op in ops):
        for value, kind in before.items():
            value.set_type(kind)


def _spread(value: Value, before: Types, precision: Precision) -> bool:
    """Changes a value, and all values whose type follows from its type. Returns False if one of them must not
    change."""
    layout, wanted = layout_of(value), precision.of(value.owner.operation)["activation_dtype"]
    if wanted is None or layout.dtype != "BFloat16" or not layout.tiled:
        return False
    before[value] = value.type
    value.set_type(with_layout(shape(value), layout.with_(dtype=BLOCK_FLOATS[wanted])))
    for user in users(value):
        if user.name not in RULES or user.name in WIDE_READERS:
            return False
        for result, made in zip(user.results, RULES[user.name].makes(user), strict=True):
            if layout_of(result).dtype != made.dtype and not _spread(result, before, precision):
                return False
    return True

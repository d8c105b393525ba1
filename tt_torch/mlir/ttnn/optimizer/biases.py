"""Adds biases of products of few rows in an op of their own, where the product is then so much faster.

The kernel that reads weights in parts from the banks of DRAM takes no bias. In a decoder, the values that go around a
block have become the bias of its last product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttnn.layout import layout_of
from tt_torch.mlir.ttnn.optimizer import products
from tt_torch.mlir.ttnn.optimizer.choice import LAUNCH, Choice, seconds
from tt_torch.mlir.ttnn.optimizer.cores import Cores
from tt_torch.mlir.ttnn.optimizer.overriding import NOTHING, asked_of


def split_biases(module: ir.Module, cores: Cores) -> None:
    """Replaces `linear` ops of the main function by a product and an addition, where this is faster."""
    for op in list(block(main(module)).operations):
        op = op.operation
        if op.name == "ttnn.linear" and _is_plain(op):
            _split(op, cores)


def _is_plain(op: ir.Operation) -> bool:
    """Whether an op adds something as large as its result, and does nothing else with it that an addition does not."""
    bias, made = ods.operand(op, "bias"), op.results[0]
    if bias is None or ods.attr(op, "activation") or asked_of(op) != NOTHING:
        return False
    return math.prod(shape(bias)) == math.prod(shape(made)) and layout_of(bias).dtype == layout_of(made).dtype


def _split(op: ir.Operation, cores: Cores) -> None:
    a, weight, bias = op.operands
    attributes = {name: value for name, value in ods.attrs_of(op).items() if name in ods.OPS["ttnn.matmul"].attrs}
    together = min((seconds(op, c, cores) for c in _fitting(op, cores)), default=0.0)
    b = Builder(ir.InsertionPoint(op), op.location)
    product = b("ttnn.matmul", a, weight, type=op.results[0].type, **attributes)
    op.operands[1] = a  # so that only the product reads the weight
    forms = (choice for choice in _fitting(product.owner, cores) if choice.weights)
    apart = min((seconds(product.owner, choice, cores) for choice in forms), default=math.inf)
    if apart + LAUNCH < together:
        op.results[0].replace_all_uses_with(b("ttnn.add", product, bias, type=op.results[0].type))
        op.erase()
    else:
        op.operands[1] = weight
        product.owner.erase()


def _fitting(op: ir.Operation, cores: Cores) -> Iterator[Choice]:
    return (choice for choice in products.choices(op, cores, NOTHING) if choice.scratch <= cores.l1)

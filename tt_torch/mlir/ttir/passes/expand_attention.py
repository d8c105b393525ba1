"""Attention to pages that the library does not have as one op."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.ttir.from_stablehlo.attention_calls import in_steps
from tt_torch.mlir.ttir.passes.apply_dtype import ELEMENT
from tt_torch.mlir.types import Op
from tt_torch.wire.facts import TILE

PAGED = "ttir.paged_scaled_dot_product_attention_decode"


def expand_attention(module: ir.Module, policy: str | None) -> None:
    """Rewrites attention to pages that the library refuses, if floats have the type of `policy`."""
    with module.context, ir.Location.unknown():
        for op in [op.operation for op in block(main(module)).operations]:
            if op.name == PAGED and not _fits(op, policy):
                b = Builder(ir.InsertionPoint(op), op.location)
                op.results[0].replace_all_uses_with(in_steps(b, list(ods.operands_of(op).values()), **ods.attrs_of(op)))
                op.erase()


def _fits(op: Op, policy: str | None) -> bool:
    """Whether the library has the op: for bf16 and whole tiles, and only if it is causal. A mask would not hide the
    pages that a user does not have."""
    query, key = op.operands[0], op.operands[1]
    element = ELEMENT[policy]() if policy else dtype(query)
    whole = shape(key)[2] % TILE == 0 and shape(query)[3] % TILE == 0 and 0 not in shape(key)
    return isinstance(element, ir.BF16Type) and whole and bool(ods.attr(op, "is_causal"))

"""Ops that TTNN has under the same name, with the same operands and attributes."""

from __future__ import annotations

from typing import Any

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn import dialect as ttnn
from tt_torch.mlir.ttnn.from_ttir.registry import RULES
from tt_torch.mlir.ttnn.from_ttir.types import result_types

SAME = [*ttir.UNARY, *ttir.UNARY_PREDICATES, *ttir.BINARY, *ttir.COMPARISONS, *ttir.LOGICAL]
SAME += ["sum", "mean", "max", "min", "where", "typecast", "cumsum", "matmul", "linear", "reshape", "permute", "concat"]
SAME += ["embedding", "gather", "scatter", "softmax", "layer_norm", "rms_norm", "scaled_dot_product_attention"]
SAME += ["split_query_key_value_and_split_heads", "concatenate_heads"]


def rename(op: Any, b: Builder) -> Any:
    """The op of the same name, with those attributes that TTNN's has."""
    name = op.operation.name.replace("ttir.", "ttnn.")
    attributes = {k: v for k, v in ods.attrs_of(op).items() if k in ods.OPS[name].attrs}
    operands = ods.operands_of(op).values()
    return b(name, *operands, type=result_types(name, op.results), **attributes)


for _name in SAME:
    assert f"ttnn.{_name}" in ods.OPS, f"{ttnn.TTNN.DIALECT_NAMESPACE} has no {_name}"
    RULES.rewrites(f"ttir.{_name}")(rename)

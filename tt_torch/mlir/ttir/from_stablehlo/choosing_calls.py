"""Custom calls of tt-xla that choose: the products with the chosen experts of a mixture."""

from __future__ import annotations

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.types import Attrs, Value


def sparse_matmul(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """All products, and zeros in the places of those that are not wanted. A product that is not wanted may be NaN."""
    x, experts, sparsity = operands
    rows, depth = shape(x)[2:]
    count, columns = shape(experts)[1], shape(experts)[3]
    groups = shape(x)[:2]
    if a["is_input_a_sparse"].lower() != "true":
        x = b("ttir.reshape", x, shape=[groups[0] * groups[1], 1, rows, depth])
        groups = [*groups, 1, count]
    products = b("ttir.matmul", x, experts)
    flat = shape(products)
    wanted = b("ttir.reshape", sparsity, shape=[flat[0], count, 1, 1])
    wanted = b("ttir.ne", wanted, full(b, [1, 1, 1, 1], dtype(wanted), 0.0))
    result = b("ttir.where", wanted, products, full(b, [1, 1, 1, 1], dtype(products), 0.0))
    return b("ttir.reshape", result, shape=[*groups, rows, columns])


CALLS = {"tt.sparse_matmul": sparse_matmul}

"""Elements of constants, as NumPy reads them from attributes."""

from __future__ import annotations

import numpy as np
import pytest
from torch_mlir import ir

from tt_torch.mlir.context import make_context
from tt_torch.mlir.stablehlo import attrs

RESOURCE = """
module attributes {{t.v = dense_resource<x> : tensor<3x{kind}>}} {{}}
{{-# dialect_resources: {{ builtin: {{ x: "0x08000000{elements}" }} }} #-}}
"""


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("f32", np.float32),
        ("f64", np.float64),
        ("i64", np.int64),
        ("i32", np.int32),
        ("i1", np.bool_),
        ("ui8", np.uint8),
    ],
)
def test_elements_of_a_resource(kind: str, dtype: type) -> None:
    expected = np.array([1, 0, 1 if kind == "i1" else 100], dtype)
    module = ir.Module.parse(RESOURCE.format(kind=kind, elements=expected.tobytes().hex()), make_context())
    found = attrs.elements(module.operation.attributes["t.v"])
    assert found.dtype == dtype and found.tolist() == expected.tolist()

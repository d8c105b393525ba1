"""Ops are built from their declarations: attributes, operands, result types, and errors for wrong calls."""

from __future__ import annotations

import pytest
from torch_mlir import ir

from tt_torch.mlir import infer, ods
from tt_torch.mlir.context import make_context
from tt_torch.mlir.rules import Builder

VALUES = {
    "bool": True,
    "i32": 7,
    "i64": -(2**40),
    "f32": 0.5,
    "f64": 0.1,
    "i64s": [1, 2, 3],
    "str": "relu",
    "symbol": "callee",
    "dict": {"a": 1, "b": {"c": [1, 2]}, "d": [{"e": "f"}]},
    "any": [1.5, "x", True],
}


@pytest.fixture
def block():
    """A block with the arguments x: 2x3xf32, y: 2x3xf32 and i: 2xi32. New ops are inserted at its begin."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(
            "func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %i: tensor<2xi32>) { return }"
        )
        inner = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(inner):
            yield inner


@pytest.mark.parametrize("kind", VALUES)
def test_attributes_round_trip(kind):
    with make_context(), ir.Location.unknown():
        assert ods.from_attr(ods.to_attr(kind, VALUES[kind])) == VALUES[kind]


def test_type_attribute_round_trips():
    with make_context(), ir.Location.unknown():
        assert ods.from_attr(ods.to_attr("type", ir.F32Type.get())) == ir.F32Type.get()


def test_absent_entries_of_a_dict_are_left_out():
    with make_context(), ir.Location.unknown():
        assert ods.from_attr(ods.to_attr("dict", {"a": None, "b": 1})) == {"b": 1}


@pytest.mark.parametrize("count", [1, 2, ods.LONGEST_VARIADIC])
def test_variadic_operands(block, count):
    x = block.arguments[0]
    op = Builder()("ttir.concat", [x] * count, dim=0).owner
    assert ods.operands_of(op) == {"inputs": [x] * count}
    assert op.operation.verify()


def test_too_many_variadic_operands(block):
    with pytest.raises(ValueError, match="inputs takes up to 32 values, got 33"):
        Builder()("ttir.concat", [block.arguments[0]] * 33, dim=0)


@pytest.mark.parametrize("weight", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_optional_operands_keep_their_names(block, weight, bias):
    """A bias without a weight must not become the weight."""
    x, y, _ = block.arguments
    op = Builder()("ttir.layer_norm", x, y if weight else None, y if bias else None, epsilon=1e-5).owner
    assert ods.operands_of(op) == {"input": x, "weight": y if weight else None, "bias": y if bias else None}
    assert op.operation.verify()


def test_trailing_optional_operands_may_be_left_out(block):
    op = Builder()("ttir.layer_norm", block.arguments[0], epsilon=1e-5).owner
    assert ods.operand(op, "bias") is None


def test_optional_attributes_read_as_none(block):
    x, y, _ = block.arguments
    op = Builder()("ttir.linear", x, y, transpose_b=True).owner
    assert ods.attrs_of(op) == {"transpose_a": False, "transpose_b": True, "activation": None}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda b, x, i: b("ttir.cumsum", x), TypeError, "ttir.cumsum needs attribute dim"),
        (lambda b, x, i: b("ttir.relu", x, slope=1), TypeError, "ttir.relu has no attribute slope"),
        (lambda b, x, i: b("ttir.add", x, None, type=x.type), TypeError, "ttir.add needs operand rhs"),
        (lambda b, x, i: b("ttir.full", shape=[1], fill_value=1.0), TypeError, "no inference rule"),
        (lambda b, x, i: b("ttir.reshape", x, shape=[5]), ValueError, r"\[2, 3\] cannot be reshaped to \[5\]"),
        (lambda b, x, i: b("ttir.permute", x, permutation=[0, 0]), ValueError, "no permutation of rank 2"),
        (lambda b, x, i: b("ttir.add", x, i), ValueError, "do not broadcast"),
        (lambda b, x, i: b("ttir.sum", x, dim_arg=[2]), ValueError, "dimension 2 is out of range for rank 2"),
        (lambda b, x, i: b("ttir.matmul", x, x), ValueError, "inner dimensions 3 and 2 differ"),
    ],
)
def test_wrong_calls(block, call, error, message):
    with pytest.raises(error, match=message):
        call(Builder(), block.arguments[0], block.arguments[2])


@pytest.mark.parametrize(
    ("shapes", "result"),
    [
        ([[2, 3], [3]], [2, 3]),
        ([[2, 1], [1, 3]], [2, 3]),
        ([[], [4]], [4]),
        ([[0, 3], [1, 3]], [0, 3]),
        ([[1], [1]], [1]),
    ],
)
def test_broadcast_shapes(shapes, result):
    assert infer.broadcast_shapes(*shapes) == result

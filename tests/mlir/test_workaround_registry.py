"""Workarounds for Tenstorrent's library: the rows of the registry, and the ops that the rules make."""

from __future__ import annotations

import itertools

import pytest
from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.context import make_context
from tt_torch.mlir.rules import Builder, RuleSet, shape
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.passes.workarounds import integers, registry
from tt_torch.mlir.ttnn.passes.workarounds.registry import Workaround, full, make, reshape, slices, typecast


@pytest.fixture
def block():
    with make_context(), ir.Location.unknown():
        kinds = [with_layout([4, 6], Layout("BFloat16")), with_layout([], Layout("Float32"))]
        module = ir.Module.parse(f"func.func @main(%x: {kinds[0]}, %y: {kinds[1]}) {{ return }}")
        yield module.body.operations[0].regions[0].blocks[0]


@pytest.fixture
def b(block):
    return Builder(ir.InsertionPoint.at_block_begin(block), ir.Location.unknown())


def test_a_workaround_is_listed_with_its_ops(monkeypatch):
    monkeypatch.setattr(registry, "ALL", [])
    monkeypatch.setattr(registry, "RULES", RuleSet("tried"))

    @registry.workaround("ttnn.relu", "ttnn.abs", version="1.2")
    def rule(op, b):
        return None

    assert registry.workaround("ttnn.neg")(rule) is rule
    listed = [Workaround(rule, ("ttnn.relu", "ttnn.abs"), "1.2"), Workaround(rule, ("ttnn.neg",), "0.81.1")]
    assert listed == registry.ALL
    assert registry.RULES.names == {"ttnn.relu", "ttnn.abs", "ttnn.neg"}


def test_results_get_the_shapes_of_the_op(monkeypatch, block, b):
    """A rule may give one value or several, or None where it does not apply."""
    monkeypatch.setattr(registry, "RULES", RuleSet("tried"))
    monkeypatch.setattr(registry, "ALL", [])
    scalar = block.arguments[1]
    op = b("ttnn.abs", scalar, type=scalar.type).owner
    number = full(b, 1.0, "Float32")
    for given, expected in ((None, None), (number, []), ([number], []), ((scalar,), [])):
        registry.workaround("ttnn.abs")(lambda op, b, given=given: given)
        (_, applied) = registry.RULES.rules[-1]
        values = applied(op, b)
        assert (values if values is None else shape(values[0])) == expected


def test_made_ops(block, b):
    x, _ = block.arguments
    made = make(b, "permute", x, permutation=[1, 0])
    assert shape(made) == [6, 4] and layout_of(made) == Layout("BFloat16")
    made = make(b, "permute", x, tiled=False, dtype="Int32", permutation=[1, 0])
    assert layout_of(made) == Layout("Int32", tiled=False)
    assert reshape(b, x, [4, 6]) == x
    assert shape(reshape(b, x, [2, 12])) == [2, 12]
    for tiled in (True, False):
        assert layout_of(typecast(b, x, "Float32", tiled)) == Layout("Float32", tiled)
    assert layout_of(typecast(b, x, "Float32")) == Layout("Float32")
    assert shape(full(b, 3, "Int32")) == [1] and shape(full(b, 3, "Int32", [2, 3])) == [2, 3]
    assert layout_of(full(b, 3, "Int32")) == Layout("Int32")
    assert ods.attr(full(b, 3, "Int32").owner, "fill_value") == {"I32": {"value": 3}}


@pytest.mark.parametrize("dim", [0, 1])
def test_slices_are_those_of_python(block, b, dim):
    x, _ = block.arguments
    size, other = shape(x)[dim], shape(x)[1 - dim]
    assert slices(b, x, dim, 0, size) == x
    for begin, end, step in itertools.product(range(size), range(size + 1), (1, 2, 3)):
        if begin < end and (begin, end, step) != (0, size, 1):
            made = slices(b, x, dim, begin, end, step)
            steps = ods.attr(made.owner, "step")
            (bounds,) = ods.attr(made.owner, "params").values()
            assert [shape(made)[d] for d in (dim, 1 - dim)] == [len(range(size)[begin:end:step]), other]
            assert [bounds["begins"][dim], bounds["ends"][dim], steps[dim]] == [begin, end, step]
            assert [bounds["begins"][1 - dim], bounds["ends"][1 - dim], steps[1 - dim]] == [0, other, 1]


def test_only_arithmetic_with_bytes_is_rewritten(block, b):
    """The rule applies again to the ops that it makes, until they have no bytes."""
    x, _ = block.arguments
    assert integers.arithmetic_of_bytes(b("ttnn.add", x, x, type=x.type).owner, b) is None
    byte = with_layout([4, 6], Layout("UInt8"))
    wide = typecast(b, x, "UInt8")
    for other in (wide, x):
        (made,) = integers.arithmetic_of_bytes(b("ttnn.add", wide, other, type=byte).owner, b)
        assert layout_of(made) == Layout("UInt8") and made.owner.name == "ttnn.typecast"

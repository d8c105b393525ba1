"""How facts and rules are looked up in the table: by op, overload, node and argument."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.fx import Graph
from torch.utils._pytree import tree_leaves

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import ByOp, Fact

aten, prims = torch.ops.aten, torch.ops.prims


def test_an_op_has_one_row() -> None:
    with pytest.raises(AssertionError, match="roll"):
        facts._row(Fact.KEEPS, "roll")


def test_facts_of_an_op_of_another_namespace() -> None:
    """A user's op that has the name of an ATen op has none of its facts."""
    with torch.library._scoped_library("tt_torch_facts", "DEF") as library:
        library.define("clone(Tensor x) -> Tensor")
        library.define("alias(Tensor(a) x) -> Tensor(a)")
        library.define("relu(Tensor x) -> Tensor", tags=torch.Tag.pointwise)
        ops = torch.ops.tt_torch_facts
        assert facts.of(ops.clone.default) == facts.of(ops.alias.default) == Fact(0)
        assert facts.of(ops.relu.default) == Fact.ELEMENTWISE


def test_overloads_have_facts_of_their_own() -> None:
    assert facts.of(aten.max.other) & (Fact.ELEMENTWISE | Fact.REDUCES) == Fact.ELEMENTWISE
    assert facts.of(aten.max.dim) & (Fact.ELEMENTWISE | Fact.REDUCES) == Fact.REDUCES
    assert Fact.KEEPS in facts.of(aten.view.default)
    assert Fact.KEEPS not in facts.of(aten.view.dtype)
    assert Fact.KEEPS not in facts.of(aten.repeat_interleave.Tensor)


def test_new_memory_and_numbers_for_the_host() -> None:
    assert facts.of(aten.empty.memory_format) == Fact.ALLOCATES | Fact.CREATES
    assert facts.of(aten.empty_like.default) & (Fact.ALLOCATES | Fact.CREATES) == Fact.ALLOCATES
    assert facts.of(aten.full_like.default) & (Fact.FILLS | Fact.CREATES) == Fact.FILLS
    assert Fact.READS in facts.of(aten._local_scalar_dense.default)


@pytest.mark.parametrize(
    ("op", "names"),
    [
        (aten.clone.default, ["self"]),
        (aten.gather.default, ["self"]),
        (aten.embedding.default, ["weight"]),
        (aten.cat.default, ["tensors"]),
        (aten.where.self, ["self", "other"]),
        (aten.masked_fill.Tensor, ["self", "value"]),
        (aten.scatter.src, ["self", "src"]),
        (aten.index_copy.default, ["self", "source"]),
        (aten.index_put.default, ["self", "values"]),
        (prims.convert_element_type.default, ["a"]),
        (aten._unsafe_masked_index.default, ["self", "fill"]),
    ],
)
def test_the_arguments_whose_elements_an_op_gives(op: Any, names: list[str]) -> None:
    assert facts.value_arguments(op) == names


# Other tensors that an op with the fact KEEPS may have: they choose elements, or say where these go.
CHOOSE = set("index indices mask condition random_samples".split())
CHOOSE |= set("nested_size nested_strides offsets dummy lengths min_seqlen max_seqlen".split())  # of nested tensors


def test_each_tensor_of_an_op_that_keeps_elements_gives_or_chooses_them() -> None:
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith(("aten::", "prims::"))]
    packets = [getattr(getattr(torch.ops, name.split("::")[0]), name.split("::")[1].split(".")[0]) for name in names]
    ops = {getattr(packet, name) for packet in packets for name in packet.overloads()}
    ops = {op for op in ops if op.name() in names}
    keep = [op for op in ops if Fact.KEEPS in facts.of(op) and not op._can_decompose()]  # the others never reach us
    found = {a.name for op in keep for a in op._schema.arguments if "Tensor" in str(a.type) and not a.is_out}
    assert found == facts.VALUES - {"fill"} | CHOOSE  # "fill" is a number


def test_views_that_show_other_values() -> None:
    """The elements of a view of complex numbers are some of these numbers, unless the op has the fact REINTERPRETS."""
    z, tried = torch.randn(3, 3, dtype=torch.complex64), set[str]()
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    for op in (getattr(aten, name[6:].split(".")[0]) for name in names):
        for overload in (getattr(op, name) for name in op.overloads()):
            first, *others = overload._schema.arguments or [None]
            is_view = first is not None and first.alias_info and not first.alias_info.is_write
            if not is_view or str(first.type) != "Tensor" or not all(a.has_default_value() for a in others):
                continue
            try:
                shown = overload(z)
            except (RuntimeError, NotImplementedError, TypeError):
                continue  # of sparse or nested tensors, or of floats
            seen = {number for v in tree_leaves(shown) for number in v.flatten().tolist()}
            other = not seen <= {*z.flatten().tolist()}
            assert other == (Fact.REINTERPRETS in facts.of(overload)), overload
            tried.add(overload._schema.name)
    assert {"aten::mH", "aten::real", "aten::_conj", "aten::t", "aten::view_as_real", "aten::squeeze"} <= tried


def test_a_target_that_is_no_op_has_no_facts() -> None:
    for target in (operator.getitem, torch.relu, "relu", None, torch.ops.higher_order.cond):
        assert facts.of(target) == Fact(0)
    assert facts.named("linalg.det") == facts.named("no_such_op") == Fact(0)


def test_the_op_that_a_node_calls() -> None:
    """It is found by method, function or op; the name alone is not enough."""
    graph = Graph()
    x = graph.placeholder("unfold")

    def conv1d(x: torch.Tensor) -> torch.Tensor:
        return x

    assert facts.called(graph.call_method("unfold", (x, 0, 2, 1))) is aten.unfold
    assert facts.called(graph.call_function(torch.Tensor.unfold, (x, 0, 2, 1))) is aten.unfold
    assert facts.called(graph.call_function(F.conv1d, (x, x))) is aten.conv1d
    assert facts.called(graph.call_function(aten.conv1d.default, (x, x))) is aten.conv1d
    assert facts.called(graph.call_method("no_such_method", (x,))) is None
    assert facts.called(graph.call_function(F.unfold, (x, 2))) is None  # im2col
    assert facts.called(graph.call_function(conv1d, (x,))) is None
    assert facts.called(x) is None


def test_a_rule_for_an_op_wins_over_a_rule_for_a_fact() -> None:
    rules = ByOp[str]()
    rules(Fact.KEEPS)("keeps")
    rules(Fact.MOVES)("moves")
    rules(aten.flip)("flip")
    rules(aten.view.dtype)("view.dtype")
    found = [rules.get(op) for op in (aten.roll.default, aten.flip.default, aten.view.dtype, aten.view.default)]
    assert found == ["keeps", "flip", "view.dtype", "keeps"]
    assert rules.get(aten.relu.default) is rules.get(operator.getitem) is None


def test_free_ops() -> None:
    """Free ops are views with one result, and copies that a functional graph can leave out."""
    free = [aten.view.default, aten.permute.default, aten.clone.default, aten._unsafe_view.default, aten.slice.Tensor]
    assert all(map(facts.is_free, free))
    others = [aten.split.Tensor, aten.flip.default, aten.view.dtype, aten.as_strided.default, aten.relu.default]
    assert not any(map(facts.is_free, [*others, operator.getitem]))

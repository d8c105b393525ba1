"""FX passes on functional ATen graphs."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tt_torch.dynamo.passes.constant_fold import constant_fold, evaluate
from tt_torch.dynamo.passes.redundant_casts import remove_redundant_casts
from tt_torch.dynamo.passes.repair import repair
from tt_torch.dynamo.passes.use_composites import use_composites

X = torch.randn(4, 6)
aten = torch.ops.aten
norm = aten.native_layer_norm.default


def trace(function, *inputs):
    return make_fx(function, tracing_mode="fake")(*inputs)


def targets(gm) -> list[str]:
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    return [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]


def test_constants_become_placeholders_after_the_inputs():
    gm = trace(lambda x: x + torch.arange(6) * 2, X)
    constants = constant_fold(gm, fold=True)
    assert [n.name for n in gm.graph.nodes if n.op == "placeholder"] == ["x_1", *constants]
    assert torch.equal(constants["constant_0"], torch.arange(6) * 2)
    assert targets(gm) == ["aten.add.Tensor"]
    gm.recompile()
    torch.testing.assert_close(gm(X, *constants.values()), X + torch.arange(6) * 2)


def test_only_constants_that_other_ops_read_are_kept():
    gm = trace(lambda x: x + (torch.arange(6) + 1).cos(), X)
    assert list(constant_fold(gm, fold=True)) == ["constant_0"]


def test_a_constant_result():
    gm = trace(lambda x: (x, torch.ones(3)), X)
    constants = constant_fold(gm, fold=True)
    gm.recompile()
    assert torch.equal(gm(X, *constants.values())[1], torch.ones(3))


def test_random_numbers_are_not_folded():
    gm = trace(lambda x: x + torch.rand(6), X)
    assert constant_fold(gm, fold=True) == {}
    assert "aten.rand.default" in targets(gm)


def test_new_memory_has_zeros_in_every_compilation():
    gm = trace(lambda x: x + torch.empty(6), X)
    for _ in range(3):
        torch.full((6,), 7.0)  # leaves nonzero values in memory that `empty` may get
        (folded,) = evaluate(gm, fold=True).values()
        assert not folded.any()


def test_large_constants_are_left_to_the_device():
    gm = trace(lambda x: x.sum() + torch.arange(1 << 22), X)
    assert constant_fold(gm, fold=True) == {}


def test_without_folding_only_tensors_of_the_graph_move():
    held = torch.tensor([1.0, 2.0])
    gm = make_fx(lambda x: x[:, :2] * held + torch.ones(2), tracing_mode="real")(X)
    constants = constant_fold(gm, fold=False)
    assert [c.tolist() for c in constants.values()] == [[1.0, 2.0]]
    assert "aten.ones.default" in targets(gm)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: aten._to_copy(x, dtype=torch.float32),
        lambda x: aten.clone(aten.detach(x)),
        lambda x: aten.view(x, [4, 6]),
        lambda x: aten.expand(aten.slice(x, 0, 0, 9), [-1, 6]),
        lambda x: aten.cat([x], 1),
    ],
)
def test_ops_that_change_nothing_go(function):
    gm = trace(lambda x: function(x) + 1, X)
    remove_redundant_casts(gm.graph)
    assert [str(n.target) for n in gm.graph.nodes if n.op == "call_function"] == ["aten.add.Tensor"]


def test_asserts_go():
    gm = trace(lambda x: x + 1, X)
    with gm.graph.inserting_before(next(n for n in gm.graph.nodes if n.op == "call_function")):
        gm.graph.call_function(aten._assert_tensor_metadata.default, (next(iter(gm.graph.nodes)),))
    remove_redundant_casts(gm.graph)
    assert targets(gm) == ["aten.add.Tensor"]


def test_casts_to_another_type_stay():
    gm = trace(lambda x: x.to(torch.bfloat16).to(torch.float32), X)
    remove_redundant_casts(gm.graph)
    assert targets(gm) == ["aten._to_copy.default"] * 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: aten.view(x, [6, 4]),
        lambda x: aten.view(x, [4, 6, 1]),
        lambda x: aten.slice(x, 0, 1, 9),
        lambda x: aten.expand(x, [2, 4, 6]),
        lambda x: aten.cat([x, x], 1),
        lambda x: aten.flip(x, [0]),
        lambda x: aten.t(x),
    ],
)
def test_ops_that_change_something_stay(function):
    gm = trace(function, X)
    remove_redundant_casts(gm.graph)
    assert len(targets(gm)) == 1


@pytest.mark.parametrize(("approximate", "name"), [("none", "gelu"), ("tanh", "gelu_tanh")])
def test_gelu_keeps_its_approximation(approximate, name):
    gm = trace(lambda x: torch.nn.functional.gelu(x, approximate=approximate), X)
    use_composites(gm.graph)
    assert targets(gm) == [f"tenstorrent.{name}.default"]


@pytest.mark.parametrize(
    ("weight", "bias", "whole"),
    [(True, True, True), (True, False, True), (False, False, True), (False, True, False)],
)
def test_layer_norm_with_a_bias_alone_is_no_composite(weight, bias, whole):
    """A composite identifies its operands by position, so a bias without a weight would be taken for the weight."""
    vector = torch.ones(6)
    gm = trace(lambda x, w, b: norm(x, [6], w if weight else None, b if bias else None, 1e-5)[0], X, vector, vector)
    use_composites(gm.graph)
    assert ("tenstorrent.layer_norm.default" in targets(gm)) == whole


def test_an_index_that_may_be_negative_counts_from_the_front():
    gm = trace(lambda x, i: x[i], X, torch.tensor([-1, 2]))
    repair(gm.graph)
    assert targets(gm) == ["aten.lt.Scalar", "aten.add.Tensor", "aten.where.self", "aten.index.Tensor"]


@pytest.mark.parametrize("find", [torch.argmax, torch.argmin])
def test_a_position_that_an_op_found_is_an_index_as_it_is(find):
    gm = trace(lambda x: x[find(x, 0)], X)
    repair(gm.graph)
    assert targets(gm) == [f"aten.{find.__name__}.default", "aten.index.Tensor"]


def test_scatter_gets_a_source_of_the_shape_of_its_indices():
    index = torch.zeros(4, 2, dtype=torch.int64)
    gm = trace(lambda x, i, wide, same: (x.scatter(1, i, wide), x.scatter(1, i, same)), X, index, X, X[:, :2])
    use_composites(gm.graph)
    assert targets(gm) == ["aten.slice.Tensor", "tenstorrent.scatter.default", "tenstorrent.scatter.default"]

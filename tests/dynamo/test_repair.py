"""Rewriting for torch-mlir keeps the values of a graph, and leaves none of the ops that torch-mlir lowers wrongly."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

import tt_torch
from tt_torch.dynamo.passes.repair import repair
from tt_torch.errors import UnsupportedOpError
from tt_torch.torch_private.tracing import make_fx
from tt_torch.wire.decode import decode

aten = torch.ops.aten
X, SCALAR, NAN = torch.arange(-5.0, 7.0).reshape(3, 4), torch.tensor(2.5), torch.tensor([1.0, torch.nan])
B, C = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
PLACES = torch.tensor([[0, 2], [-1, -3]])
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def repaired(function: Callable[..., Any], *inputs: torch.Tensor) -> tuple[GraphModule, list[str]]:
    """The graph after repair, and the names of its ops."""
    gm = make_fx(function, tracing_mode="fake")(*inputs)
    repair(gm.graph)
    gm.graph.lint()
    gm.recompile()
    expected, found = function(*inputs), gm(*(x.clone() for x in inputs))
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    gm.graph.eliminate_dead_code()
    return gm, [str(n.target).removeprefix("aten.") for n in gm.graph.nodes if n.op == "call_function"]


def against(compare: Callable[..., Any], number: bool) -> Callable[..., Any]:
    return lambda b: compare(b, number)


@pytest.mark.parametrize("compare", COMPARE, ids=lambda compare: compare.__name__)
def test_comparisons_of_booleans_are_logic(compare: Callable[..., Any]) -> None:
    assert set(repaired(compare, B, C)[1]) <= {f"logical_{name}.default" for name in ("not", "and", "or", "xor")}
    for k in (False, True):
        of_false, of_true = compare(False, k), compare(True, k)
        expected = ["full.default"] if of_false == of_true else [] if of_true else ["logical_not.default"]
        assert repaired(against(compare, k), B)[1] == expected


@pytest.mark.parametrize("compare", COMPARE, ids=lambda compare: compare.__name__)
def test_comparisons_with_itself(compare: Callable[..., Any]) -> None:
    """Floats may be NaN, which does not equal itself. Every other value equals itself."""
    assert repaired(lambda x: compare(x, x), PLACES)[1] == ["full.default"]
    assert repaired(lambda b: compare(b, b), B)[1] == ["full.default"]
    of_floats = ["ne.Tensor", "logical_not.default"] if compare(0, 0) else [f"{compare.__name__}.Tensor"]
    assert repaired(lambda x: compare(x, x), NAN)[1] == of_floats


@pytest.mark.parametrize("x", [SCALAR, X[:1, :1], X])
def test_a_choice_between_x_and_x_has_the_shape_of_the_condition(x: torch.Tensor) -> None:
    choose = torch.compile(lambda b, x: torch.where(b, x, x), backend="tt", options={"fallback": "error"})
    assert choose(X > 0, x).equal(x.expand(3, 4))


def test_comparisons_of_other_values_stay() -> None:
    assert repaired(lambda x, y: x < y, X, X.flip(0))[1] == ["lt.Tensor"]
    assert repaired(lambda x: x == 1, PLACES)[1] == ["eq.Scalar"]
    assert repaired(lambda b, x: b == x, B, C.int())[1] == ["eq.Tensor"]


WRAP = ["lt.Scalar", "add.Tensor", "where.self"]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x, i: x[i], [*WRAP, "index.Tensor"]),
        (lambda x, i: x[:, i], [*WRAP, "index.Tensor"]),
        (lambda x, i: x[i, i], [*WRAP, *WRAP, "index.Tensor"]),
        (lambda x, i: x.index_put((i,), x[0]), ["select.int", *WRAP, "index_put.default"]),
        (lambda x, i: aten.index_put(x, [None, i], x[0, 0], True), ["select.int"] * 2 + [*WRAP, "index_put.default"]),
        (lambda x, i: x.index_put((x > 0,), x[0, 0]), ["gt.Scalar", "select.int", "select.int", "index_put.default"]),
        (lambda x, i: x[x.argmax(0), x.argmin(0)], ["argmax.default", "argmin.default", "index.Tensor"]),
    ],
)
def test_indices_count_from_the_front(function: Callable[..., Any], names: list[str]) -> None:
    assert repaired(function, X, PLACES)[1] == names


EVENLY_SPACED = {
    "one from the end": (lambda x: x[:, [-2]], True),
    "neighbours": (lambda x: x[[1, 2]], True),
    "steps": (lambda x: x[..., [0, 2, 4]], True),
    "all": (lambda x: x[[0, 1, 2, 3]], True),
    "from the end to the end": (lambda x: x[[-2, -1]], True),
    "of an expanded tensor": (lambda x: x[:1].expand(4, 5, 6)[:, [1, 3]], True),
    "backwards": (lambda x: x[[2, 1]], False),
    "twice the same": (lambda x: x[[1, 1]], False),
    "uneven steps": (lambda x: x[:, [0, 1, 3]], False),
    "across the end": (lambda x: x[[-1, 0]], False),
    "two lists": (lambda x: x[[0, 1], [2, 3]], False),
    "a matrix": (lambda x: x[torch.tensor([[0, 1]])], False),
    "a result in other strides": (lambda x: x.permute(2, 0, 1)[:, [1, 3]], False),
}


@pytest.mark.parametrize(("function", "is_slice"), EVENLY_SPACED.values(), ids=EVENLY_SPACED)
def test_an_evenly_spaced_constant_index_is_a_slice(function: Callable[..., Any], is_slice: bool) -> None:
    x = torch.arange(120.0).reshape(4, 5, 6)
    compiled = tt_torch.compile_model(function, (x,))
    result, expected = compiled(x), function(x)
    assert torch.equal(result, expected) and result.stride() == expected.stride()
    assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    ops = {
        name for program in decode(compiled.binary)["programs"] for op in program["operations"] for name in op["type"]
    }
    assert ops.isdisjoint({"EmbeddingOp", "GatherOp"}) == is_slice


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.full_like(x, 3),
        lambda x: torch.zeros_like(x),
        lambda x: torch.ones_like(x),
        lambda x: x.new_full((2,), 2.5),
        lambda x: x.new_zeros(2, 3),
        lambda x: x.new_ones(4),
        lambda x: torch.ones_like(x, dtype=torch.int64),
        lambda x: x.new_full((2,), 7, dtype=torch.bool),
        lambda x: torch.full((2,), 4, dtype=torch.bool),
        lambda x: torch.full((2,), True),
        lambda x: torch.full((2,), 3),
        lambda x: x[:0] + 1,
        lambda x: torch.cat([x[:0], x[:0] * 2]),
    ],
)
def test_filled_tensors_have_no_operands(function: Callable[..., Any]) -> None:
    gm, names = repaired(function, X)
    assert names == ["full.default"]
    (made,) = gm.graph.find_nodes(op="call_function", target=aten.full.default)
    fill = made.args[1]
    assert isinstance(fill, bool) == (made.meta["val"].dtype is torch.bool)


def test_a_fill_with_a_tensor_stays() -> None:
    assert "fill" in "".join(repaired(lambda x: aten.fill.Tensor(x, x.sum()), X)[1])


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x.sum(0), "sum.dim_IntList"),
        (lambda x: x.sum(-1, keepdim=True), "sum.dim_IntList"),
        (lambda x: x.sum(0, dtype=torch.float64), "sum.dim_IntList"),
        (lambda x: aten.amax(x, [0]), "amax.default"),
        (lambda x: aten.mean.dim(x, []), "mean.dim"),
        (lambda x: aten.argmax(x, 0), "argmax.default"),
        (lambda x: aten.any.dim(x, 0, True), "any.dim"),
        (lambda x: aten.prod.dim_int(x, 0), "prod.dim_int"),
    ],
)
def test_scalars_are_reduced_as_vectors(function: Callable[..., Any], name: str) -> None:
    gm, names = repaired(function, SCALAR)
    assert names == ["reshape.default", name]
    (reduced,) = (n for n in gm.graph.nodes if str(n.target) == f"aten.{name}")
    assert reduced.args[0].meta["val"].shape == (1,) and reduced.meta["val"].shape == ()
    assert reduced.args[1] in (0, [0])


@pytest.mark.parametrize("function", [lambda x: x.sum(), lambda x: x.max(0)[0], lambda x: x.cumsum(0)])
def test_other_reductions_of_scalars_stay(function: Callable[..., Any]) -> None:
    assert "reshape.default" not in repaired(function, SCALAR)[1]


def test_reductions_of_other_tensors_stay() -> None:
    assert repaired(lambda x: x.sum(0), X)[1] == ["sum.dim_IntList"]


def test_transposed_scalars_are_these_scalars() -> None:
    assert repaired(lambda x: aten.transpose(x, 0, 0) + aten.permute(x, []), SCALAR)[1] == ["add.Tensor"]
    assert repaired(lambda x: x.t().permute(1, 0), X)[1] == ["t.default", "permute.default"]


def test_narrow_normalization_is_rounded_once() -> None:
    def normalized(x: torch.Tensor) -> Any:
        return aten._native_batch_norm_legit_no_training(x, None, None, torch.zeros(4), torch.ones(4), 0.1, 1e-5)[0]

    name = "_native_batch_norm_legit_no_training.default"
    rounded = repaired(normalized, X.bfloat16())[1]
    made = [n for n in rounded if n not in ("zeros.default", "ones.default", "full.default")]
    assert made == ["_to_copy.default"] * 3 + [name, "<built-in function getitem>", "_to_copy.default"]
    assert "_to_copy.default" not in repaired(normalized, X)[1]


@pytest.mark.parametrize(
    ("function", "op", "reason"),
    [
        (lambda x: x.as_strided((2, 2), (1, 2)), "as_strided", "not that of a contiguous tensor"),
        (lambda x: torch.complex(x, x).abs(), "complex", "no complex numbers"),
        (lambda x: torch.linalg.det(x[:3, :3]), "_linalg_det", "the device has no loops"),
    ],
)
def test_refused(function: Callable[..., Any], op: str, reason: str) -> None:
    with pytest.raises(UnsupportedOpError, match=reason) as caught:
        repaired(function, X)
    assert caught.value.op.startswith(f"aten.{op}.") and "test_repair.py" in str(caught.value)


def test_an_op_that_is_not_exact_is_refused_with_its_reason() -> None:
    gm = make_fx(lambda x: x + 1, tracing_mode="fake")(X)
    (node,) = gm.graph.find_nodes(op="call_function", target=aten.add.Tensor)
    node.meta["inexact"] = "it is large"
    with pytest.raises(UnsupportedOpError, match="it is large"):
        repair(gm.graph)

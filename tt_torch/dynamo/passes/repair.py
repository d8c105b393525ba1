"""Rewrites ops that torch-mlir lowers wrongly, or on which it crashes, to a form that it lowers rightly.

Ops without such a form are refused here, before torch-mlir sees them. Evidence: tests/op_table.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch.fx import Graph, Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.decompositions.linalg import UNROLLED
from tt_torch.dynamo.decompositions.registry import NARROW
from tt_torch.dynamo.decompositions.segments import LARGEST_PAIRS
from tt_torch.dynamo.facts import COMPARISONS, Fact
from tt_torch.dynamo.loop_gradients import INSTEAD
from tt_torch.dynamo.passes.rewriting import Rules, call, fill, only_first, user_line, value
from tt_torch.dynamo.types import Arguments
from tt_torch.errors import UnsupportedOpError
from tt_torch.torch_private.ops import HigherOrderOperator, schema, while_loop

aten = torch.ops.aten
RULES = Rules()

# torch-mlir crashes on these, or needs a tensor whose shape depends on values, or does not know them.
REFUSED = {
    aten.as_strided.default: "it reads memory that is not that of a contiguous tensor",
    aten._embedding_bag_forward_only.default: "it has no indices, or the device would compare too many with each bag",
    aten.masked_select.default: "the shape of its result depends on values",
    aten.nonzero.default: "the shape of its result depends on values",
    **dict.fromkeys(UNROLLED, "the device has no loops, and this size or form is not unrolled"),
}


@RULES(aten.index.Tensor)
def index(node: Node, a: Arguments) -> Node | None:
    if (part := _evenly_spaced(node, a["self"], a["indices"])) is not None:
        return part
    indices = _wrapped(node, a["self"], a["indices"])
    return None if indices is None else call(node, aten.index.Tensor, a["self"], indices)


def _evenly_spaced(node: Node, x: Node, indices: list[Node | None]) -> Node | None:
    """A slice, if the only index is a constant list such as `[-2]` or `[0, 2, 4]`. The device does not look it up then.

    Indexing makes a contiguous copy, and a slice does not, so the slice is copied. For an index out of range the result
    is None, and the op raises as before.
    """
    (dim, given), *others = [(dim, i) for dim, i in enumerate(indices) if i is not None]
    known = given.meta.get("constant")
    if others or known is None or known.dim() != 1 or known.dtype is torch.bool:
        return None
    size = value(x).shape[dim]
    places = [place + size if place < 0 else place for place in known.tolist()]
    if not places or not value(node).is_contiguous():
        return None
    step = places[1] - places[0] if len(places) > 1 else 1
    if step < 1 or places != [*range(places[0], places[-1] + 1, step)] or not 0 <= places[0] <= places[-1] < size:
        return None
    part = call(node, aten.slice.Tensor, x, dim, places[0], places[-1] + 1, step)
    return call(node, aten.clone.default, part, memory_format=torch.contiguous_format)


@RULES(aten.index_put.default)
def index_put(node: Node, a: Arguments) -> Node | None:
    indices = _wrapped(node, a["self"], a["indices"])
    return (
        None
        if indices is None
        else call(node, aten.index_put.default, a["self"], indices, a["values"], a["accumulate"])
    )


def _wrapped(node: Node, x: Node, indices: list[Node | None]) -> list[Node | None] | None:
    """Makes negative indices count from the front, which torch-mlir does not do. None if there is nothing to change."""
    if any(i is not None and value(i).dtype is torch.bool for i in indices):
        return None
    wrapped = list(indices)
    for dim, i in enumerate(indices):
        if i is not None and not _counts_from_front(i):
            negative = call(node, aten.lt.Scalar, i, 0)
            wrapped[dim] = call(node, aten.where.self, negative, call(node, aten.add.Tensor, i, value(x).shape[dim]), i)
    return None if wrapped == list(indices) else wrapped


def _counts_from_front(i: Node) -> bool:
    """Whether an index is a position that an op of the program returned, which is never negative."""
    return i.target in (aten.argmax.default, aten.argmin.default)


@RULES(*COMPARISONS)
def comparison(node: Node, a: Arguments) -> Node | None:
    """torch-mlir folds x == x to true, also for NaN, and also if it is `x.squeeze() == x` and nothing is squeezed. When
    it folds the next op, it reads this true as -1."""
    x, other, compare = a["self"], a["other"], COMPARISONS[facts.packet(node.target)]
    equal = compare(0, 0)
    if isinstance(other, Node) and value(x).is_floating_point() and (compare is operator.eq or (x is other and equal)):
        return call(node, aten.logical_not.default, call(node, aten.ne.Tensor, x, other))
    if x is other and value(x).is_floating_point():
        return None
    if x is other:
        return fill(node, value(node).shape, equal, torch.bool)
    return _logic(node, x, other, compare) if value(x).dtype is torch.bool else None


def _logic(node: Node, x: Node, other: Node | bool, compare: Callable[[bool, bool], bool]) -> Node | None:
    """A comparison of booleans as logic: `b == True` is `b`, and `b < c` is `~b & c`."""
    if not isinstance(other, Node):
        of_false, of_true = compare(False, other), compare(True, other)
        if of_false == of_true:
            return fill(node, value(node).shape, of_true, torch.bool)
        return x if of_true else call(node, aten.logical_not.default, x)
    if value(other).dtype is not torch.bool:
        return None
    if compare in (operator.eq, operator.ne):
        differ = call(node, aten.logical_xor.default, x, other)
        return differ if compare is operator.ne else call(node, aten.logical_not.default, differ)
    if compare in (operator.lt, operator.le):
        x = call(node, aten.logical_not.default, x)
    else:
        other = call(node, aten.logical_not.default, other)
    join = aten.logical_and.default if compare in (operator.lt, operator.gt) else aten.logical_or.default
    return call(node, join, x, other)


@RULES(aten.where.self)
def choice_of_one(node: Node, a: Arguments) -> Node | None:
    """torch-mlir folds a choice between x and x to x, also if the condition has another shape."""
    x, shape = a["self"], list(value(node).shape)
    if x is not a["other"] or list(value(x).shape) == shape:
        return None
    return call(node, aten.clone.default, call(node, aten.expand.default, x, shape))


@RULES(aten.full_like, aten.zeros_like, aten.ones_like, aten.new_full, aten.new_zeros, aten.new_ones)
def filled(node: Node, a: Arguments) -> Node | None:
    """A filled tensor without its input, so that we fold ops on it: torch-mlir folds 2.0 > 1 to false."""
    number = a.get("fill_value", float(facts.packet(node.target) in (aten.ones_like, aten.new_ones)))
    if isinstance(number, Node):
        return None
    found = value(node)
    return fill(node, found.shape, number, found.dtype)


@RULES(aten.full.default)
def boolean_fill(node: Node, a: Arguments) -> Node | None:
    """For booleans, torch-mlir would only use the lowest bit of the number."""
    if value(node).dtype is not torch.bool or isinstance(a["fill_value"], bool | Node):
        return None
    return call(node, aten.full.default, a["size"], bool(a["fill_value"]), dtype=torch.bool)


@RULES(Fact.REDUCES)
def scalar_reduction(node: Node, a: Arguments) -> Node | None:
    """Reduces a scalar as a vector of one element: a reduction over a dimension of a scalar crashes torch-mlir."""
    if a.get("dim") is None or "keepdim" not in a or value(a["self"]).dim() or len(schema(node.target).returns) != 1:
        return None
    dim = [0] if isinstance(a["dim"], (list, tuple)) else 0  # also for (), which means all
    given = a | {"self": call(node, aten.reshape.default, a["self"], [1]), "keepdim": False, "dim": dim}
    parameters = schema(node.target).arguments
    positional = [given[p.name] for p in parameters if not p.kwarg_only]
    return call(node, node.target, *positional, **{p.name: given[p.name] for p in parameters if p.kwarg_only})


@RULES(aten._native_batch_norm_legit_no_training.default)
def batch_norm(node: Node, a: Arguments) -> Node | None:
    """Narrow floats are rounded once, unless the scale goes into the weights of a convolution."""
    x, dtype = a["input"], value(a["input"]).dtype
    if dtype not in NARROW or x.target is aten.convolution.default or not only_first(node):
        return None
    names = ("input", "weight", "bias", "running_mean", "running_var")
    wide = [a[n] and call(node, aten._to_copy.default, a[n], dtype=torch.float32) for n in names]
    result = call(node, node.target, *wide, a["momentum"], a["eps"])
    return call(node, aten._to_copy.default, call(node, operator.getitem, result, 0), dtype=dtype)


def fill_empty(graph: Graph) -> None:
    """Replaces ops with an empty result: torch-mlir and the device compute many of them wrongly."""
    for node in list(graph.nodes):
        found = node.meta.get("val")
        if node.op == "call_function" and isinstance(found, torch.Tensor) and not found.numel():
            with graph.inserting_before(node):
                node.replace_all_uses_with(fill(node, found.shape, 0, found.dtype))


@RULES(aten._neg_view.default)
def lazy_negative(node: Node, a: Arguments) -> Node:
    """A lazy negative, such as the imaginary part of a conjugate, becomes a negation."""
    return call(node, aten.neg.default, a["self"])


@RULES(aten.transpose.int, aten.permute.default)
def scalar_transpose(node: Node, a: Arguments) -> Node | None:
    return None if value(a["self"]).dim() else a["self"]


GRADIENT_OF_LOOP = "while_loop_stack_output"  # a while_loop that keeps the values of all steps


def refusal(node: Node) -> str:
    """The reason why an op has no form on the device; "" if it may have one."""
    if node.target is while_loop:
        return (
            "the host decides how often its body runs, so it cannot be part of one device program; a mesh, device_map, "
            "and options that watch or replace single ops need one"
        )
    if str(node.target) == GRADIENT_OF_LOOP:
        return f"it is the gradient of a while_loop, which has no number of steps; {INSTEAD}"
    if isinstance(node.target, HigherOrderOperator):
        return "control flow and other ops on functions have no form on the device"
    if any(_is_complex(n) for n in (node, *node.all_input_nodes)):  # they abort the process inside of torch-mlir
        return "the device has no complex numbers"
    if node.target is aten.scatter_reduce.two and _pairs(node) > LARGEST_PAIRS:
        return "the device would compare each element of the result with each element that is scattered"
    return REFUSED.get(node.target) or node.meta.get("inexact", "")


def _pairs(node: Node) -> int:
    """The comparisons of a scatter that keeps the largest or the smallest elements."""
    x, dim, index, _, reduce, *_ = node.args
    own, places = value(x), value(index).shape
    return own.numel() * places[dim] if reduce in ("amax", "amin") and own.dim() else 0


def _is_complex(node: Node) -> bool:
    found = node.meta.get("val")
    values = found if isinstance(found, (list, tuple)) else [found]
    return any(isinstance(v, torch.Tensor) and v.is_complex() for v in values)


def repair(graph: Graph) -> None:
    """Applies the rules to a graph. Raises UnsupportedOpError for the first op without a form on the device."""
    for node in graph.nodes:
        if reason := refusal(node):
            raise UnsupportedOpError(str(node.target), "fx-passes", user_line(node), reason)
    fill_empty(graph)
    RULES.apply(graph)

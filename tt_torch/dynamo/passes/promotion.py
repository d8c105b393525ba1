"""Writes the type promotion of PyTorch into the graph.

After this pass, the operands of an op have the dtype in which PyTorch computes the op: `b < 3` of booleans compares
integers, and the 300 in `x + 300` of int8 is 44. In a comparison, torch-mlir would convert the number to the dtype of
the tensor. It also promotes some pairs of dtypes wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard

import torch
from torch.fx import Graph, Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import COMPARISONS, ByOp, Fact, called
from tt_torch.dynamo.passes.rewriting import arguments, call, user_line, value
from tt_torch.dynamo.scalars import number_in
from tt_torch.dynamo.types import Argument, Scalar
from tt_torch.errors import NumberError
from tt_torch.torch_private.ops import schema
from tt_torch.torch_private.tensors import unset_fake_temporarily

aten, prims = torch.ops.aten, torch.ops.prims

# The arguments that are promoted together.
OPERANDS = ByOp[tuple[str, ...]]()
for _names, _ops in {
    ("self", "other"): "add sub rsub mul div remainder where bitwise_and bitwise_or bitwise_xor",
    ("self", "min", "max"): "clamp clamp_min clamp_max",
    ("self", "exponent"): "pow",
}.items():
    OPERANDS(*(getattr(aten, name) for name in _ops.split()))(_names)
OPERANDS(*COMPARISONS)(("self", "other"))

# The arguments that become elements. Eager PyTorch refuses a number that the dtype of the result does not have.
ELEMENTS = ByOp[tuple[str, ...]]()
for _names, _ops in {
    ("fill_value",): "full full_like new_full",
    ("value",): "constant_pad_nd",
    ("min", "max"): "clamp clamp_min clamp_max",
    ("exponent",): "pow",
    ("alpha",): "add sub",
}.items():
    ELEMENTS(*(getattr(aten, name) for name in _ops.split()))(_names)
ELEMENTS(aten.fill.Scalar, aten.masked_fill.Scalar)(("value",))

ARITHMETIC = {getattr(aten, name) for name in "add sub rsub mul div floor_divide remainder fmod pow".split()}
LARGEST = torch.finfo(torch.float32).max
# Ops that take a Python number in float32 beside a tensor of this dtype. Sums convert it to float16.
WIDE_NUMBERS = {
    torch.bfloat16: {aten.add, aten.sub, aten.rsub, aten.mul, aten.div},
    torch.float16: {aten.mul, aten.div},
}
# Ops that also take a second operand without dimensions in float32, if it has one of these dtypes.
PRODUCTS = {aten.mul, aten.div}
WIDER = (torch.float32, torch.float64, torch.int16, torch.int32, torch.int64)
ADDITIONS = {aten.sub.Tensor: aten.add.Tensor, aten.sub.Scalar: aten.add.Scalar}


def promote(graph: Graph) -> None:
    """Converts integers, booleans and numbers to the dtype of the computation. Floats are left to torch-mlir, unless
    they are compared.

    Raises NumberError for a number that eager PyTorch refuses.
    """
    for node in list(graph.nodes):
        if names := ELEMENTS.get(node.target):
            _check(node, names, value(node).dtype)
            if OPERANDS.get(node.target) is None:
                _convert(node, {*names}, value(node).dtype)
        if names := OPERANDS.get(node.target):
            given = arguments(node)
            dtype = _dtype(node, [given[name] for name in names if given.get(name) is not None])
            wide = called(node) in WIDE_NUMBERS.get(dtype, ()) and _leaves(dtype, (given[n] for n in names))
            if wide or (called(node) in PRODUCTS and dtype in WIDE_NUMBERS and _is_wide(given["other"])):
                node = _in_float32(node)
                dtype = torch.float32
            if dtype is torch.float64 and called(node) in ARITHMETIC and any(map(_is_beyond_float32, given.values())):
                node.meta["inexact"] = "float32 does not have its number"
            _convert(node, {*names, "alpha"}, dtype)
            _add_the_least(node, dtype)


def _leaves(dtype: torch.dtype, operands: Iterable[Argument]) -> bool:
    """Whether a number that is neither zero nor infinite in float32 becomes zero or infinite in a narrow float."""
    with unset_fake_temporarily():
        wide = torch.tensor([number_in(n, torch.float32) for n in operands if isinstance(n, (int, float))]).float()
        narrow = wide.to(dtype)
        return not (torch.equal(wide == 0, narrow == 0) and torch.equal(wide.isinf(), narrow.isinf()))


def _is_wide(operand: Argument) -> bool:
    """Whether an operand is a tensor without dimensions whose numbers a narrow float may not have."""
    return isinstance(operand, Node) and not value(operand).dim() and value(operand).dtype in WIDER


def _in_float32(node: Node) -> Node:
    """Replaces an op of a narrow float by the same op of float32 and a conversion of its result. Returns the new op."""
    with node.graph.inserting_before(node):
        args = [
            call(node, prims.convert_element_type.default, x, torch.float32) if isinstance(x, Node) else x
            for x in node.args
        ]
        wide = call(node, node.target, *args, **node.kwargs)
        node.replace_all_uses_with(call(node, prims.convert_element_type.default, wide, value(node).dtype))
    node.graph.erase_node(node)
    return wide


def _add_the_least(node: Node, dtype: torch.dtype) -> None:
    """x - y * -128 of int8 becomes x + y * -128, which is equal, because the int8 -128 is its own negative.

    Eager PyTorch negates the factor of `sub`, and would refuse 128 if the op ran on the host.
    """
    is_integer = not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)
    if is_integer and node.target in ADDITIONS and arguments(node)["alpha"] == torch.iinfo(dtype).min:
        node.target = ADDITIONS[node.target]


def _check(node: Node, names: tuple[str, ...], dtype: torch.dtype) -> None:
    given = arguments(node)
    numbers = [given.get(name) for name in names]
    if called(node) is aten.constant_pad_nd and max(given["pad"], default=0) <= 0:
        return  # nothing is filled with the number
    if any(isinstance(number, float) and math.isnan(number) for number in numbers):
        return  # a clamp with a bound of NaN does not look at the other bound
    for number in numbers:
        if isinstance(number, (int, float)) and not _takes(node, number, dtype):
            raise NumberError(str(node.target), user_line(node), number, dtype)


def _takes(node: Node, number: float, dtype: torch.dtype) -> bool:
    """Whether eager PyTorch takes the number. The kernels of `pow` for wide floats take any exponent, and `sub` is
    `add` of the negative."""
    power = node.target is aten.pow.Tensor_Scalar
    number = -number if called(node) is aten.sub and not isinstance(number, bool) else number
    if power and (dtype.is_complex or dtype in (torch.float32, torch.float64)):
        return True
    # A fill with a single element of float16 takes any number.
    fills = Fact.FILLS in facts.of(node.target) or called(node) is aten.constant_pad_nd
    count = 1 if value(node).numel() == 1 and fills else 2
    try:
        with unset_fake_temporarily():  # a fake tensor takes any number
            torch.full((count,), number, dtype=dtype)
    except (RuntimeError, OverflowError):
        return False
    return not power or number >= 0 or dtype.is_floating_point


def _dtype(node: Node, operands: list[Argument]) -> torch.dtype:
    """The dtype in which an op computes. It is the dtype of the result, except for comparisons."""
    values = [value(v) if isinstance(v, Node) else v for v in operands]
    compares = value(node).dtype is torch.bool and len(values) == 2
    return torch.result_type(*values) if compares else value(node).dtype


def _is_beyond_float32(number: object) -> TypeGuard[float]:
    return isinstance(number, (int, float)) and LARGEST < abs(number) < math.inf


def _compared_in_float16(node: Node, number: Scalar) -> Scalar:
    """The number beside a tensor of float16. For a comparison it is rounded to float16, as in eager PyTorch: `x == 0.1`
    is true for the float16 that is nearest to 0.1."""
    if called(node) not in COMPARISONS:
        return number_in(number, torch.float16)
    with unset_fake_temporarily():
        return torch.tensor(number).half().item()


def _compared(node: Node, number: Scalar) -> Scalar:
    """The number beside a tensor of float64. In a comparison, a number beyond float32 is replaced by one that float32
    has, with the same result.

    All elements are between the limits of float32, or infinite or NaN. So `x < -1e300` is `x < -3.4e38`, `x <= -1e300`
    is `x <= -inf`, and `x == -1e300` is false for all elements, as `x == nan` is.
    """
    number, op = number_in(number, torch.float64), called(node)
    if op not in COMPARISONS or not _is_beyond_float32(number):
        return number
    if op in (aten.eq, aten.ne):
        return math.nan
    limit = LARGEST if (op in (aten.lt, aten.ge)) == (number < 0) else math.inf
    return math.copysign(limit, number)


CONVERTED = {torch.float64: _compared, torch.float16: _compared_in_float16}


def _convert(node: Node, names: set[str], dtype: torch.dtype) -> None:
    def converted(name: str, given: Argument) -> Argument:
        if name not in names or given is None:
            return given
        if not isinstance(given, Node):
            return CONVERTED.get(dtype, lambda _, number: number_in(number, dtype))(node, given)
        floats = value(given).is_floating_point() or value(given).is_complex()
        if value(given).dtype is dtype or (floats and not compares):
            return given
        with node.graph.inserting_before(node):
            return call(node, prims.convert_element_type.default, given, dtype)

    # torch-mlir would compare bfloat16 with float16 in float16, and float16 with a single float32 in float32.
    compares = called(node) in COMPARISONS and dtype.is_floating_point
    parameters = [p.name for p in schema(node.target).arguments]
    node.args = tuple(converted(name, given) for name, given in zip(parameters, node.args, strict=False))
    node.kwargs = {name: converted(name, given) for name, given in node.kwargs.items()}

"""Writes the type promotion of PyTorch into the graph.

After it, the operands of an op have the dtype that PyTorch computes the op in: `b < 3` of booleans compares integers,
and the 300 in `x + 300` of int8 is 44. torch-mlir would convert the number to the dtype of the tensor in a comparison,
and gets some pairs of dtypes wrong.
"""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from tt_torch.dynamo.facts import ByOp
from tt_torch.dynamo.passes.rewriting import arguments, call, user_line, value
from tt_torch.dynamo.scalars import number_in
from tt_torch.dynamo.types import Argument
from tt_torch.errors import NumberError
from tt_torch.torch_private.ops import schema
from tt_torch.torch_private.tensors import unset_fake_temporarily

aten, prims = torch.ops.aten, torch.ops.prims

# The arguments that are promoted together.
OPERANDS = ByOp[tuple[str, ...]]()
for _names, _ops in {
    ("self", "other"): (
        "add sub rsub mul div floor_divide remainder fmod maximum minimum fmax fmin where "
        "bitwise_and bitwise_or bitwise_xor eq ne lt le gt ge"
    ),
    ("self", "min", "max"): "clamp clamp_min clamp_max",
    ("self", "exponent"): "pow",
}.items():
    OPERANDS(*(getattr(aten, name) for name in _ops.split()))(_names)

# The arguments that become elements. Eager PyTorch refuses a number that the dtype of the result does not have.
ELEMENTS = ByOp[tuple[str, ...]]()
for _names, _ops in {
    ("fill_value",): "full full_like new_full",
    ("value",): "constant_pad_nd",
    ("min", "max"): "clamp clamp_min clamp_max",
    ("exponent",): "pow",
}.items():
    ELEMENTS(*(getattr(aten, name) for name in _ops.split()))(_names)
ELEMENTS(aten.fill.Scalar, aten.masked_fill.Scalar)(("value",))


def promote(graph: Graph) -> None:
    """Converts integers, booleans and numbers to the dtype of the computation. Floats are left to torch-mlir.

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
            _convert(node, {*names, "alpha"}, dtype)


def _check(node: Node, names: tuple[str, ...], dtype: torch.dtype) -> None:
    given = arguments(node)
    for number in (given.get(name) for name in names):
        if isinstance(number, (int, float)) and not _takes(node, number, dtype):
            raise NumberError(str(node.target), user_line(node), number, dtype)


def _takes(node: Node, number: float, dtype: torch.dtype) -> bool:
    """Whether eager PyTorch takes the number. The kernels of `pow` for wide floats take any exponent."""
    power = node.target is aten.pow.Tensor_Scalar
    if power and (dtype.is_complex or dtype in (torch.float32, torch.float64)):
        return True
    count = 1 if value(node).numel() == 1 else 2  # a single element of float16 takes any number
    try:
        with unset_fake_temporarily():  # a fake tensor takes any number
            torch.full((count,), number, dtype=dtype)
    except (RuntimeError, OverflowError):
        return False
    return not power or number >= 0 or dtype.is_floating_point


def _dtype(node: Node, operands: list[Argument]) -> torch.dtype:
    """The dtype in which an op computes: that of its result, except for comparisons."""
    values = [value(v) if isinstance(v, Node) else v for v in operands]
    compares = value(node).dtype is torch.bool and len(values) == 2
    return torch.result_type(*values) if compares else value(node).dtype


def _convert(node: Node, names: set[str], dtype: torch.dtype) -> None:
    def converted(name: str, given: Argument) -> Argument:
        if name not in names or given is None:
            return given
        if not isinstance(given, Node):
            return number_in(given, dtype)
        if value(given).dtype is dtype or value(given).is_floating_point() or value(given).is_complex():
            return given
        with node.graph.inserting_before(node):
            return call(node, prims.convert_element_type.default, given, dtype)

    parameters = [p.name for p in schema(node.target).arguments]
    node.args = tuple(converted(name, given) for name, given in zip(parameters, node.args, strict=False))
    node.kwargs = {name: converted(name, given) for name, given in node.kwargs.items()}

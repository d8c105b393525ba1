"""Facts about what ATen ops do with elements and memory: one table, from which passes and rules take sets of ops.

PyTorch itself says which ops are views, elementwise, reductions or random. `of` reads that, and the table adds what
PyTorch does not say. `tests/dynamo/test_facts.py` checks each fact on what eager PyTorch computes.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

import torch
from torch.fx import Node

from tt_torch.dynamo import mesh_ops
from tt_torch.dynamo.types import Function, Target
from tt_torch.torch_private.ops import OpOverload, OpOverloadPacket, schema
from tt_torch.torch_private.tracing import data_of

aten, prims = torch.ops.aten, torch.ops.prims


class Fact(Flag):
    """Facts about an op. Those marked with "PyTorch" follow from its tags and schemas."""

    # The origin of the values in the results.
    KEEPS = auto()  # each element is an element of an operand in VALUES, or the number that is given there
    ZEROS = auto()  # beside KEEPS: or it is zero
    CASTS = auto()  # beside KEEPS: in another dtype
    LINEAR = auto()  # a sum of elements of the only operand, with real coefficients
    PRODUCTS = auto()  # a product of elements of the only operand
    POSITIONS = auto()  # positions or counts, and -1 for none
    AND_POSITIONS = auto()  # the second of two results says where the elements of the first result were
    FILLS = auto()  # all elements are one number
    ALLOCATES = auto()  # the elements are the values that the memory held before
    DRAWS = auto()  # PyTorch: random numbers
    REINTERPRETS = auto()  # a view that reads bits, or parts of numbers, as other values
    READS = auto()  # the result is a number on the host
    EXCHANGES = auto()  # each chip of a mesh has its own values, or values of other chips

    # The places to which elements go.
    ELEMENTWISE = auto()  # PyTorch: an element depends on its place, and on the operands' elements at this place
    COPIES = auto()  # all elements stay in their places
    RESHAPES = auto()  # the elements stay in row-major order; the arguments are a tensor and the new shape
    EXTENTS = auto()  # the result is the operand itself if it has the same shape; otherwise a part, or repetitions
    MOVES = auto()  # shapes and numbers say which element goes where
    STRIDES = auto()  # strides and an offset say which elements of the operand's memory go where
    PICKS = auto()  # a tensor says which elements are read
    WRITES = auto()  # a tensor says which elements of the first operand are replaced in the result
    CREATES = auto()  # the shape is an argument, and no operand's elements are read
    REDUCES = auto()  # PyTorch: the elements along some dimensions become one
    SCANS = auto()  # an element depends on itself and on the elements before it along one dimension
    SORTS = auto()  # the elements along one dimension change their order
    CONVOLVES = auto()

    VIEW = auto()  # PyTorch: the results may share memory with an operand


# Names of the arguments that have the values of a KEEPS op; its other tensors are indices, masks and conditions.
VALUES = frozenset("a self weight other src source value values fill tensors".split())

_F = Fact
_FROM_TAGS = {
    torch.Tag.pointwise: _F.ELEMENTWISE,
    torch.Tag.reduction: _F.REDUCES,
    torch.Tag.nondeterministic_seeded: _F.DRAWS,
    torch.Tag.inplace_view: _F.VIEW,
}
_TABLE: dict[OpOverload | OpOverloadPacket, Fact] = {}


def _row(facts: Fact, names: str, *others: OpOverload | OpOverloadPacket) -> None:
    """Adds facts of ATen ops, by name, and of other ops. An op has one row."""
    for op in (*(getattr(aten, name) for name in names.split()), *others):
        assert op not in _TABLE, op
        _TABLE[op] = facts


# --- elements that stay what they are

_row(_F.KEEPS | _F.ELEMENTWISE | _F.COPIES, "alias clone detach detach_copy lift_fresh_copy")
_row(_F.KEEPS | _F.ELEMENTWISE | _F.CASTS, "_to_copy", prims.convert_element_type)
_row(_F.KEEPS | _F.MOVES | _F.RESHAPES, "_unsafe_view reshape view")
_row(_F.KEEPS | _F.MOVES | _F.EXTENTS, "expand slice")
_row(_F.KEEPS | _F.MOVES, "channel_shuffle flip pixel_shuffle pixel_unshuffle repeat roll rot90")
_row(_F.KEEPS | _F.MOVES, "cat constant_pad_nd stack")
_row(_F.KEEPS | _F.MOVES, "as_strided_scatter diagonal_scatter select_scatter slice_scatter")
_row(_F.KEEPS | _F.MOVES | _F.ZEROS, "diag_embed im2col")
_row(_F.KEEPS | _F.STRIDES, "_reshape_alias as_strided as_strided_ as_strided_copy")
_row(_F.KEEPS | _F.ELEMENTWISE, "copy masked_fill where")
_row(_F.KEEPS | _F.ELEMENTWISE | _F.ZEROS, "tril triu")
_row(_F.KEEPS | _F.PICKS, "_unsafe_index _unsafe_masked_index embedding gather index index_select masked_select take")
_row(_F.KEEPS | _F.WRITES, "_unsafe_index_put index_copy index_fill index_put masked_scatter put scatter")
_row(_F.KEEPS, "amax amin aminmax")
_row(_F.KEEPS | _F.AND_POSITIONS, "kthvalue max median min mode nanmedian")
_row(_F.KEEPS | _F.AND_POSITIONS, "max_pool2d_with_indices max_pool3d_with_indices")
_row(_F.KEEPS | _F.AND_POSITIONS, "adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d")
_row(_F.KEEPS | _F.AND_POSITIONS | _F.SCANS, "cummax cummin")
_row(_F.KEEPS | _F.AND_POSITIONS | _F.SORTS, "sort topk")

# --- other values

_row(_F.LINEAR, "mean neg sum")
_row(_F.LINEAR | _F.SCANS, "cumsum")
_row(_F.SCANS, "logcumsumexp")
_row(_F.PRODUCTS, "prod")
_row(_F.PRODUCTS | _F.SCANS, "cumprod")
_row(_F.POSITIONS, "argmax argmin bucketize count_nonzero multinomial nonzero nonzero_static searchsorted")
_row(_F.POSITIONS, "", aten.repeat_interleave.Tensor)
_row(_F.FILLS | _F.CREATES, "full new_full new_ones new_zeros ones scalar_tensor zeros")
_row(_F.FILLS | _F.ELEMENTWISE, "fill full_like ones_like zeros_like")
_row(_F.CREATES, "arange eye", prims.iota)
_row(_F.ALLOCATES | _F.CREATES, "empty empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_")
_row(_F.ALLOCATES | _F.ELEMENTWISE, "empty_like")
_row(_F.READS, "_local_scalar_dense is_nonzero item")
_row(_F.CONVOLVES, "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution")

# --- values of other chips

_row(_F.KEEPS | _F.EXCHANGES, "", mesh_ops.all_gather, mesh_ops.all_to_all, mesh_ops.mesh_partition)
_row(_F.EXCHANGES, "", mesh_ops.all_reduce, mesh_ops.reduce_scatter)

# --- views that show other values, which PyTorch's schemas do not say

_row(_F.REINTERPRETS, "", aten.view.dtype, prims.view_of_dtype)
_row(_F.REINTERPRETS, "_conj _neg_view adjoint conj imag mH matrix_H real", prims.conj, prims.imag, prims.real)
_row(_F.REINTERPRETS, "view_as_complex view_as_real")
_row(_F.REINTERPRETS, "_indices ccol_indices col_indices crow_indices indices row_indices")  # of sparse tensors
_row(_F.REINTERPRETS, "_fw_primal _make_dual _unpack_dual")  # of forward-mode derivatives

# --- comparisons, each with Python's operator that compares two numbers in the same way

COMPARISONS = {getattr(aten, name): getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def of(target: object) -> Fact:
    """The facts of an overload. A packet has the facts that hold for at least one of its overloads. Any other object,
    such as `operator.getitem` or an op on functions, has no facts."""
    if isinstance(target, OpOverloadPacket):
        return reduce(or_, (_of_overload(getattr(target, name)) for name in target.overloads()), Fact(0))
    return _of_overload(target) if isinstance(target, OpOverload) else Fact(0)


@functools.cache
def _of_overload(op: OpOverload) -> Fact:
    found = _TABLE.get(op, _TABLE.get(op.overloadpacket, Fact(0)))
    found = reduce(or_, (fact for tag, fact in _FROM_TAGS.items() if tag in op.tags), found)
    if op.is_view and op.namespace in ("aten", "prims") and all(map(_has_tensors, schema(op).returns)):
        found |= _F.VIEW if found & (_F.REINTERPRETS | _F.STRIDES) else _F.VIEW | _F.KEEPS | _F.MOVES
    return found


def _has_tensors(result: torch.Argument) -> bool:
    return kind(result.type) is torch.TensorType


def family(facts: Fact) -> list[OpOverload]:
    """The default overloads of the ATen ops whose row in the table has these facts."""
    return [op.default for op, known in _TABLE.items() if facts in known and isinstance(op, OpOverloadPacket)]


def named(name: str) -> Fact:
    """The facts of an ATen op by its name, such as "view"; none if ATen has no such op."""
    return of(getattr(aten, name, None))


def is_free(target: Target) -> bool:
    """Whether an op has one result that shows its operand's elements as they are: as a view, or as a copy that a
    functional graph can leave out."""
    known = of(target)
    free = _F.COPIES in known or _F.RESHAPES in known or _F.VIEW | _F.MOVES in known
    return free and not isinstance(schema(target).returns[0].type, torch.ListType)


def of_any_strides(target: Function) -> Function:
    """`reshape` in place of a view; any other op unchanged. PyTorch refuses a view for some strides, but a functional
    graph has no strides."""
    return aten.reshape.default if _F.RESHAPES in of(target) else target


def value_arguments(op: OpOverload) -> list[str]:
    """The names of the arguments whose elements a KEEPS op gives."""
    return [argument.name for argument in schema(op).arguments if argument.name in VALUES]


# --- names of ops, and types in their schemas


def packet(target: object) -> object:
    """The packet of an overload; anything else as it is."""
    return target.overloadpacket if isinstance(target, OpOverload) else target


def called(node: Node) -> OpOverloadPacket | None:
    """The ATen op that a node of Dynamo's graphs calls: as a method, as a function of `torch`, or directly."""
    target: Any = node.target
    if node.op == "call_method":
        return getattr(aten, target, None)
    if isinstance(target, OpOverload):
        return target.overloadpacket
    if target is data_of:
        return aten.detach
    name = getattr(target, "__name__", "")
    own = any(getattr(place, name, None) is target for place in (torch, torch.Tensor))
    return getattr(aten, name, None) if own else None


def kind(of_schema: object) -> type:
    """The class of a type in a schema, without lists and options: `torch.TensorType` for `Tensor?[]`."""
    while isinstance(of_schema, (torch.ListType, torch.OptionalType)):
        of_schema = of_schema.getElementType()
    return type(of_schema)


T = TypeVar("T")


class ByOp(Generic[T]):
    """One value per op, such as a rule: given for an overload, for a packet, or for all ops that have some facts.

    The most specific value counts: an overload's own value comes before the value of its packet, and both come before
    the value of a family. Families are tried in the order in which they were given.
    """

    def __init__(self) -> None:
        self._own: dict[object, T] = {}
        self._families: list[tuple[Fact, T]] = []

    def __call__(self, *keys: object) -> Callable[[T], T]:
        """A decorator that registers a value for these overloads, packets and facts."""

        def register(value: T) -> T:
            self._own.update((key, value) for key in keys if not isinstance(key, Fact))
            self._families.extend((key, value) for key in keys if isinstance(key, Fact))
            return value

        return register

    def get(self, target: object) -> T | None:
        """The value for an op; None if it has none."""
        for key in (target, packet(target)):
            if key in self._own:
                return self._own[key]
        return next((value for facts, value in self._families if facts in of(target)), None)

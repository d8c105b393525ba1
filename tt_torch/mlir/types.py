"""Names for what conversions and passes take and give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from torch_mlir import ir

Op: TypeAlias = ir.OpView | ir.Operation  # an op: MLIR gives it as a view, and one that was just built as an operation
Function: TypeAlias = ir.OpView  # a `func.func`
TensorType: TypeAlias = ir.RankedTensorType
Value: TypeAlias = ir.Value[TensorType]  # a tensor: a result of an op or an argument of a function
Operand: TypeAlias = Any  # as a declaration names it: a value, a list of values if it is variadic, None if it is absent
Built: TypeAlias = Any  # the results of a new op: one value, or a list of values if the op has several
Results: TypeAlias = Value | Sequence[Value] | None  # what a rule returns: the values that replace its op, or None
Attr: TypeAlias = Any  # an attribute as a Python value: number, string, type, or a list or dictionary of such values
Attrs: TypeAlias = dict[str, Attr]  # attributes by name
Infer: TypeAlias = Callable[..., TensorType | list[TensorType]]  # result types from operands and attributes by name

"""Names for what FX passes, rules and decompositions take and give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tt_torch.torch_private.ops import OpOverload

Function: TypeAlias = Callable[..., Any]  # a function of any signature: a decomposition, or a graph as a function
Target: TypeAlias = Function | str  # what an FX node calls: an ATen op, another function, the name of a method or input
Scalar: TypeAlias = bool | int | float | complex  # a Python number
Argument: TypeAlias = Any  # of an op: a node or its value, a number, a dtype, a string, ..., or a list of these
Arguments: TypeAlias = dict[str, Argument]  # the arguments of an op by name; for an ATen op, with its defaults
Result: TypeAlias = Any  # of an op or a graph: a tensor, a number, None, or a list of these
Decompositions: TypeAlias = dict[OpOverload, Function]  # by the ATen op that they replace

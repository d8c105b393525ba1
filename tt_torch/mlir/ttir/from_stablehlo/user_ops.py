"""Ops of the user: their lowerings are called, and ops with a kernel stay whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch_mlir import ir

from tt_torch.errors import BinaryFormatError, LoweringError, UnsupportedOpError
from tt_torch.extending import registry
from tt_torch.extending.arguments import Call, decoded
from tt_torch.mlir import ods
from tt_torch.mlir.context import describe
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.stablehlo.dtypes import NAMES
from tt_torch.mlir.stablehlo.normalize import NORMAL
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Attr, Built, Op, Operand, Results, Value
from tt_torch.wire import custom_ops


class LoweringBuilder(Builder):
    """The builder that lowerings get. `b("ttir.multiply", x, y)` adds an op of TTIR and returns its result.

    It takes only the values of its call of the lowering. MLIR has freed the values of earlier programs, and ends the
    process if an op uses one of them.
    """

    def __init__(self, b: Builder, operands: Sequence[Value]) -> None:
        super().__init__(b.ip, b.location)
        self._values: set[Value] | None = set(operands)

    def __call__(self, name: str, *operands: Operand, type: Any = None, **attrs: Attr) -> Built:
        if not name.startswith("ttir.") or name not in ods.OPS:
            raise ValueError(f"TTIR has no op {name!r}")
        used = [v for part in operands for v in (part if isinstance(part, (list, tuple)) else [part])]
        for value in used:
            if value is not None and not isinstance(value, ir.Value):
                raise TypeError(f"{name} takes values of the program, got {value!r:.60}; b.full makes one of a number")
        values = self._own(used)
        made = super().__call__(name, *operands, type=type, **attrs)
        values.update(made if isinstance(made, list) else [made])
        return made

    def close(self, results: Sequence[object]) -> None:
        """Ends the call of the lowering, which returned `results`. Raises ValueError for values of another call."""
        self._own(results)
        self._values = None

    def _own(self, used: Sequence[object]) -> set[Value]:
        """The values of this call. Raises ValueError if `used` has others, or if the call has ended."""
        if self._values is None:
            raise ValueError("the lowering has returned, so its builder adds no more ops")
        if any(isinstance(value, ir.Value) and value not in self._values for value in used):
            raise ValueError("it uses a value that belongs to another call of a lowering")
        return self._values

    def full(self, shape: Sequence[int], value: float, dtype: torch.dtype) -> Value:
        """A tensor of one number."""
        return full(self, shape, self.element(dtype), value)

    def element(self, dtype: torch.dtype) -> ir.Type:
        """The element type that the device has for a dtype: bf16 for booleans, and 32-bit types for 64-bit ones."""
        return ir.Type.parse(NORMAL.get(NAMES[dtype], NAMES[dtype]))


def user_op(op: Op, b: Builder) -> Results:
    """Calls the lowering of a user's op, or keeps an op with a kernel as `ttir.custom_<number of results>`.

    Raises UnsupportedOpError if the op has neither or cannot be called, and LoweringError if its lowering fails.
    """
    text = ods.attr(op, "backend_config")
    name, arguments = (custom_ops.parsed(text) if isinstance(text, str) else None) or ("a call of an op", "")
    try:
        registered, call = registry.of(name), decoded(arguments)
    except BinaryFormatError as error:
        raise _refused(op, name, str(error)) from None
    if len(call.tensors()) != len(op.operands):
        raise _refused(op, name, "its arguments do not fit its operands")
    if registered is None:
        raise _refused(op, name, "this process has registered neither a lowering nor a kernel of it")
    if registered.lowering:
        return _lowered(name, registered.lowering, call, op, b)
    if len(op.operands) > ods.LONGEST_VARIADIC or len(op.results) > custom_ops.MOST_RESULTS:
        raise _refused(op, name, f"it has {len(op.operands)} tensors, and a kernel takes {ods.LONGEST_VARIADIC}")
    kinds = [r.type for r in op.results]
    return b(f"ttir.custom_{len(kinds)}", list(op.operands), type=kinds, func_name=text)


def _refused(op: Op, name: str, reason: str) -> UnsupportedOpError:
    return UnsupportedOpError(name, RULES.name, describe(op.location), reason)


def _lowered(name: str, lowering: Callable[..., Any], call: Call, op: Op, b: Builder) -> Results:
    where, (positional, keywords) = describe(op.location), call.filled(list(op.operands))
    builder = LoweringBuilder(b, list(op.operands))
    try:
        made = lowering(builder, *positional, **keywords)
        values = list(made) if isinstance(made, (list, tuple)) else [made]
        builder.close(values)
    except Exception as error:
        raise LoweringError(name, where, f"failed: {type(error).__name__}: {error}") from error
    if made is NotImplemented:
        raise _refused(op, name, "its lowering returned NotImplemented for these arguments")
    got = [str(v.type) if isinstance(v, ir.Value) else type(v).__name__ for v in values]
    expected = [str(r.type) for r in op.results]
    if got != expected:
        raise LoweringError(name, where, f"returned {', '.join(got)}, expected {', '.join(expected)}")
    return values

"""The 64-bit state of `stablehlo.rng_bit_generator` as pairs of 32-bit words, which the device has: all of the bits
where they come from words or a constant, otherwise those that a 64-bit integer keeps there, the lower ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.rules import producer
from tt_torch.mlir.stablehlo import attrs


def states_to_words(body: ir.Block) -> None:
    """From (n) ui64 to (n, 2) ui32; the type of the numbers is noted, which the device's types no longer show."""
    for op in [op.operation for op in body.operations if op.operation.name == "stablehlo.rng_bit_generator"]:
        state, numbers = op.results
        if str(state.type.element_type) == "ui64" and isinstance(numbers.type.element_type, ir.IntegerType):
            with ir.InsertionPoint(op), op.location:
                _replace(op)


def _replace(op: ir.Operation) -> None:
    words = _words(op.operands[0])
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["tt.element_type"] = ir.TypeAttr.get(op.results[1].type.element_type)
    new = ir.Operation.create(op.name, [words.type, op.results[1].type], [words], attributes)
    op.results[1].replace_all_uses_with(new.results[1])
    for use in list(op.results[0].uses):
        user = use.owner.operation
        if user.name == "stablehlo.bitcast_convert" and user.results[0].type == words.type:
            user.results[0].replace_all_uses_with(new.results[0])
            user.erase()
    op.results[0].replace_all_uses_with(_low(new.results[0], op.results[0].type))
    op.erase()


def _words(state: ir.Value) -> ir.Value:
    (count,) = state.type.shape
    word = ir.IntegerType.get_unsigned(32)
    kind = ir.RankedTensorType.get([count, 2], word)
    if (cast := producer(state, "stablehlo.bitcast_convert")) and cast.operands[0].type == kind:
        return cast.operands[0]
    if constant := producer(state, "stablehlo.constant"):
        return _constant(attrs.elements(constant.attributes["value"]), kind)
    column = ir.RankedTensorType.get([count, 1], word)
    low = _op("stablehlo.convert", ir.RankedTensorType.get([count], word), state)
    low = _op("stablehlo.reshape", column, low)
    high = _constant(np.zeros((count, 1), np.uint32), column)
    return _op("stablehlo.concatenate", kind, low, high, dimension=_i64(1))


def _low(words: ir.Value, kind: ir.Type) -> ir.Value:
    count, word = kind.shape[0], words.type.element_type
    spans = {"start_indices": [0, 0], "limit_indices": [count, 1], "strides": [1, 1]}
    column = ir.RankedTensorType.get([count, 1], word)
    low = _op("stablehlo.slice", column, words, **{k: ir.DenseI64ArrayAttr.get(v) for k, v in spans.items()})
    return _op("stablehlo.convert", kind, _op("stablehlo.reshape", ir.RankedTensorType.get([count], word), low))


def _constant(values: np.ndarray, kind: ir.RankedTensorType) -> ir.Value:
    words = np.ascontiguousarray(values).view(np.uint32).reshape(kind.shape)
    return _op("stablehlo.constant", kind, value=ir.DenseElementsAttr.get(words, type=kind))


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _op(name: str, kind: ir.Type, *operands: ir.Value, **attributes: Any) -> ir.Value:
    return ir.Operation.create(name, [kind], list(operands), attributes).results[0]

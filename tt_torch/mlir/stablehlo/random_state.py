"""The 64-bit state of `stablehlo.rng_bit_generator` becomes pairs of 32-bit words, because the device has 32 bits.

All bits are kept if the state comes from words or from a constant, and if it is read as words. Otherwise the host turns
it into words and back. Where the host cannot take part, the upper words are zero.
"""

from __future__ import annotations

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.context import unsupported
from tt_torch.mlir.rules import producer
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.build import again, constant, joined, make, sliced
from tt_torch.mlir.stablehlo.normalize import element_name, low_bits_read

IN_WORDS = "tt.in_words"  # on the op: its numbers are pairs of 32-bit words in a last dimension


def numbers_to_words(body: ir.Block) -> None:
    """Random numbers of 64 bits, of which not only the low words are read, become pairs of words, which the host
    joins."""
    for op in [op.operation for op in body.operations if op.operation.name == "stablehlo.rng_bit_generator"]:
        state, numbers = op.results
        if element_name(numbers) not in ("i64", "ui64") or low_bits_read(numbers):
            continue
        with ir.InsertionPoint(op), op.location:
            kinds = [state.type, _of_words(*numbers.type.shape, 2)]
            new_state, words = again(op, list(op.operands), kinds, **{IN_WORDS: ir.UnitAttr.get()})
            joined_words = make("bitcast_convert", numbers.type, words)
        state.replace_all_uses_with(new_state)
        numbers.replace_all_uses_with(joined_words)
        op.erase()


def states_to_words(body: ir.Block, with_host: bool = False) -> None:
    """Changes states from (n) ui64 to (n, 2) ui32. Notes the type of the numbers, which the new types do not show.

    If `with_host` is true, the host may join and split words: then `wide_places.py` finds these ops.

    Raises UnsupportedOpError if more than the lower words of 64-bit results are read.
    """
    for op in [op.operation for op in body.operations if op.operation.name == "stablehlo.rng_bit_generator"]:
        state, numbers = op.results
        for result in op.results:
            as_words = with_host or all(use.owner.operation.name == "stablehlo.bitcast_convert" for use in result.uses)
            if element_name(result) in ("i64", "ui64") and not (as_words or low_bits_read(result)):
                raise unsupported(op, "stablehlo-to-ttir", "64-bit results of which only the low 32 bits are read")
        if str(state.type.element_type) == "ui64" and isinstance(numbers.type.element_type, ir.IntegerType):
            with ir.InsertionPoint(op), op.location:
                _replace(op, with_host)


def _replace(op: ir.Operation, with_host: bool) -> None:
    words, (state, numbers) = _words(op.operands[0], with_host), op.results
    noted = {"tt.element_type": ir.TypeAttr.get(numbers.type.element_type)}
    new_words, new_numbers = again(op, [words], [words.type, numbers.type], **noted)
    numbers.replace_all_uses_with(new_numbers)
    for use in list(state.uses):
        user = use.owner.operation
        if user.name == "stablehlo.bitcast_convert" and user.results[0].type == words.type:
            user.results[0].replace_all_uses_with(new_words)
            user.erase()
    if any(True for _ in state.uses):
        state.replace_all_uses_with(
            make("bitcast_convert", state.type, new_words) if with_host else _low(new_words, state.type)
        )
    cast = producer(op.operands[0], "stablehlo.bitcast_convert")
    op.erase()
    if cast and not any(True for _ in cast.results[0].uses):
        cast.erase()


def _words(state: ir.Value, with_host: bool) -> ir.Value:
    (count,) = state.type.shape
    kind, column, row = (_of_words(*size) for size in ((count, 2), (count, 1), (count,)))
    if (cast := producer(state, "stablehlo.bitcast_convert")) and cast.operands[0].type == kind:
        return cast.operands[0]
    if known := producer(state, "stablehlo.constant"):
        return constant(kind, attrs.elements(known.attributes["value"]).view(np.uint32).reshape(kind.shape))
    if with_host:
        return make("bitcast_convert", kind, state)
    low = make("reshape", column, make("convert", row, state))
    return joined([low, constant(column, np.zeros((count, 1), np.uint32))], kind, 1)


def _low(words: ir.Value, kind: ir.Type) -> ir.Value:
    (count,) = kind.shape
    low = make("reshape", _of_words(count), sliced(words, [0, 0], [count, 1]))
    return make("convert", kind, low)


def _of_words(*size: int) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(size, ir.IntegerType.get_unsigned(32))

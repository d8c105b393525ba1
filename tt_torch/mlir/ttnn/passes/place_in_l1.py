"""Keeps intermediates in L1 from the op that makes them to their last reader, as far as they fit.

They are interleaved over all cores. Convolutions, pooling, attention and data movement need L1 themselves, so their
operands and results stay in DRAM. Tensors also stay in DRAM if the library refuses to make or to read them in L1.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import main
from tt_torch.mlir.rules import shape, users
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn import legality
from tt_torch.mlir.ttnn.layout import layout_of, with_layout
from tt_torch.mlir.types import Value
from tt_torch.wire.binary import first_chip
from tt_torch.wire.messages import SystemDesc

ELEMENTWISE = [*ttir.UNARY, *ttir.UNARY_PREDICATES, *ttir.BINARY, *ttir.COMPARISONS, *ttir.LOGICAL]
NAMES = [*ELEMENTWISE, "where", "typecast", "clamp_scalar", "matmul", "linear", "softmax", "layer_norm", "rms_norm"]
FIT = {f"ttnn.{name}" for name in NAMES}
# The other part is left for the circular buffers of the running op.
SHARE = 0.5


def budget(system: SystemDesc) -> int:
    """Bytes of L1 for intermediates, over all cores of one chip."""
    chip = first_chip(system)
    cores = chip["grid_size"]["y"] * chip["grid_size"]["x"]
    return int(SHARE * cores * (chip["l1_size"] - chip["l1_unreserved_base"]))


def place_in_l1(module: ir.Module, system: SystemDesc) -> None:
    limit = budget(system)
    with module.context, ir.Location.unknown():
        operations = [op.operation for op in main(module).regions[0].blocks[0].operations]
        last = {v: i for i, op in enumerate(operations) for v in op.operands}
        live: dict[Value, int] = {}
        for i, op in enumerate(operations):
            live = {v: size for v, size in live.items() if last[v] >= i}
            for result in op.results:
                size = _size(result) if _fits(op, result) else 0
                if size and sum(live.values()) + size <= limit and _moved(op, result):
                    live[result] = size


def _moved(op: ir.Operation, result: Value) -> bool:
    """Moves the result to L1 if the library can make and read it there; returns whether it did."""
    before = result.type
    result.set_type(with_layout(shape(result), layout_of(result).with_(buffer="L1")))
    if any(legality.refusal(each) for each in (op, *users(result))):
        result.set_type(before)
        return False
    return True


def _size(value: Value) -> int:
    return layout_of(value).bytes(shape(value))


def _fits(op: ir.Operation, result: Value) -> bool:
    readers = users(result)
    return op.name in FIT and bool(readers) and all(reader.name in FIT for reader in readers)

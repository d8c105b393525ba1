"""Replaces element types of PyTorch programs by those that the device has, before StableHLO becomes TTIR.

i64 -> i32, f64 -> f32, i1 -> bf16 (zeros and ones), f16 -> f32, i8, i16 and ui16 -> i32. The runtime converts the
caller's tensors at upload and download, so that users keep PyTorch's dtypes.

int8, int16 and uint16 wrap around at their own size: int8 100 + 100 is -56. A logical shift of int64 shifts 64 bits.

Two things are read from the old types first. Arithmetic of booleans is logic: in StableHLO, true + true is true. And a
64-bit number that becomes a float, such as the 10**10 of `x / 10**10`, stays this number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.functions import replace
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.build import compared, constant, make
from tt_torch.mlir.types import Function, TensorType, Value

NORMAL = {"i64": "i32", "ui64": "ui32", "f64": "f32", "i1": "bf16", "f16": "f32", "i8": "i32", "i16": "i32"}
NORMAL |= {"ui16": "i32"}

ON_BITS = {f"stablehlo.{name}" for name in ("bitcast_convert", "popcnt", "count_leading_zeros", "reduce_precision")}
WITHIN_HALF = ("f16", "i1", "i8", "ui8")  # float16 can represent all numbers of these types
DEVICE_TYPES = {"f32", "bf16", "i32", "ui32", "ui16", "ui8"}
FLOATS = ("f64", "f32", "f16", "bf16")
NARROW_INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "ui32")
CONSTANTS = ("stablehlo.constant", "chlo.constant", "arith.constant")
MOVES = ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.convert")
# The logical ops that StableHLO's arithmetic means for booleans.
LOGIC = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}
LOGIC |= {f"broadcast_{name}": f"broadcast_{logic}" for name, logic in LOGIC.items()}
# Integers of few bits, and the ops whose results have no more bits than their operands.
WIDTHS = {"i8": 8, "i16": 16, "ui16": 16}
_KEEPING = (
    "and broadcast_in_dim clamp concatenate dynamic_slice gather maximum minimum or pad remainder reshape reverse "
    "select sign slice transpose xor"
)
SHIFTS = ("stablehlo.shift_right_logical", "stablehlo.shift_right_arithmetic")
WITHIN = {*CONSTANTS, *(f"stablehlo.{name}" for name in _KEEPING.split())}


def normal_type(kind: TensorType | ir.Type) -> TensorType | ir.Type:
    """The device type of a tensor type. Other types are returned unchanged."""
    name = NORMAL.get(str(kind.element_type)) if isinstance(kind, ir.RankedTensorType) else None
    return ir.RankedTensorType.get(kind.shape, ir.Type.parse(name)) if name else kind


def normalize(module: ir.Module) -> None:
    """Retypes every value of the module. Constants keep their attribute, which the rule for constants converts."""
    with module.context, ir.Location.unknown():
        for function in module.body.operations:
            for block in function.regions[0].blocks:
                _use_logic(block)
                _keep_large_numbers(block)
                ops = [o.operation for o in block.operations]
                for op in ops:
                    _mark(op)
                _retype(block.arguments)
                for op in ops:
                    kinds = [element_name(r) for r in op.results]
                    _retype(op.results)
                    _keep_width(op, kinds)
            retype_function(function)


def _use_logic(block: ir.Block) -> None:
    """Replaces the arithmetic of booleans by logical ops, also in the bodies of reductions and scatters."""
    for op in [o.operation for o in block.operations]:
        for region in op.regions:
            for inner in region.blocks:
                _use_logic(inner)
        dialect, _, name = op.name.partition(".")
        if name in LOGIC and element_name(op.results[0]) == "i1":
            with ir.InsertionPoint(op), op.location:
                types, attributes = [r.type for r in op.results], {a.name: a.attr for a in op.attributes}
                new = ir.Operation.create(f"{dialect}.{LOGIC[name]}", types, list(op.operands), attributes)
            replace(op, new)


def _keep_large_numbers(block: ir.Block) -> None:
    """If a 64-bit constant is converted to a float, the convert gets its own constant, which is a float.

    If only the low 32 bits of an `and` are read, its constants become their low bits: for example JAX's 2**32 - 1.
    """
    for op in [o.operation for o in block.operations]:
        if (
            op.name == "stablehlo.and"
            and element_name(op.results[0]) in ("i64", "ui64")
            and low_bits_read(op.results[0])
        ):
            with ir.InsertionPoint(op):
                for i, mask in enumerate(list(op.operands)):
                    op.operands[i] = _low_bits(mask)
        if op.name == "stablehlo.convert" and element_name(op.results[0]) in FLOATS:
            with ir.InsertionPoint(op):
                if (number := _as_float(op.operands[0])) is not None:
                    op.operands[0] = number


def low_bits_read(value: Value) -> bool:
    """Whether only the low 32 bits of a 64-bit integer matter: all its readers convert it to a shorter integer."""
    readers = [use.owner.operation for use in value.uses]
    moved = [op.results[0] for op in readers if op.name in MOVES[:2]]
    narrow = [op for op in readers if op.name == "stablehlo.convert" and element_name(op.results[0]) in NARROW_INTEGERS]
    return len(readers) == len(moved) + len(narrow) and all(map(low_bits_read, moved))


def _low_bits(value: Value) -> Value:
    """A constant of equal elements becomes its low 32 bits, as a signed number for i64 and an unsigned one for ui64.
    Other values are returned unchanged."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or op.name not in CONSTANTS or (number := attrs.splat(op.attributes["value"])) is None:
        return value
    low = (int(number) + 2**31) % 2**32 - 2**31
    unsigned = element_name(value) == "ui64"
    return constant(
        value.type, np.full(value.type.shape, low % 2**32 if unsigned else low, np.uint64 if unsigned else np.int64)
    )


def _as_float(value: Value) -> Value | None:
    """A 64-bit integer constant, which may be reshaped or broadcast, as float32; None for other values."""
    if isinstance(value.owner, ir.Block) or element_name(value) not in ("i64", "ui64"):
        return None
    op = value.owner.operation
    moved = _as_float(op.operands[0]) if op.name in MOVES else None
    if moved is None and op.name not in CONSTANTS:
        return None
    new = op.clone().operation
    if moved is not None:
        new.operands[0] = moved
    new.results[0].set_type(ir.RankedTensorType.get(value.type.shape, ir.F32Type.get()))
    return new.results[0]


def _keep_width(op: ir.Operation, kinds: Sequence[str]) -> None:
    """Makes an op in i32 give the same bits as in its original result types, which are `kinds`."""
    if (op.name, kinds) in (("stablehlo.shift_right_logical", ["i64"]), ("stablehlo.shift_right_arithmetic", ["ui64"])):
        return _shift_64(op, kinds[0])
    if op.name in SHIFTS and kinds[0] in WIDTHS:
        _shift_own_bits(op, kinds[0])
    within = op.name in WITHIN or "tt.clamped" in op.attributes  # see flatten
    for result, kind in [] if within else list(zip(op.results, kinds, strict=True)):
        if kind in WIDTHS:
            _wrap(op, result, kind)
    return None


def _wrap(op: ir.Operation, result: Value, kind: str) -> None:
    """Keeps the lowest bits of a result that was an integer of 8 or 16 bits."""
    low = (1 << WIDTHS[kind]) - 1
    with ir.InsertionPoint.after(op), op.location:
        if kind[0] == "u":
            wrapped = first = _with_number("and", result, low)
        else:
            first = _with_number("add", result, low // 2 + 1)
            wrapped = _with_number("subtract", _with_number("and", first, low), low // 2 + 1)
    result.replace_all_uses_except(wrapped, first.owner.operation)


def _shift_own_bits(op: ir.Operation, kind: str) -> None:
    """A logical shift reads its operand without a sign. An arithmetic shift reads its operand with a sign."""
    logical, sign = op.name == "stablehlo.shift_right_logical", 1 << (WIDTHS[kind] - 1)
    with ir.InsertionPoint(op), op.location:
        if logical and kind[0] == "i":
            op.operands[0] = _with_number("and", op.operands[0], 2 * sign - 1)
        elif not logical and kind[0] == "u":
            op.operands[0] = _with_number("subtract", _with_number("xor", op.operands[0], sign), sign)


def _shift_64(op: ir.Operation, kind: str) -> None:
    """Gives the lower word of a 64-bit integer that is shifted right. The upper word of a ui64 is zero. All bits
    of the upper word of an i64 equal the sign of its lower word. A shift by 32 or more reads the upper word."""
    x, count = op.operands
    with ir.InsertionPoint(op), op.location:
        far = make("shift_right_logical", x.type, x, count)
        if kind == "i64":
            upper = _with_number("shift_right_arithmetic", x, 31)
            far = make("shift_right_logical", x.type, upper, _with_number("subtract", count, 32))
            beyond = _with_number("and", count, -32)
            short = compared("EQ", beyond, constant(count.type, np.zeros(count.type.shape, np.int32)))
            short.set_type(normal_type(short.type))
            far = make("select", x.type, short, make("shift_right_arithmetic", x.type, x, count), far)
        replace(op, far.owner.operation)


def _with_number(name: str, value: Value, number: int) -> Value:
    """A binary op of an int32 tensor and a number."""
    splat = ir.DenseElementsAttr.get_splat(value.type, ir.IntegerAttr.get(value.type.element_type, number))
    constant = ir.Operation.create("stablehlo.constant", [value.type], attributes={"value": splat})
    return ir.Operation.create(f"stablehlo.{name}", [value.type], [value, constant.result]).result


def short_name(op: ir.Operation) -> str:
    """The name of an op without its dialect. Ops of CHLO that broadcast have the names of those that do not."""
    return op.name.rpartition(".")[2].removeprefix("broadcast_") if op.name.startswith("chlo.") else op.name[10:]


def element_name(value: Value) -> str:
    """The element type of a tensor, such as "i64"; "" if the value is no tensor."""
    return str(value.type.element_type) if isinstance(value.type, ir.RankedTensorType) else ""


def _mark(op: ir.Operation) -> None:
    """Notes what the device types no longer show: that a convert to boolean means "is not zero", that a convert to
    float16 rounds, and the types of ops on bits."""
    kind = element_name(op.results[0]) if op.name == "stablehlo.convert" else ""
    if kind == "i1":
        op.attributes["tt.to_bool"] = ir.UnitAttr.get()
    if kind == "f16" and element_name(op.operands[0]) not in WITHIN_HALF:
        op.attributes["tt.to_half"] = ir.UnitAttr.get()
    if op.name in ON_BITS or (op.name == "stablehlo.reduce" and element_name(op.operands[0]) in ("i1", *WIDTHS)):
        types = [op.operands[0].type.element_type, op.results[0].type.element_type]
        op.attributes["tt.types"] = ir.ArrayAttr.get([ir.TypeAttr.get(kind) for kind in types])


def _retype(values: Iterable[Value]) -> None:
    for value in values:
        new = normal_type(value.type)
        if new is not value.type:
            value.set_type(new)


def retype_function(function: Function) -> None:
    """Sets the signature of a function to the types of its arguments and of its return op."""
    block = function.regions[0].blocks[0]
    returned = [v.type for v in list(block.operations)[-1].operation.operands]
    signature = ir.FunctionType.get([a.type for a in block.arguments], returned)
    function.attributes["function_type"] = ir.TypeAttr.get(signature)

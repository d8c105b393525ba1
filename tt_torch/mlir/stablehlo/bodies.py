"""The bodies of reductions, which are regions of scalars: reading them, and applying them to whole tensors."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.build import broadcast
from tt_torch.mlir.types import Op, Value


def body_op(op: Op) -> str:
    """The name of the only op in a region, apart from the return, if it combines the arguments; otherwise ""."""
    names = combining(op)
    return names[0] if names and len(names) == 1 else ""


def combining(op: Op) -> list[str] | None:
    """The op that combines the elements of each operand; None if a result needs other operands or several ops."""
    block = op.operation.regions[0].blocks[0]
    *ops, last = list(block.operations)
    count = len(block.arguments) // 2
    made = {o.operation.results[0]: o.operation for o in ops if len(o.operation.results) == 1}
    names = []
    for i, value in enumerate(last.operands):
        one = made.get(value)
        pair = [block.arguments[i], block.arguments[count + i]]
        if one is None or list(one.operands) not in (pair, pair[::-1]):
            return None
        names.append(one.name.split(".")[1])
    return names if len(names) == len(ops) else None


def only_op(region: ir.Region) -> str:
    """The direction of a region's only op if it is a comparison, otherwise its name; "" if there are several ops."""
    ops = list(region.blocks[0].operations)
    if len(ops) != 2 or list(ops[0].operands) != list(region.blocks[0].arguments):
        return ""
    name = ops[0].operation.name
    return attrs.direction(ops[0]) if name == "stablehlo.compare" else name.split(".")[1]


def is_elementwise(region: ir.Region) -> bool:
    """Whether a body has only ops of scalars, which mean the same for each element of tensors."""
    ops = [op.operation for op in region.blocks[0].operations][:-1]
    return all(not op.regions and not any(r.type.shape for r in op.results) for op in ops)


def applied(region: ir.Region, operands: Sequence[Value]) -> list[Value]:
    """Applies a body to each element of tensors of one shape. `operands` has a tensor for each argument of the body."""
    body, shape = region.blocks[0], operands[0].type.shape
    values = dict(zip(body.arguments, operands, strict=True))
    *ops, last = [op.operation for op in body.operations]
    for op in ops:
        if not op.operands:
            values[op.results[0]] = broadcast(op.clone().operation.results[0], shape, [])
            continue
        given = [_value(x, values, shape) for x in op.operands]
        kinds = [ir.RankedTensorType.get(shape, r.type.element_type) for r in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = ir.Operation.create(op.name, kinds, given, attributes)
        values.update(zip(op.results, new.results, strict=True))
    return [_value(x, values, shape) for x in last.operands]


def _value(scalar: Value, values: dict[Value, Value], shape: Sequence[int]) -> Value:
    """The tensor for a scalar of the body. A scalar from outside of the body is broadcast."""
    return values[scalar] if scalar in values else broadcast(scalar, shape, [])

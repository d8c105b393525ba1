"""Gives values block floats, where the library has the ops around them for it: the options `activation_dtype` and
`kv_cache_dtype`.

Most ops give their result the data type of their first operand, so the new type spreads from a value to the ops that
read it. Either all of these values change, or none of them does, because an op that only converts would cost more than
it saves.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_mlir import ir

from tt_torch.errors import ConfigError
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import argument_kind, block, main
from tt_torch.mlir.rules import Builder, producer, shape, users
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.ttnn.layout import layout_of, with_layout
from tt_torch.mlir.ttnn.legality import CACHES, RULES, refusal, takes
from tt_torch.mlir.ttnn.precision import Precision
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import BLOCK_FLOATS

PRODUCTS = ("ttnn.matmul", "ttnn.linear")
UPDATES = tuple(f"ttnn.{name}" for name in CACHES)
# Masks add large negative numbers to what a softmax reads. Numbers beside these in a block would vanish.
WIDE_READERS = ("ttnn.softmax",)

Types = dict[Value, ir.Type]  # the types that changed values had before
Wanted = Callable[[Value], str | None]  # the data type of a value that may change, by its name as an option


def narrow_activations(module: ir.Module, precision: Precision) -> None:
    """Changes the types of values, and inserts no ops. Results of the program keep their types."""
    if not precision.has("activation_dtype"):
        return
    constant = constant_values(main(module))

    def wanted(value: Value) -> str | None:
        return precision.of(value.owner.operation)["activation_dtype"]

    with module.context, ir.Location.unknown():
        for op in [op.operation for op in block(main(module)).operations]:
            if op.name in PRODUCTS and op.results[0] not in constant:
                _narrow(op.results[0], wanted)


def narrow_caches(module: ir.Module, dtype: str | None) -> None:
    """Changes the types of the states that ops of caches update. Raises ConfigError if one must keep its own."""
    if dtype is None:
        return
    function = main(module)
    with module.context, ir.Location.unknown():
        for op in [op.operation for op in block(function).operations]:
            cache = op.operands[0] if op.name in UPDATES else None
            copied = producer(cache, "ttnn.typecast") if cache is not None else None
            if copied is not None and _is_state(function, copied.operands[0]):
                raise _refused(op, dtype, "it updates a copy of the cache, which has another type")
            if cache is None or not _is_state(function, cache) or layout_of(cache).dtype == BLOCK_FLOATS[dtype]:
                continue
            if reason := _narrow(cache, lambda value: dtype):
                raise _refused(op, dtype, reason)
            _cast_fills(cache)
        _retype(function)


def _is_state(function: ir.Operation, value: Value) -> bool:
    return isinstance(value.owner, ir.Block) and argument_kind(function, value.arg_number) == "state"


def _refused(op: Op, dtype: str, reason: str) -> ConfigError:
    where = f"{op.operation.name} at {describe(op.location)}"
    return ConfigError("kv_cache_dtype", dtype, f"None for the cache of {where}, because {reason}")


def _cast_fills(cache: Value) -> None:
    """The library fills a cache only with entries of its type."""
    for op in users(cache):
        if "fill" in op.name:
            new = op.operands[1]
            kind = with_layout(shape(new), layout_of(new).with_(dtype=layout_of(cache).dtype))
            op.operands[1] = Builder(ir.InsertionPoint(op), op.location)("ttnn.typecast", new, type=kind)


def _retype(function: ir.Operation) -> None:
    """Gives a function the types that its arguments and returned values have now."""
    body = block(function)
    results = [value.type for value in list(body.operations)[-1].operands]
    kind = ir.FunctionType.get([value.type for value in body.arguments], results)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)


def _narrow(start: Value, wanted: Wanted) -> str:
    """Changes a value, and all values whose type follows from its type. Returns why none of them has changed, or ""."""
    before: Types = {}
    reason = _spread(start, before, wanted)
    made = [value.owner.operation for value in before if not isinstance(value.owner, ir.Block)]
    readers = [user for value in before for user in users(value) if not _adapts(value, user)]
    refused = (f"the library does not take {op.name} with {why}" for op in made + readers if (why := refusal(op)))
    if reason := reason or next(refused, ""):
        for value, kind in before.items():
            value.set_type(kind)
    return reason


def _adapts(value: Value, user: Op) -> bool:
    """Whether an op takes a state in any type: the function returns it, or a cast adapts what fills it."""
    is_state = isinstance(value.owner, ir.Block)
    return is_state and (user.name == "func.return" or (user.name in UPDATES and "fill" in user.name))


def _spread(value: Value, before: Types, wanted: Wanted) -> str:
    """Changes a value, and all values whose type follows from its type. Returns why one of them must not change."""
    layout, dtype = layout_of(value), wanted(value)
    if dtype is None or layout.dtype != "BFloat16" or not layout.tiled:
        return f"a value is {layout.dtype} in {layout.page_layout}, and only BFloat16 in tiles changes"
    before[value] = value.type
    value.set_type(with_layout(shape(value), layout.with_(dtype=BLOCK_FLOATS[dtype])))
    for user in users(value):
        if _adapts(value, user):
            continue
        if user.name not in RULES or user.name in WIDE_READERS or not takes(user, value):
            return f"{user.name} takes no block floats"
        for result, made in zip(user.results, RULES[user.name].makes(user), strict=True):
            if layout_of(result).dtype != made.dtype and (reason := _spread(result, before, wanted)):
                return reason
    return ""

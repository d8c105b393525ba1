"""Declares ops. Each op has one `OpDef`. Its IRDL definition, builder, readers, verifier and serialization are derived
from it.

A declaration is a row, `declare(Dialect, "conv2d", operands="input weight bias?", attrs={...}, infer=rule)`:
operands are names; `?` marks an optional operand and `*` a variadic one. Attributes map a name to its kind, or to
`(kind, default)`. With a default of None, the attribute may be absent.
"""

from __future__ import annotations

import io
import keyword
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import ext

from tt_torch.mlir.types import Attr, Attrs, Infer, Op, Operand

REQUIRED = object()
# In IRDL, all values of a variadic operand must have one type. So a variadic operand is declared as this number of
# optional ones. For a longer list, builders nest ops.
LONGEST_VARIADIC = 32


def _int(width: int) -> Callable[[int], ir.Attribute]:
    return lambda value: ir.IntegerAttr.get(ir.IntegerType.get_signless(width), value)


def _dict(value: Attrs) -> ir.DictAttr:
    return ir.DictAttr.get({k: to_attr("any", v) for k, v in value.items() if v is not None})


def _any(value: Attr) -> ir.Attribute:
    """The attribute of a plain Python value. It is for nested records, whose exact types are in the wire table."""
    if isinstance(value, ir.Attribute):
        return value
    kinds = {bool: "bool", int: "i64", float: "f64", str: "str", dict: "dict"}
    if type(value) in kinds:
        return to_attr(kinds[type(value)], value)
    if isinstance(value, Sequence) and all(type(v) is int for v in value):
        return to_attr("i64s", value)
    return ir.ArrayAttr.get([_any(v) for v in value])


# kind -> how a Python value becomes an attribute. `from_attr` is the other direction.
TO_ATTR: dict[str, Callable[[Attr], ir.Attribute]] = {
    "bool": lambda v: ir.BoolAttr.get(bool(v)),
    "i32": _int(32),
    "i64": _int(64),
    "f32": lambda v: ir.FloatAttr.get(ir.F32Type.get(), v),
    "f64": lambda v: ir.FloatAttr.get(ir.F64Type.get(), v),
    "i64s": lambda v: ir.DenseI64ArrayAttr.get(list(v)),
    "str": lambda v: ir.StringAttr.get(v),
    "type": lambda v: ir.TypeAttr.get(v),
    "symbol": lambda v: ir.FlatSymbolRefAttr.get(v),
    "dict": _dict,
    "any": _any,
}


def to_attr(kind: str, value: Attr) -> ir.Attribute:
    """The MLIR attribute of `kind` for a Python value; attributes pass through."""
    return value if isinstance(value, ir.Attribute) else TO_ATTR[kind](value)


def from_attr(attribute: ir.Attribute) -> Attr:
    """The Python value of an attribute that `to_attr` has made. Elements attributes are returned unchanged."""
    if isinstance(attribute, ir.DictAttr):
        return {named.name: from_attr(named.attr) for named in attribute}
    if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr):
        return list(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        return [from_attr(a) for a in attribute]
    if isinstance(attribute, ir.DenseElementsAttr | ir.DenseResourceElementsAttr):
        return attribute
    return attribute.value if hasattr(attribute, "value") else attribute


@dataclass(frozen=True)
class OperandDef:
    name: str
    variadicity: str  # "", "?" optional, "*" variadic


@dataclass(frozen=True)
class OpDef:
    """The declaration of an op. `facts` has what a level adds, such as the wire table and layouts of operands."""

    name: str
    operands: tuple[OperandDef, ...]
    attrs: dict[str, tuple[str, Attr]]
    results: tuple[str, ...]
    infer: Infer | None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def segmented(self) -> bool:
        return any(o.variadicity for o in self.operands)


OPS: dict[str, OpDef] = {}


def _operand(spec: str) -> OperandDef:
    return OperandDef(spec.rstrip("?*"), spec[-1] if spec[-1] in "?*" else "")


def _operand_fields(op: OpDef) -> dict[str, object]:
    fields: dict[str, object] = {}
    for o in op.operands:
        # The name "in" is frequent in the wire format, but it cannot be a parameter of the class's constructor.
        name = f"{o.name}_" if keyword.iskeyword(o.name) else o.name
        if o.variadicity == "*":
            fields |= {f"{name}_{i}": ext.Operand[Any] | None for i in range(LONGEST_VARIADIC)}
        else:
            fields[name] = ext.Operand[Any] | None if o.variadicity == "?" else ext.Operand[Any]
    return fields


def _segments(spec: OperandDef, size: int) -> list[int]:
    """The entries of operandSegmentSizes for an operand that has `size` values."""
    if spec.variadicity != "*":
        return [size]
    if size > LONGEST_VARIADIC:
        raise ValueError(f"{spec.name} takes up to {LONGEST_VARIADIC} values, got {size}")
    return [int(i < size) for i in range(LONGEST_VARIADIC)]


def emitted_once(dialect: type[ext.Dialect]) -> type[ext.Dialect]:
    """Caches the IRDL module of a dialect as bytecode: parsing it per context is faster than making it op by op."""
    emit = dialect._emit_module

    @cache
    def bytecode() -> bytes:
        buffer = io.BytesIO()
        emit().operation.write_bytecode(buffer)
        return buffer.getvalue()

    dialect._emit_module = staticmethod(lambda: ir.Module.parse(bytecode()))
    return dialect


def declare(
    dialect: type[ext.Dialect],
    name: str,
    operands: str = "",
    attrs: Mapping[str, str | tuple[str, Attr]] | None = None,
    results: str = "result",
    infer: Infer | None = None,
    pure: bool = True,
    **facts: Any,
) -> OpDef:
    """Declares `<dialect>.<name>`: registers its `OpDef` and its IRDL class."""
    kinds = {k: v if isinstance(v, tuple) else (v, REQUIRED) for k, v in (attrs or {}).items()}
    full = f"{dialect.DIALECT_NAMESPACE}.{name}"
    op = OpDef(full, tuple(map(_operand, operands.split())), kinds, tuple(results.split()), infer, facts)
    fields = _operand_fields(op)
    # IRDL has no optional attributes, so an attribute that may be absent is not declared.
    fields |= {a: Any for a, (_, default) in kinds.items() if default is not None}
    fields |= dict.fromkeys(op.results, ext.Result[Any])
    traits = [ext.Pure] if pure else []
    types.new_class(
        name, (dialect.Operation,), {"name": name, "traits": traits}, lambda ns: ns.update(__annotations__=fields)
    )
    OPS[full] = op
    return op


def build(
    name: str,
    operands: Sequence[Operand],
    attrs: Attrs,
    result_types: Sequence[ir.Type],
    ip: ir.InsertionPoint | None = None,
    loc: ir.Location | None = None,
) -> ir.Operation:
    """Creates the declared op `name`, at the current insertion point and location unless others are given.

    `operands` are in the order of the declaration. An absent optional operand is None, and a variadic one is a list.
    Raises TypeError if an attribute or operand is missing, if an attribute is unknown, or if there are too many
    operands. Raises ValueError if a variadic operand has too many values.
    """
    op = OPS[name]
    encoded = {}
    for key, (kind, default) in op.attrs.items():
        value = attrs.get(key, default)
        if value is REQUIRED:
            raise TypeError(f"{name} needs attribute {key}")
        if value is not None:
            encoded[key] = to_attr(kind, value)
    if unknown := attrs.keys() - op.attrs.keys():
        raise TypeError(f"{name} has no attribute {', '.join(sorted(unknown))}")
    if len(operands) > len(op.operands):
        raise TypeError(f"{name} takes {len(op.operands)} operands, got {len(operands)}")
    values: list[ir.Value] = []
    segments = []
    for spec, given in zip(op.operands, [*operands, *[None] * (len(op.operands) - len(operands))], strict=True):
        group = list(given) if spec.variadicity == "*" else [] if given is None else [given]
        if not spec.variadicity and not group:
            raise TypeError(f"{name} needs operand {spec.name}")
        segments += _segments(spec, len(group))
        values += group
    if op.segmented:
        encoded["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    return ir.Operation.create(name, list(result_types), values, encoded, loc=loc, ip=ip)


def attr(op: Op, name: str) -> Attr:
    """The Python value of an attribute; None if it is absent."""
    attributes = op.operation.attributes
    return from_attr(attributes[name]) if name in attributes else None


def attrs_of(op: Op) -> Attrs:
    """All declared attributes of an op as Python values; absent ones are None."""
    operation = op.operation
    attributes = operation.attributes
    return {n: from_attr(attributes[n]) if n in attributes else None for n in OPS[operation.name].attrs}


def operands_of(op: Op) -> dict[str, Operand]:
    """Operands by declared name: a value, None if it is absent, a list for a variadic operand."""
    declaration, values = OPS[op.operation.name], list(op.operation.operands)
    if not declaration.segmented:
        return dict(zip((o.name for o in declaration.operands), values, strict=True))
    sizes = list(op.operation.attributes["operandSegmentSizes"])
    named: dict[str, Operand] = {}
    for spec in declaration.operands:
        entries = LONGEST_VARIADIC if spec.variadicity == "*" else 1
        count = sum(sizes[:entries])
        group, values, sizes = values[:count], values[count:], sizes[entries:]
        named[spec.name] = group if spec.variadicity == "*" else group[0] if group else None
    return named


def operand(op: Op, name: str) -> Operand:
    """One operand by its declared name."""
    return operands_of(op)[name]

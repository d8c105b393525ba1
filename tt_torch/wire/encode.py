"""Encodes a message (nested plain Python, see decode.py) as the bytes of a `.ttnn` or `.ttsys` file.

Equal strings, vectors and tables are written once. They are recognised by content while the file is built from its
leaves up, so the same TensorRef in twenty ops costs twenty offsets and one table. The bytes therefore depend only on
the content of the message, not on the identity of its dicts.

A field that is absent or None is not written. A plain scalar that equals its default is not written either. An optional
scalar that has a value is always written, because its absence does not mean the default.

The work is done in C++ (`bindings/`) with the builder of the flatbuffers library. The C++ code knows no schema: it gets
a plan that is made here from a schema.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from tt_torch.errors import SchemaError, TTTorchError, add_note
from tt_torch.wire._encoder import Plan, write
from tt_torch.wire.messages import Value
from tt_torch.wire.schema import DEFAULT, FORMATS, Enum, Field, Schema, load

# A field in the plan: name, kind, number of its type or enum, size and alignment in bytes, True for a vector, and its
# slot or offset.
_Row = tuple[str, str, int, int, int, bool, int]


class EncodeError(TTTorchError, ValueError):
    """A message does not fit its schema: a bug of the step that built it."""

    def __init__(self, field: str, got: object, accepted: str) -> None:
        text = repr(got)
        super().__init__(f"{field}: got {text[:80]}{'...' if len(text) > 80 else ''}, expected {accepted}")
        self.field, self.got, self.accepted = field, got, accepted


def encode(message: Mapping[str, Value], schema: str | None = None) -> bytes:
    """The bytes of a whole file.

    `schema` is a hash or its beginning. Without it, `schema_hash` of the message names the schema. If the message has
    none, the schema is `DEFAULT`. The file always contains the hash of its schema.

    Raises SchemaError if the message names another schema than `schema`, because its fields and members are named as in
    that other version. Raises EncodeError if the message does not fit the schema; its notes are the path to the field.
    """
    named = message.get("schema_hash")
    table = load(schema or named or DEFAULT)
    if named not in (None, table.hash):
        raise SchemaError(f"the message is for schema {named!r} and cannot be written with schema {table.hash!r}")
    fields = {**message, "schema_hash": table.hash}
    data: bytes = write(plan(table), fields, partial(_error, table))
    return data


def _error(schema: Schema, table: str, name: object, got: object, path: Sequence[str]) -> EncodeError:
    """The error for a value `got` of the table's field `name`; if `name` is None, for a value in place of the table."""
    fields = {field.name: field for field in _written(schema.fields(table))}
    if name is None:
        error = EncodeError(table, got, "a dict from field to value")
    elif name in fields:
        error = EncodeError(f"{table}.{name}", got, _accepted(schema, fields[name]))
    else:
        error = EncodeError(f"{table}.{name}", got, f"one of the fields {', '.join(fields)}")
    for step in path:
        add_note(error, f"in {step}")
    return error


def _accepted(schema: Schema, field: Field) -> str:
    """The values that a field accepts, for error messages."""
    kind, ref = field.element or field.type, field.ref
    if kind == "union":
        text = f"{{member: table}} with one of {', '.join(schema.enum(ref).refs)}"
    elif kind in FORMATS:
        text = f"one of {', '.join(schema.enum(ref).values)}" if ref else kind
    elif kind == "obj":
        names = ", ".join(f.name for f in schema.struct(ref).fields) if schema.is_struct(ref) else ref
        text = f"a dict of {names}"
    else:
        text = kind
    return f"a list, each {text}" if field.type == "vector" else text


def _written(fields: Sequence[Field]) -> Iterator[Field]:
    """The fields that messages have. The tags of a union are not among them: they follow from its members' names."""
    return (field for field in fields if "utype" not in (field.type, field.element))


@cache
def plan(schema: Schema) -> Plan:
    """The schema with numbers in place of names. `bindings/plan.cpp` describes its rows."""
    types = {name: i for i, name in enumerate((*schema.tables, *schema.structs))}
    enums = {name: i for i, name in enumerate(schema.enums)}
    rows = [
        (name.rpartition(".")[2], [_field(schema, types, enums, f) for f in _written(_fields(schema, name))])
        for name in types
    ]
    return Plan(schema.file_ident, types[schema.root], rows, [_enum(types, schema.enum(name)) for name in enums])


def _fields(schema: Schema, name: str) -> Sequence[Field]:
    return schema.struct(name).fields if schema.is_struct(name) else schema.fields(name)


def _enum(types: dict[str, int], enum: Enum) -> tuple[dict[str, int], set[int], bool, list[tuple[int, int]]]:
    if not enum.is_union:
        return enum.values, set(enum.names), enum.flags, []
    members = [(enum.values[name], types[table]) for name, table in enum.refs.items()]
    return {name: i for i, name in enumerate(enum.refs)}, set(), False, members


def _field(
    schema: Schema, types: dict[str, int], enums: dict[str, int], field: Field
) -> tuple[_Row, int | float | None]:
    """The field's row, and the value that is not written because it is the default (None if all are written)."""
    kind, ref = field.element or field.type, types.get(field.ref, enums.get(field.ref, -1))
    if kind in FORMATS:
        size = struct.calcsize("<" + FORMATS[kind])
        value = FORMATS[kind], ref, size, size
    elif schema.is_struct(field.ref):
        layout = schema.struct(field.ref)
        value = "S", ref, layout.size, layout.align
    else:
        value = {"string": "s", "obj": "t", "union": "u"}[kind], ref, 4, 4
    is_table_scalar = field.type in FORMATS and field.id >= 0
    place = field.id if field.id >= 0 else field.offset
    omitted = field.default if is_table_scalar and not field.optional else None
    return (sys.intern(field.name), *value, field.type == "vector", place), omitted

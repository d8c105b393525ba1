"""Converts a message to the JSON form that FlatBuffers' own tools write, and therefore tt-mlir's `ttrt read`.

It differs from a message in three points. A union has a second field that names its member: `type_type` beside `type`,
with "NONE" if there is no value. An optional scalar that the file lacks is null. Bytes are lists of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tt_torch.wire.messages import File, Value
from tt_torch.wire.schema import FORMATS, Field, Schema, load

Json: TypeAlias = "str | int | float | list[Json] | dict[str, Json] | None"
Form = Callable[[bytes], Json]


def as_json(message: File, form: Form = list) -> dict[str, Json]:
    """Converts the message of a whole file (`decode`) to values for `json.dumps`. `form` converts bytes."""
    schema = load(message["schema_hash"])
    return _table(schema, schema.root, message, form)


def _table(schema: Schema, table: str, message: Mapping[str, Value], form: Form) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for field in schema.fields(table):
        if "utype" in (field.type, field.element):
            continue
        if field.name in message:
            value = message[field.name]
            if isinstance(value, str | int | float):
                out[field.name] = value
            else:
                out |= _field(schema, field, value, form)
        elif field.type == "union":
            out[field.name + "_type"] = "NONE"
        elif field.type in FORMATS:
            out[field.name] = None
    return out


def _field(schema: Schema, field: Field, value: Value, form: Form) -> dict[str, Json]:
    if isinstance(value, bytes):
        return {field.name: form(value)}
    vector = field.type == "vector"
    forms = {field.name: list(value) if vector else [value]}
    if "union" in (field.type, field.element):
        members = [next(iter(item.items())) for item in forms[field.name]]
        tables = schema.enum(field.ref).refs
        forms[field.name + "_type"] = [name for name, _ in members]
        forms[field.name] = [_table(schema, tables[name], table, form) for name, table in members]
    elif "obj" in (field.type, field.element) and not schema.is_struct(field.ref):
        forms[field.name] = [_table(schema, field.ref, item, form) for item in forms[field.name]]
    return {name: items if vector else items[0] for name, items in forms.items()}

"""A message (nested plain Python, see decode.py) to the bytes of a `.ttnn` or `.ttsys` file.

What is equal is written once: strings, vectors and tables are interned by content while the file is
built from its leaves up, so the same TensorRef in twenty ops costs twenty offsets and one table. That
also makes the bytes a function of the message alone, whichever dict objects it is made of.

Absent and None mean "not in the file". Plain scalars equal to their default are left out;
optional-with-null scalars are written whatever their value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from flatbuffers import Builder

from tt_torch.errors import SchemaError, TTTorchError
from tt_torch.wire import scalars
from tt_torch.wire.schema import DEFAULT, FORMATS, Field, Schema, load

_INITIAL_BYTES = 1 << 16
_MISFITS = (TypeError, ValueError, KeyError, OverflowError, struct.error)


class EncodeError(TTTorchError, ValueError):
    """A message does not fit its schema: a bug of the step that built it."""

    def __init__(self, field: str, got: object, accepted: str) -> None:
        text = repr(got)
        super().__init__(f"{field}: got {text[:80]}{'...' if len(text) > 80 else ''}, accepted is {accepted}")
        self.field, self.got, self.accepted = field, got, accepted


def encode(message: dict, schema: str | None = None) -> bytes:
    """The bytes of a whole file.

    The schema is the named one (a hash or its beginning), else the one that the message itself names in
    `schema_hash`, else `DEFAULT`. The file always carries its hash; a message that names another is an
    error, because its member and field names are those of the other version.
    """
    named = message.get("schema_hash")
    table = load(schema or named or DEFAULT)
    if named not in (None, table.hash):
        raise SchemaError(f"the message is for schema {named!r} and was to be written as {table.hash!r}")
    encoder = _Encoder()
    root = encoder.table(_plan(table, table.root), message if named else message | {"schema_hash": table.hash})
    encoder.builder.FinishSizePrefixed(root, table.file_ident.encode())
    return bytes(encoder.builder.Output())


class _Encoder:
    """A file while it is built: the library's builder, and what is already in the file."""

    def __init__(self) -> None:
        self.builder = Builder(_INITIAL_BYTES)
        self._by_content: dict[object, int] = {}
        # Only saves time: a dict met again need not be walked to find out that it is known. The message
        # keeps all dicts alive, so an id stands for one of them.
        self._by_identity: dict[tuple[int, str], int] = {}

    def once(self, key: object, write: Callable[..., int], *args: Any) -> int:
        """The offset of the object with this content, written now if it is new."""
        offset = self._by_content.get(key)
        if offset is None:
            offset = self._by_content[key] = write(*args)
        return offset

    def table(self, plan: _TablePlan, message: dict) -> int:
        identity = (id(message), plan.name)
        offset = self._by_identity.get(identity)
        if offset is None:
            slots = plan.prepare(self, message)
            offset = self.once((plan.name, *slots.items()), self._write_table, plan, slots)
            self._by_identity[identity] = offset
        return offset

    def _write_table(self, plan: _TablePlan, slots: dict[int, Any]) -> int:
        builder = self.builder
        builder.StartObject(plan.slots)
        for slot, place in plan.places:
            if slot in slots:
                place(builder, slots[slot])
                builder.Slot(slot)
        return builder.EndObject()

    def vector(self, width: int, align: int, place: Callable[[Builder, Any], None], items: tuple) -> int:
        builder = self.builder
        builder.StartVector(width, len(items), align)
        for item in reversed(items):
            place(builder, item)
        return builder.EndVector()


_Put = Callable[[_Encoder, Any, dict[int, Any]], None]  # converts a value and enters it under its slot
_Write = Callable[[_Encoder, Any], int]  # writes a value, gives its offset


@dataclass(frozen=True, slots=True)
class _TablePlan:
    """How a table is written: `fields` in the order of the schema, `places` the widest slot first."""

    name: str
    slots: int
    fields: tuple[tuple[str, str, _Put], ...]  # name, what it accepts, how it is entered
    places: tuple[tuple[int, Callable[[Builder, Any], None]], ...]

    def prepare(self, encoder: _Encoder, message: dict) -> dict[int, Any]:
        """Slot -> what goes there, with everything it refers to already written."""
        if not isinstance(message, dict):
            raise EncodeError(self.name, message, "a dict from field to value")
        slots: dict[int, Any] = {}
        known = 0
        for name, accepted, put in self.fields:
            if name not in message:
                continue
            known += 1
            value = message[name]
            if value is not None:
                self._enter(encoder, name, accepted, put, value, slots)
        if known != len(message):
            names = [name for name, _, _ in self.fields]
            unknown = next(key for key in message if key not in names)
            raise EncodeError(f"{self.name}.{unknown}", message[unknown], f"one of the fields {', '.join(names)}")
        return slots

    def _enter(self, encoder: _Encoder, name: str, accepted: str, put: _Put, value: Any, slots: dict) -> None:
        try:
            put(encoder, value, slots)
        except EncodeError as error:
            error.add_note(f"in {self.name}.{name}")
            raise
        except _MISFITS as error:
            raise EncodeError(f"{self.name}.{name}", value, accepted) from error


@cache
def _plan(schema: Schema, table: str) -> _TablePlan:
    fields, puts, places = schema.fields(table), [], []
    for field in fields:
        width, place = _place(schema, field)
        places.append((width, field.id, place))
        if "utype" not in (field.type, field.element):  # the union in the next slot enters its tag
            puts.append((field.name, scalars.accepted(schema, field), _put(schema, field)))
    # Wide fields first needs the least padding. Places are written from the end of the table to its front.
    places.sort(key=lambda entry: (entry[0], -entry[1]))
    return _TablePlan(
        table.rpartition(".")[2], len(fields), tuple(puts), tuple((slot, place) for _, slot, place in places)
    )


def _place(schema: Schema, field: Field) -> tuple[int, Callable[[Builder, Any], None]]:
    """Alignment of a field in its table, and what puts its prepared value there."""
    if field.type in FORMATS:
        return struct.calcsize("<" + FORMATS[field.type]), scalars.PREPEND[field.type]
    if field.type == "obj" and schema.is_struct(field.ref):
        return schema.struct(field.ref).align, scalars.place_struct(schema, field.ref)
    return 4, Builder.PrependUOffsetTRelative


def _put(schema: Schema, field: Field) -> _Put:
    slot = field.id
    if field.type == "union":
        return _put_union(schema, field)
    if field.element == "union":
        return _put_union_vector(schema, field)
    if field.type in FORMATS:
        return _put_scalar(schema, field)
    if field.type == "obj" and schema.is_struct(field.ref):
        flatten = scalars.flattener(schema, field.ref)
        return lambda encoder, value, slots: slots.__setitem__(slot, tuple(flatten(value)))
    write = _vector(schema, field) if field.type == "vector" else _writer(schema, field.type, field.ref)
    return lambda encoder, value, slots: slots.__setitem__(slot, write(encoder, value))


def _put_scalar(schema: Schema, field: Field) -> _Put:
    convert = scalars.number(schema, field.type, field.ref)
    default = None if field.optional else convert(field.default)
    slot = field.id

    def put(encoder: _Encoder, value: Any, slots: dict[int, Any]) -> None:
        number = convert(value)
        if number != default:
            slots[slot] = number

    return put


def _writer(schema: Schema, kind: str, ref: str) -> _Write:
    """Writer of a string or a table."""
    if kind == "string":
        return _write_string
    return lambda encoder, value: encoder.table(_plan(schema, ref), value)


def _write_string(encoder: _Encoder, value: str) -> int:
    if not isinstance(value, str):
        raise TypeError
    return encoder.once(value, encoder.builder.CreateString, value)


def _vector(schema: Schema, field: Field) -> _Write:
    if field.element in FORMATS:
        return _number_vector(schema, field)
    if field.element == "obj" and schema.is_struct(field.ref):
        layout, place = schema.struct(field.ref), scalars.place_struct(schema, field.ref)
        flatten = scalars.flattener(schema, field.ref)

        def write_structs(encoder: _Encoder, value: Any) -> int:
            items = tuple(tuple(flatten(item)) for item in _sequence(value))
            return encoder.once((field.ref, items), encoder.vector, layout.size, layout.align, place, items)

        return write_structs
    write = _writer(schema, field.element, field.ref)

    def write_objects(encoder: _Encoder, value: Any) -> int:
        return _offsets(encoder, field.ref, tuple(write(encoder, item) for item in _sequence(value)))

    return write_objects


def _offsets(encoder: _Encoder, ref: str, items: tuple[int, ...]) -> int:
    key = (ref, "offsets", items)
    return encoder.once(key, encoder.vector, 4, 4, Builder.PrependUOffsetTRelative, items)


def _sequence(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise TypeError
    return value


def _number_vector(schema: Schema, field: Field) -> _Write:
    letter = FORMATS[field.element]
    dtype = np.dtype("<" + letter)
    convert = scalars.number(schema, field.element, field.ref) if field.ref else None

    def write(encoder: _Encoder, value: Any) -> int:
        raw = _raw(value, dtype, letter, convert)
        return encoder.once((field.element, field.ref, raw), _write_raw, encoder.builder, raw, dtype)

    return write


def _raw(value: Any, dtype: np.dtype, letter: str, convert: Callable[[Any], int] | None) -> bytes:
    """The little-endian bytes of a vector's elements, each checked to fit."""
    if letter == "B" and convert is None and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise ValueError
        if value.dtype == dtype and convert is None:
            return value.tobytes()
        value = value.tolist()
    items = [convert(item) for item in _sequence(value)] if convert else _sequence(value)
    return struct.pack(f"<{len(items)}{letter}", *items)


def _write_raw(builder: Builder, raw: bytes, dtype: np.dtype) -> int:
    if dtype.itemsize == 1:
        return builder.CreateByteVector(raw)
    return builder.CreateNumpyVector(np.frombuffer(raw, dtype))


def _put_union(schema: Schema, field: Field) -> _Put:
    slot, member = field.id, partial(_member, schema, field.ref)

    def put(encoder: _Encoder, value: Any, slots: dict[int, Any]) -> None:
        slots[slot - 1], slots[slot] = member(encoder, value)

    return put


def _put_union_vector(schema: Schema, field: Field) -> _Put:
    slot, member = field.id, partial(_member, schema, field.ref)

    def put(encoder: _Encoder, value: Any, slots: dict[int, Any]) -> None:
        pairs = [member(encoder, item) for item in _sequence(value)]
        tags = bytes(tag for tag, _ in pairs)
        slots[slot - 1] = encoder.once((field.ref, "tags", tags), encoder.builder.CreateByteVector, tags)
        slots[slot] = _offsets(encoder, field.ref, tuple(offset for _, offset in pairs))

    return put


def _member(schema: Schema, union: str, encoder: _Encoder, value: Any) -> tuple[int, int]:
    """Tag and offset of `{member: table}`."""
    enum = schema.enum(union)
    if not isinstance(value, dict):
        raise TypeError
    ((name, table),) = value.items()
    return enum.values[name], encoder.table(_plan(schema, enum.refs[name]), table)

"""Decodes the bytes of a `.ttnn` or `.ttsys` file into a message, for any schema that we have a table for.

A message is nested plain Python. A table is a dict from field to value, an enum is its member's name, a union is a dict
`{member: table}`, a struct is a dict, and a vector is a list (a vector of ubyte is bytes). Plain scalars are always
present, with their default if the file lacks them; every other field is present only if the file has it. A table that
several others refer to is one dict object, so do not change messages. Reading a part that a table lacks,
`table["part"]`, raises a BinaryFormatError, which names the table, its position and the part.

Bytes are not trusted. Every read is checked to lie inside the file. The sum of the sizes of all objects is limited to
twice the size of the file, because the objects of an honest file hardly overlap. This keeps crafted files from taking
unbounded time or memory. No table of the schemas is recursive, so the schema limits the depth.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias, cast

from tt_torch.errors import BinaryFormatError, SchemaError
from tt_torch.wire.messages import File, Record, Value
from tt_torch.wire.schema import FORMATS, Field, Schema, load

_IDENTIFIERS = (b"TTNN", b"TTSY")
_HASH_SLOT, _COMMIT_SLOT = 1, 2  # slots of the root table, the same in both formats and in all their versions so far
# The limit for the bytes that a file describes, relative to its size. An object that several others refer to counts for
# each of them. So the size of the file limits the work of a walk through the message. The C++ reader has the same rule.
_MOST_EXPANSION, _ALLOWANCE = 64, 1 << 20
_SHOWN_TEXT = 60  # characters of an op's text that an error shows
_MAX_TABLES = 1_000_000  # the limit of the FlatBuffers C++ verifier
_I32, _U32, _U16x2 = struct.Struct("<i"), struct.Struct("<I"), struct.Struct("<HH")


def decode(data: bytes | bytearray | memoryview) -> File:
    """Decodes the bytes of a file.

    Raises BinaryFormatError, which names the fault and its position, and SchemaError if we have no table for the file's
    schema.
    """
    return read(Reader(bytes(data)))


def read(reader: Reader) -> File:
    """Decodes the bytes of a reader. Raises the same errors as `decode`."""
    root = _check_container(reader.data)
    schema = _schema(reader.data, root)
    return cast(File, reader.table(_plan(schema, schema.root), root))


def _schema(data: bytes, root: int) -> Schema:
    reader = Reader(data)
    schema_hash = _root_text(reader, root, _HASH_SLOT)
    if not schema_hash:
        raise BinaryFormatError("the root table has no schema hash")
    try:
        schema = load(schema_hash)
    except SchemaError as error:
        commit = _root_text(reader, root, _COMMIT_SLOT) or "unknown"
        raise SchemaError(f"{error}; the file was written by tt-mlir of commit {commit}") from None
    if schema.file_ident.encode() != data[8:12]:
        raise BinaryFormatError(f"identifier {data[8:12]!r} does not belong to schema {schema.hash[:8]}")
    return schema


def _check_container(data: bytes) -> int:
    """Checks size and identifier of a file; returns the position of the root table."""
    if len(data) < 16:
        raise BinaryFormatError(f"not a TTNN binary: {len(data)} bytes are too few")
    if data[8:12] not in _IDENTIFIERS:
        raise BinaryFormatError(f"not a TTNN binary: byte 8 has identifier {data[8:12]!r}, not b'TTNN' or b'TTSY'")
    size = _U32.unpack_from(data)[0] + 4
    if size != len(data):
        raise BinaryFormatError(f"damaged: the size prefix says {size} bytes, but the file has {len(data)}")
    return 4 + int(_U32.unpack_from(data, 4)[0])


def _root_text(reader: Reader, root: int, slot: int) -> str:
    """A text field of the root table, read without its schema; "" if it is absent."""
    _, offsets = reader.vtable(root, "root table")
    if len(offsets) <= slot or not offsets[slot]:
        return ""
    return reader.string(reader.follow(root + offsets[slot], "root text"), "root text")


class Table(dict[str, Value]):
    """A table of a file. The format lets files leave out any part, so reading an absent part is an error of the file:
    it raises BinaryFormatError."""

    __slots__ = ("name", "position")

    def __init__(self, name: str, position: int) -> None:
        self.name, self.position = name, position

    def __missing__(self, part: str) -> Value:
        raise BinaryFormatError(f"{self.name} at byte {self.position} has no {part}")


class Reader:
    """Reads objects from bytes. It keeps every object that it has read, so that shared ones are read once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        # (position, type) -> the value, and the bytes that it describes
        self._seen: dict[tuple[int, object], tuple[Value, int]] = {}
        self._spent = 0  # the bytes that the objects read so far describe
        # Twice the size, because a writer may let equal vectors of different types share their bytes.
        self._bytes_left = 2 * len(data)
        self._tables_left = _MAX_TABLES

    def check(self, pos: int, size: int, what: str) -> None:
        if pos < 0 or pos + size > len(self.data):
            raise BinaryFormatError(f"{what}: bytes {pos} to {pos + size} are not inside the {len(self.data)} bytes")

    def charge(self, pos: int, size: int, what: str) -> None:
        self.check(pos, size, what)
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise BinaryFormatError(f"{what} at byte {pos}: objects overlap")
        self._spent += size

    def _again(self, found: tuple[Value, int]) -> Value:
        """Returns a value that was read before, and counts it again for the other object that refers to it."""
        value, size = found
        self._spent += size
        if self._spent > _MOST_EXPANSION * len(self.data) + _ALLOWANCE:
            raise BinaryFormatError(
                "not a valid TTNN binary: its objects refer to the same objects so often that they describe more than "
                f"{_MOST_EXPANSION} times its size"
            )
        return value

    def follow(self, pos: int, what: str) -> int:
        self.check(pos, 4, what)
        return pos + int(_U32.unpack_from(self.data, pos)[0])

    def once(self, key: object, read: Callable[[int, str], Value], pos: int, what: str) -> Value:
        """The value that `read` finds at `pos`; the same object for the same position and `key`."""
        found = self._seen.get((pos, key))
        if found is not None:
            return self._again(found)
        before = self._spent
        value = read(pos, what)
        self._seen[pos, key] = value, self._spent - before
        return value

    def vtable_position(self, table: int) -> int:
        """The vtable's position, which may be outside of the file. The table's first four bytes must be inside."""
        return table - int(_I32.unpack_from(self.data, table)[0])

    def vtable(self, pos: int, what: str) -> tuple[int, tuple[int, ...]]:
        """The inline size of the table at `pos`, and for each slot the field's offset in the table (0 = absent)."""
        self.check(pos, 4, what)
        vtable = self.vtable_position(pos)
        self.check(vtable, 4, f"vtable of {what}")
        vtable_size, size = _U16x2.unpack_from(self.data, vtable)
        if vtable_size < 4 or vtable_size % 2 or size < 4:
            raise BinaryFormatError(f"vtable of {what} at byte {vtable} has sizes {vtable_size} and {size}")
        self.check(vtable, vtable_size, f"vtable of {what}")
        self.check(pos, size, what)
        return size, struct.unpack_from(f"<{vtable_size // 2 - 2}H", self.data, vtable + 4)

    def table(self, plan: TablePlan, pos: int) -> Record:
        found = self._seen.get((pos, plan.name))
        if found is not None:
            return cast(Record, self._again(found))
        before = self._spent
        record = self._table(plan, pos)
        self._seen[pos, plan.name] = record, self._spent - before
        return record

    def _table(self, plan: TablePlan, pos: int) -> Record:
        size, offsets = self.vtable(pos, plan.name)
        self.charge(pos, size, plan.name)
        self._tables_left -= 1
        if self._tables_left < 0:
            raise BinaryFormatError(f"more than {_MAX_TABLES} tables")
        if len(offsets) > plan.slots:
            raise BinaryFormatError(f"{plan.name} at byte {pos} has {len(offsets)} slots, its schema has {plan.slots}")
        offsets += (0,) * (len(plan.widths) - len(offsets))
        for offset, width in zip(offsets, plan.widths, strict=True):
            if offset and not 4 <= offset <= size - width:
                raise BinaryFormatError(f"{plan.name} at byte {pos}: a field is not inside its {size} bytes")
        message = Table(plan.name, pos)
        for field in plan.fields:
            offset = offsets[field.id]
            if offset:
                message[field.name] = field.read(self, pos + offset)
            elif field.default is not None:
                message[field.name] = field.default
        for union in plan.unions:
            union(self, pos, offsets, message)
        return message

    def string(self, pos: int, what: str) -> str:
        self.check(pos, 4, what)
        size = _U32.unpack_from(self.data, pos)[0]
        self.charge(pos, 4 + size + 1, what)
        if self.data[pos + 4 + size]:
            raise BinaryFormatError(f"{what}: the text at byte {pos} does not end in a zero")
        try:
            return self.data[pos + 4 : pos + 4 + size].decode()
        except UnicodeDecodeError as error:
            raise BinaryFormatError(f"{what}: the text at byte {pos} is not UTF-8: {error.reason}") from None

    def vector(self, pos: int, width: int, what: str) -> tuple[int, int]:
        """The position of the first element, and the number of elements."""
        self.check(pos, 4, what)
        count = _U32.unpack_from(self.data, pos)[0]
        self.charge(pos, 4 + count * width, what)
        return pos + 4, count


_Read = Callable[[Reader, int], Value]  # (reader, position) -> the value of a field
_ReadVector = Callable[[Reader, int, str], Value]  # (reader, position, name for errors) -> the elements
# (reader, position of the table, offsets of its slots, message): adds a union to the message of its table.
_ReadUnion = Callable[[Reader, int, tuple[int, ...], Record], None]
_NameOf = Callable[[int, int], str | int]  # (number, position for errors) -> the enum's member


@dataclass(frozen=True, slots=True)
class _FieldPlan:
    name: str
    id: int
    read: _Read
    default: Value = None


# Name, offset, the format of a number or the plan of a nested struct, and the function that names an enum's member.
_StructField: TypeAlias = "tuple[str, int, struct.Struct | _StructPlan, _NameOf | None]"
_StructPlan: TypeAlias = tuple[_StructField, ...]


@dataclass(frozen=True, slots=True)
class TablePlan:
    name: str
    slots: int  # as many slots as a table of a file may have
    widths: tuple[int, ...]  # inline bytes per slot of the schema
    fields: tuple[_FieldPlan, ...]
    unions: tuple[_ReadUnion, ...]


@cache
def _plan(schema: Schema, table: str) -> TablePlan:
    name = table.rpartition(".")[2]
    fields = schema.fields(table)
    return TablePlan(
        name,
        schema.slots(table),
        tuple(_inline_size(schema, field) for field in fields),
        tuple(_field_plan(schema, name, f) for f in fields if not _of_union(f)),
        tuple(_union_reader(schema, name, f) for f in fields if "union" in (f.type, f.element)),
    )


def _of_union(field: Field) -> bool:
    return bool({field.type, field.element} & {"union", "utype"})


def _inline_size(schema: Schema, field: Field) -> int:
    if field.type == "obj" and schema.is_struct(field.ref):
        return schema.struct(field.ref).size
    return struct.calcsize("<" + FORMATS[field.type]) if field.type in FORMATS else 4


def _field_plan(schema: Schema, table: str, field: Field) -> _FieldPlan:
    what = f"{table}.{field.name}"
    if field.type not in FORMATS:
        return _FieldPlan(field.name, field.id, _object_reader(schema, field, what))
    unpack = struct.Struct("<" + FORMATS[field.type]).unpack_from
    name_of = _namer(schema, field, what)
    default = None
    if not field.optional:
        default = unpack(struct.pack("<" + FORMATS[field.type], field.default))[0]
        default = name_of(default, -1) if name_of else default
    if name_of:
        return _FieldPlan(field.name, field.id, lambda r, pos: name_of(unpack(r.data, pos)[0], pos), default)
    return _FieldPlan(field.name, field.id, lambda r, pos: unpack(r.data, pos)[0], default)


def _namer(schema: Schema, field: Field, what: str) -> _NameOf | None:
    """The function that names the members of a field's enum; None if the field has no enum."""
    if not field.ref:
        return None
    enum = schema.enum(field.ref)

    def name_of(value: int, pos: int) -> str | int:
        name = enum.names.get(value)
        if name is None and not enum.flags:
            raise BinaryFormatError(f"{what} at byte {pos}: {field.ref} has no member {value}")
        return value if name is None else name

    return name_of


def _object_reader(schema: Schema, field: Field, what: str) -> _Read:
    """The reader of a field that is not a scalar."""
    if field.type == "string":
        return lambda r, pos: r.once("string", r.string, r.follow(pos, what), what)
    if field.type == "vector":
        elements = _vector_reader(schema, field)
        return lambda r, pos: r.once((field.element, field.ref), partial(elements, r), r.follow(pos, what), what)
    if schema.is_struct(field.ref):
        return partial(_read_struct, _struct_plan(schema, field.ref), what)
    return lambda r, pos: r.table(_plan(schema, field.ref), r.follow(pos, what))


def _vector_reader(schema: Schema, field: Field) -> _ReadVector:
    if field.element in FORMATS:
        return _number_vector_reader(schema, field)
    if schema.is_struct(field.ref):
        plan, size = _struct_plan(schema, field.ref), schema.struct(field.ref).size

        def read_structs(r: Reader, pos: int, what: str) -> list[Record]:
            first, count = r.vector(pos, size, what)
            return [_read_struct(plan, what, r, first + i * size) for i in range(count)]

        return read_structs

    def read_objects(r: Reader, pos: int, what: str) -> list[Value]:
        first, count = r.vector(pos, 4, what)
        at = [r.follow(first + 4 * i, what) for i in range(count)]
        if field.element == "string":
            return [r.once("string", r.string, p, what) for p in at]
        plan = _plan(schema, field.ref)
        return [r.table(plan, p) for p in at]

    return read_objects


def _number_vector_reader(schema: Schema, field: Field) -> _ReadVector:
    letter = FORMATS[field.element]
    width = struct.calcsize("<" + letter)

    def read_numbers(r: Reader, pos: int, what: str) -> bytes | list[Value]:
        first, count = r.vector(pos, width, what)
        if letter == "B" and not field.ref:
            return r.data[first : first + count]
        numbers = struct.unpack_from(f"<{count}{letter}", r.data, first)
        name_of = _namer(schema, field, what)
        return [name_of(n, first) for n in numbers] if name_of else list(numbers)

    return read_numbers


def _union_reader(schema: Schema, table: str, field: Field) -> _ReadUnion:
    """The reader of a union. The slot before the union's value has its tags."""
    enum, what = schema.enum(field.ref), f"{table}.{field.name}"

    def member(r: Reader, tag: int, pos: int, message: Record) -> Record:
        name = enum.names.get(tag)
        if not tag or name is None:
            text = message.get("debug_info")
            said = f"; the text of the op: {text[:_SHOWN_TEXT]}" if text else ""
            raise BinaryFormatError(f"{what} at byte {pos}: {field.ref} has no member {tag}{said}")
        return {name: r.table(_plan(schema, enum.refs[name]), r.follow(pos, what))}

    def read_one(r: Reader, pos: int, offsets: tuple[int, ...], message: Record) -> None:
        tag = r.data[pos + offsets[field.id - 1]] if offsets[field.id - 1] else 0
        if bool(tag) != bool(offsets[field.id]):
            raise BinaryFormatError(f"{what} of the table at byte {pos}: tag {tag} does not fit the value")
        if tag:
            message[field.name] = member(r, tag, pos + offsets[field.id], message)

    def read_vector(r: Reader, pos: int, offsets: tuple[int, ...], message: Record) -> None:
        if not offsets[field.id] and not offsets[field.id - 1]:
            return
        if not offsets[field.id] or not offsets[field.id - 1]:
            raise BinaryFormatError(f"{what} of the table at byte {pos}: tags or values are missing")
        tags, tag_count = r.vector(r.follow(pos + offsets[field.id - 1], what), 1, what)
        first, count = r.vector(r.follow(pos + offsets[field.id], what), 4, what)
        if tag_count != count:
            raise BinaryFormatError(f"{what} of the table at byte {pos}: {tag_count} tags for {count} values")
        message[field.name] = [member(r, r.data[tags + i], first + 4 * i, message) for i in range(count)]

    return read_one if field.type == "union" else read_vector


def _struct_plan(schema: Schema, name: str) -> _StructPlan:
    return tuple(_struct_field(schema, name, field) for field in schema.struct(name).fields)


def _struct_field(schema: Schema, struct_name: str, field: Field) -> _StructField:
    if field.type == "obj":
        return field.name, field.offset, _struct_plan(schema, field.ref), None
    number = struct.Struct("<" + FORMATS[field.type])
    return field.name, field.offset, number, _namer(schema, field, f"{struct_name}.{field.name}")


def _read_struct(plan: _StructPlan, what: str, r: Reader, pos: int) -> Record:
    out: Record = {}
    for name, offset, part, name_of in plan:
        if isinstance(part, tuple):
            out[name] = _read_struct(part, what, r, pos + offset)
            continue
        value = part.unpack_from(r.data, pos + offset)[0]
        out[name] = name_of(value, pos + offset) if name_of else value
    return out

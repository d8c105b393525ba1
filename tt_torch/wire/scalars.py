"""Numbers and structs on their way into a file: checked, made integers, placed by the builder."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Any

from flatbuffers import Builder

from tt_torch.wire.schema import FORMATS, Field, Schema

# Floats travel as their bit patterns, so that equality of prepared values is equality of bytes
# (0.0 == -0.0 and nan != nan would not do).
PREPEND = {
    "bool": Builder.PrependBool, "byte": Builder.PrependInt8, "ubyte": Builder.PrependUint8,
    "utype": Builder.PrependUint8, "short": Builder.PrependInt16, "ushort": Builder.PrependUint16,
    "int": Builder.PrependInt32, "uint": Builder.PrependUint32, "long": Builder.PrependInt64,
    "ulong": Builder.PrependUint64, "float": Builder.PrependUint32, "double": Builder.PrependUint64,
}  # fmt: skip


def number(schema: Schema, kind: str, ref: str) -> Callable[[Any], int]:
    """Checked conversion of one scalar to the integer that is written."""
    letter = FORMATS[kind]
    if letter in "fd":
        bits = struct.Struct("<I" if letter == "f" else "<Q")
        return lambda value: bits.unpack(struct.pack("<" + letter, value))[0]
    pack = struct.Struct("<" + letter).pack
    if not ref:

        def integer(value: Any) -> int:
            if letter == "?":
                return (False, True).index(value)
            number = operator.index(value)
            pack(number)
            return number

        return integer
    enum = schema.enum(ref)

    def member(value: Any) -> int:
        number = enum.values[value] if isinstance(value, str) else operator.index(value)
        if number not in enum.names and not enum.flags:
            raise ValueError
        pack(number)
        return number

    return member


def flattener(schema: Schema, name: str) -> Callable[[Any], list[int]]:
    """Struct message to its numbers in order; each field must be given, since a struct has no defaults."""
    steps: list[tuple[str, Callable[[Any], Any]]] = []
    for field in schema.struct(name).fields:
        if field.type == "obj":
            steps.append((field.name, flattener(schema, field.ref)))
        else:
            steps.append((field.name, _listed(number(schema, field.type, field.ref))))

    def flatten(value: Any) -> list[int]:
        if not isinstance(value, dict) or len(value) != len(steps):
            raise TypeError
        out: list[int] = []
        for key, convert in steps:
            out += convert(value[key])
        return out

    return flatten


def _listed(convert: Callable[[Any], int]) -> Callable[[Any], list[int]]:
    return lambda value: [convert(value)]


def place_struct(schema: Schema, name: str) -> Callable[[Builder, tuple[int, ...]], None]:
    """What writes a flattened struct where the builder stands."""
    layout = schema.struct(name)
    steps = []  # from the last number to the first: padding after it, and what puts it there
    end = layout.size
    for offset, kind in reversed(_leaves(schema, name, 0)):
        steps.append((end - offset - struct.calcsize("<" + FORMATS[kind]), PREPEND[kind]))
        end = offset

    def place(builder: Builder, values: tuple[int, ...]) -> None:
        builder.Prep(layout.align, layout.size - layout.align)
        for (padding, prepend), value in zip(steps, reversed(values), strict=True):
            builder.Pad(padding)
            prepend(builder, value)

    return place


def _leaves(schema: Schema, name: str, base: int) -> list[tuple[int, str]]:
    """Offset and base type of each number in a struct, nested ones included."""
    out: list[tuple[int, str]] = []
    for field in schema.struct(name).fields:
        at = base + field.offset
        out += _leaves(schema, field.ref, at) if field.type == "obj" else [(at, field.type)]
    return out


def accepted(schema: Schema, field: Field) -> str:
    """What a field takes, for messages."""
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

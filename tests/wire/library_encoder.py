"""Encodes messages by the Python builder of the flatbuffers library, a field at a time.

This encoder is slow and has no code in common with `encode`. It stores equal tables and texts again each time; only
equal vtables are stored once.
"""

import struct

from flatbuffers import Builder

from tt_torch.wire.schema import FORMATS

PREPEND = {
    "?": Builder.PrependBool, "b": Builder.PrependInt8, "B": Builder.PrependUint8, "h": Builder.PrependInt16,
    "H": Builder.PrependUint16, "i": Builder.PrependInt32, "I": Builder.PrependUint32, "q": Builder.PrependInt64,
    "Q": Builder.PrependUint64, "f": Builder.PrependFloat32, "d": Builder.PrependFloat64,
}  # fmt: skip


def encode(schema, message):
    writer = Writer(schema)
    writer.builder.FinishSizePrefixed(writer.table(schema.root, message), schema.file_ident.encode())
    return bytes(writer.builder.Output())


class Writer:
    def __init__(self, schema):
        self.schema, self.builder = schema, Builder()

    def table(self, name, message):
        fields = {field.name: field for field in self.schema.fields(name)}
        slots = {}  # slot -> function that writes the field
        for key, value in message.items():
            field = fields[key]
            if "union" in (field.type, field.element):
                slots |= self.union(field, value)
            else:
                slots[field.id] = self.field(field, value)
        self.builder.StartObject(len(fields))
        for slot, place in slots.items():
            place()
            self.builder.Slot(slot)
        return self.builder.EndObject()

    def field(self, field, value):
        if field.type == "vector":
            return self.offset(self.vector(field, value))
        if field.type in FORMATS or self.is_struct(field):
            return lambda: self.inline(field, field.type, value)
        return self.offset(self.object(field, field.type, value))

    def is_struct(self, field):
        return "obj" in (field.type, field.element) and self.schema.is_struct(field.ref)

    def offset(self, target):
        return lambda: self.builder.PrependUOffsetTRelative(target)

    def object(self, field, kind, value):
        return self.builder.CreateString(value) if kind == "string" else self.table(field.ref, value)

    def inline(self, field, kind, value):
        """Writes a number or a struct. The builder gets a struct from its end to its beginning."""
        if kind in FORMATS:
            number = self.schema.enum(field.ref).values[value] if field.ref else value
            PREPEND[FORMATS[kind]](self.builder, number)
            return
        layout = self.schema.struct(field.ref)
        self.builder.Prep(layout.align, layout.size)
        start = self.builder.Offset() + layout.size
        for part in reversed(layout.fields):
            width = struct.calcsize(FORMATS[part.type]) if part.type in FORMATS else self.schema.struct(part.ref).size
            self.builder.Pad(start - self.builder.Offset() - part.offset - width)
            self.inline(part, part.type, value[part.name])

    def vector(self, field, values):
        if field.element in FORMATS or self.is_struct(field):
            layout = self.schema.struct(field.ref) if self.is_struct(field) else None
            width = layout.size if layout else struct.calcsize(FORMATS[field.element])
            self.builder.StartVector(width, len(values), layout.align if layout else width)
            for value in reversed(values):
                self.inline(field, field.element, value)
            return self.builder.EndVector()
        return self.offsets([self.object(field, field.element, value) for value in values])

    def offsets(self, targets):
        self.builder.StartVector(4, len(targets), 4)
        for target in reversed(targets):
            self.builder.PrependUOffsetTRelative(target)
        return self.builder.EndVector()

    def union(self, field, value):
        enum = self.schema.enum(field.ref)
        pairs = [next(iter(item.items())) for item in (value if field.type == "vector" else [value])]
        tags = bytes(enum.values[member] for member, _ in pairs)
        tables = [self.table(enum.refs[member], table) for member, table in pairs]
        if field.type == "vector":
            places = self.offset(self.builder.CreateByteVector(tags)), self.offset(self.offsets(tables))
        else:
            places = lambda: self.builder.PrependUint8(tags[0]), self.offset(tables[0])
        return dict(zip((field.id - 1, field.id), places, strict=True))

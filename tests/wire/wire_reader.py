"""A second reader of `.ttnn` files. It has no code in common with the reader of the package.

It follows the FlatBuffers format and the wire description of tt-mlir 19c86fca (tests/data/wire/ttnn_wire.json), and
nothing else. `check` walks every object of a file and raises AssertionError if anything is wrong. Its result has the
same form as the result of `tt_torch.wire.decode.decode`.
"""

import json
import struct
from functools import cache
from pathlib import Path

WIRE = Path(__file__).parents[1] / "data" / "wire" / "ttnn_wire.json"
NUMBERS = {
    "bool": "?", "byte": "b", "ubyte": "B", "utype": "B", "short": "h", "ushort": "H", "int": "i",
    "uint": "I", "long": "q", "ulong": "Q", "float": "f", "double": "d",
}  # fmt: skip


@cache
def wire():
    description = json.loads(WIRE.read_text())
    objects = {o["name"]: o for o in description["objects"]}
    enums = {e["name"]: e for e in description["enums"]}
    return description, objects, enums


def check(data):
    """Returns the message of a whole file, and checks every byte range, alignment, tag and enum value."""
    description, objects, _ = wire()
    size, root = struct.unpack_from("<II", data)
    assert size == len(data) - 4, "size prefix"
    assert data[8:12] == description["file_ident"].encode(), "identifier"
    return Walk(data).table(objects[description["root_table"]], 4 + root)


class Walk:
    def __init__(self, data):
        self.data = data
        self.known = {}

    def number(self, kind, at):
        width = struct.calcsize(NUMBERS[kind])
        # Alignment counts from the first byte of the file, the size prefix included.
        assert at % width == 0, f"{kind} at byte {at} is not aligned"
        assert 0 <= at <= len(self.data) - width, f"{kind} at byte {at} is outside"
        return struct.unpack_from("<" + NUMBERS[kind], self.data, at)[0]

    def target(self, at):
        return at + self.number("uint", at)

    def table(self, layout, at):
        key = (layout["name"], at)
        if key not in self.known:
            self.known[key] = self.read_table(layout, at)
        return self.known[key]

    def read_table(self, layout, at):
        vtable = at - self.number("int", at)
        slots = self.number("ushort", vtable)
        assert slots <= 4 + 2 * len(layout["fields"]), f"{layout['name']}: more slots than in the schema"
        places = {}
        for field in layout["fields"]:
            inside = self.number("ushort", vtable + field["offset"]) if field["offset"] < slots else 0
            assert inside < self.number("ushort", vtable + 2)
            places[field["name"]] = at + inside if inside else None
        message = {}
        for field in layout["fields"]:
            self.add_field(message, field, places)
        return message

    def add_field(self, message, field, places):
        name, kind, at = field["name"], field["base_type"], places[field["name"]]
        if "utype" in (kind, field.get("element")):
            return
        if kind == "union" or field.get("element") == "union":
            self.add_union(message, field, at, places[name + "_type"])
        elif at is not None:
            message[name] = self.vector(field, at) if kind == "vector" else self.value(field, kind, at)
        elif kind in NUMBERS and not field["optional"]:
            default = field.get("default_real", field.get("default_integer", 0))
            if kind == "float":
                (default,) = struct.unpack("<f", struct.pack("<f", default))
            message[name] = self.named(field, bool(default) if kind == "bool" else default)

    def value(self, field, kind, at):
        _, objects, _ = wire()
        if kind in NUMBERS:
            return self.named(field, self.number(kind, at))
        if kind == "string":
            return self.string(self.target(at))
        layout = objects[field["type"]]
        return self.struct(layout, at) if layout["is_struct"] else self.table(layout, self.target(at))

    def named(self, field, number):
        if "type" not in field:
            return number
        values = {v["value"]: v["name"] for v in wire()[2][field["type"]]["values"]}
        # ChipCapability is the only enum that is a set of bits. Its empty set has no name.
        assert number in values or field["type"].endswith("ChipCapability"), f"{field}: {number}"
        return values.get(number, number)

    def string(self, at):
        end = at + 4 + self.number("uint", at)
        assert self.number("ubyte", end) == 0, "a string without its zero"
        return self.data[at + 4 : end].decode()

    def struct(self, layout, at):
        assert at % layout["minalign"] == 0
        return {f["name"]: self.value(f, f["base_type"], at + f["offset"]) for f in layout["fields"]}

    def vector(self, field, at):
        element, start = field["element"], self.target(at)
        count = self.number("uint", start)
        if element == "ubyte" and "type" not in field:
            assert start + 4 + count <= len(self.data)
            return self.data[start + 4 : start + 4 + count]
        width = struct.calcsize(NUMBERS.get(element, "I"))
        if element == "obj" and wire()[1][field["type"]]["is_struct"]:
            width = wire()[1][field["type"]]["bytesize"]
        return [self.value(field, element, start + 4 + width * i) for i in range(count)]

    def add_union(self, message, field, at, tag_at):
        assert (at is None) == (tag_at is None), f"{field['name']}: tag without value or value without tag"
        if at is None:
            return
        if field["base_type"] == "union":
            message[field["name"]] = self.member(field, self.number("ubyte", tag_at), at)
            return
        tags, values = self.target(tag_at), self.target(at)
        count = self.number("uint", tags)
        assert count == self.number("uint", values)
        message[field["name"]] = [
            self.member(field, self.number("ubyte", tags + 4 + i), values + 4 + 4 * i) for i in range(count)
        ]

    def member(self, field, tag, at):
        _, objects, enums = wire()
        (member,) = (v for v in enums[field["type"]]["values"] if v["value"] == tag and tag)
        return {member["name"]: self.table(objects[member["union_type"]], self.target(at))}

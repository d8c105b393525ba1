"""Random messages of a schema, the messages that decoding should give for them, and the reference binaries."""

import random
import struct
from pathlib import Path

from tt_torch.wire.schema import FORMATS, load

DATA = Path(__file__).parents[1] / "data" / "wire"
REFERENCES = sorted(DATA.glob("*.ttnn"))
TEXTS = ("", "a", "ttnn.matmul", "Tensor → Gerät", "x" * 300)


class Maker:
    """Makes messages of a schema. `density` is the probability that a field is present."""

    def __init__(self, schema, rng, density=0.6):
        self.schema, self.rng, self.density = schema, rng, density

    def table(self, name, vector_limit=2):
        message = {}
        for field in self.schema.fields(name):
            if "utype" in (field.type, field.element) or self.rng.random() > self.density or not self.has_values(field):
                continue
            if field.type == "vector":
                count = self.rng.randint(0, vector_limit)
                value = [self.value(field, field.element) for _ in range(count)]
                message[field.name] = bytes(value) if field.element == "ubyte" and not field.ref else value
            else:
                message[field.name] = self.value(field, field.type)
        return message

    def has_values(self, field):
        """False if the field is an enum or a union without members in the schema. No file of its writer has one."""
        if field.ref not in self.schema.enums:
            return True
        enum = self.schema.enum(field.ref)
        return bool(enum.refs if enum.is_union else enum.values)

    def value(self, field, kind):
        if kind in FORMATS:
            return self.number(field, kind)
        if kind == "string":
            return self.rng.choice(TEXTS)
        if kind == "union":
            member, table = self.rng.choice(list(self.schema.enum(field.ref).refs.items()))
            return {member: self.table(table)}
        return self.struct(field.ref) if self.schema.is_struct(field.ref) else self.table(field.ref)

    def struct(self, name):
        return {f.name: self.value(f, f.type) for f in self.schema.struct(name).fields}

    def number(self, field, kind):
        if field.ref:
            return self.rng.choice(list(self.schema.enum(field.ref).values))
        letter = FORMATS[kind]
        if letter == "?":
            return self.rng.random() < 0.5
        if letter in "fd":
            value = self.rng.choice([0.0, -0.0, 1.0, 1e-12, float("inf"), self.rng.uniform(-9, 9)])
            return struct.unpack("<" + letter, struct.pack("<" + letter, value))[0]
        bits = 8 * struct.calcsize("<" + letter)
        low = -(1 << (bits - 1)) if letter.islower() else 0
        return self.rng.choice([0, 1, low, low + (1 << bits) - 1, self.rng.randrange(low, low + (1 << bits))])


def random_binary(schema_hash, seed, density=0.6):
    """A whole random message. It is larger for a larger density."""
    schema = load(schema_hash)
    message = Maker(schema, random.Random(seed), density).table(schema.root)
    return message | {"schema_hash": schema.hash}


def with_op(schema_hash, member, seed, density=0.9):
    """A message of one program with one operation of the given union member."""
    schema = load(schema_hash)
    op = Maker(schema, random.Random(seed), density).table(member)
    program = {"name": "main", "operations": [{"type": {member: op}, "loc_info": ""}]}
    return {"schema_hash": schema.hash, "programs": [program]}


def op_members(schema_hash):
    return sorted(load(schema_hash).enum("tt.target.ttnn.OpType").refs)


def normalised(schema, table, message):
    """The message that decoding should give: fields in the schema's order, absent plain scalars with their defaults."""
    out = {}
    for field in schema.fields(table):
        value = message.get(field.name)
        if value is None and field.type in FORMATS and not field.optional and field.type != "utype":
            value = float32(field.default) if field.type == "float" else field.default
            value = schema.enum(field.ref).names[value] if field.ref else value
        if value is not None:
            out[field.name] = _normalised_value(schema, field, value)
    return out


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def _normalised_value(schema, field, value):
    if isinstance(value, list):
        return [_normalised_value(schema, field, item) for item in value]
    if "union" in (field.type, field.element):
        ((member, table),) = value.items()
        return {member: normalised(schema, schema.enum(field.ref).refs[member], table)}
    if "obj" in (field.type, field.element) and not schema.is_struct(field.ref):
        return normalised(schema, field.ref, value)
    return value

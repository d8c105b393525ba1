"""Wire tables, one per schema hash. They are read from `schemas/*.json` at first use.

tt-mlir renumbers its op union and table fields from version to version. So a binary can only be read or written with
the table of exactly the schema whose hash it contains.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from typing_extensions import NotRequired, TypedDict

from tt_torch.errors import SchemaError

# The schema of tt-mlir 19c86fca (0.0.4013), with which binaries are written by default.
DEFAULT = "f36068002aa895e8e8abb85f8ea0b818812a4ffa7f2c24f3ede1df3183dd6478"
# The schema of system descriptor files, the same in both tt-mlir versions that we know.
SYSTEM_DESC = "92f6a8a87b72abd510d53425c6cd90ab2e8ba161928ee94c8bdd6680f51d9cdb"

# `struct` letters of the scalar base types. A union's tag has its own base type, utype.
FORMATS = {
    "bool": "?", "byte": "b", "ubyte": "B", "utype": "B", "short": "h", "ushort": "H",
    "int": "i", "uint": "I", "long": "q", "ulong": "Q", "float": "f", "double": "d",
}  # fmt: skip

_FOLDER = Path(__file__).with_name("schemas")
_DIGITS = 8  # digits of the hash in a file name


class RawField(TypedDict, total=False):
    """A field in `schemas/*.json`. An entry that equals the default of Field is left out."""

    name: str
    type: str
    id: int
    offset: int
    ref: str
    element: str
    default: int | float
    optional: bool


class RawTable(TypedDict):
    """A table in `schemas/*.json`.

    If `slots` is given, a file that sets a field with this id or a higher one is refused, because no file shows that
    the field is right.
    """

    fields: list[RawField]
    slots: NotRequired[int]


class RawStruct(TypedDict):
    fields: list[RawField]
    size: int
    align: int


class RawEnum(TypedDict):
    underlying: str
    is_union: bool
    values: dict[str, int]
    refs: NotRequired[dict[str, str]]
    flags: NotRequired[bool]


class RawSchema(TypedDict):
    """A file of `schemas/`. The keys of tables, structs and enums are their full names."""

    schema_hash: str
    ttmlir_git_hash: str
    version: list[int]
    file_ident: str
    root: str
    tables: dict[str, RawTable]
    structs: dict[str, RawStruct]
    enums: dict[str, RawEnum]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table, with an `id`, or of a struct, with an `offset`."""

    name: str
    type: str  # base type: one of FORMATS, or string, vector, obj, union
    id: int = -1
    offset: int = -1
    ref: str = ""  # the table, struct, union or enum that is the type of the field or of its elements
    element: str = ""  # the base type of a vector's elements
    default: int | float = 0
    optional: bool = False  # a scalar whose absence is not its default


@dataclass(frozen=True, slots=True)
class Struct:
    size: int
    align: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Enum:
    is_union: bool
    values: dict[str, int]
    names: dict[int, str]
    refs: dict[str, str]  # union member -> table
    flags: bool  # a set of bits, where numbers without a name are legal


class Schema:
    """One version of the format. Schemas are compared by identity; `load` returns the same object each time."""

    def __init__(self, raw: RawSchema) -> None:
        self.hash: str = raw["schema_hash"]
        self.git_hash: str = raw["ttmlir_git_hash"]
        major, minor, patch = raw["version"]
        self.version: tuple[int, int, int] = (major, minor, patch)
        self.file_ident: str = raw["file_ident"]
        self.root: str = raw["root"]
        self._tables, self._structs, self._enums = raw["tables"], raw["structs"], raw["enums"]
        self.tables, self.structs, self.enums = tuple(self._tables), tuple(self._structs), tuple(self._enums)
        self._full_names = {name.rpartition(".")[2]: name for name in self._tables}
        self.fields = cache(self._fields)
        self.struct = cache(self._struct)
        self.enum = cache(self._enum)

    def __repr__(self) -> str:
        return f"<Schema {self.file_ident} {self.hash[:_DIGITS]}>"

    def is_struct(self, name: str) -> bool:
        return name in self._structs

    def slots(self, table: str) -> int:
        """How many fields a table of a file may have; see RawTable."""
        raw = self._table(table)
        return raw.get("slots", len(raw["fields"]))

    def _table(self, table: str) -> RawTable:
        """A table, which may be named in full or by its last part (`"MatmulOp"`)."""
        full = table if table in self._tables else self._full_names.get(table)
        if full is None:
            raise SchemaError(f"schema {self.hash[:_DIGITS]} has no table {table!r}")
        return self._tables[full]

    def _fields(self, table: str) -> tuple[Field, ...]:
        return tuple(Field(**field) for field in self._table(table)["fields"])

    def _struct(self, name: str) -> Struct:
        raw = self._structs[name]
        return Struct(raw["size"], raw["align"], tuple(Field(**field) for field in raw["fields"]))

    def _enum(self, name: str) -> Enum:
        raw = self._enums[name]
        names = {value: key for key, value in raw["values"].items()}
        return Enum(raw["is_union"], raw["values"], names, raw.get("refs", {}), raw.get("flags", False))


def known() -> list[str]:
    """The schemas that we have tables for, as `<format>_<first digits of the hash>`."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


@cache
def load(schema_hash: str = DEFAULT) -> Schema:
    """The schema with this hash. An unambiguous beginning is enough. Raises SchemaError if there is no such schema."""
    paths = [path for path in _FOLDER.glob("*.json") if _matches(path, schema_hash)]
    schema = _read(paths[0]) if len(paths) == 1 else None
    if schema is None or not schema.hash.startswith(schema_hash):
        raise SchemaError(
            f"there is no wire table for schema hash {schema_hash!r}, only for {', '.join(known())}; "
            "`python -m tt_torch.wire.make_schema` adds one"
        )
    return schema


@cache
def _read(path: Path) -> Schema:
    """One object per file, because plans for encoding and decoding are cached per object."""
    return Schema(json.loads(path.read_text()))


def _matches(path: Path, schema_hash: str) -> bool:
    digits = path.stem.rpartition("_")[2]
    return bool(schema_hash) and (schema_hash.startswith(digits) or digits.startswith(schema_hash))

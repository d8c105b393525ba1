"""Makes a schema data file from a wire description, to add a further version of tt-mlir.

    python -m tt_torch.wire.make_schema wire.json --hash HEX --commit HEX --version 0.0.4013

A wire description is FlatBuffers reflection (`flatc --schema -b`) as JSON: `objects` and `enums`, and for each field
its id, base type, default, and whether absence differs from the default. The result is written to
`schemas/<format>_<first 8 digits of the hash>.json`, with one table per line, so that `diff` can compare two versions.
docs/binary_format.md describes the steps.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tt_torch.wire.schema import FORMATS, RawEnum, RawField, RawSchema, RawStruct

Reflection = dict[str, Any]  # a part of a wire description
_PREFIX_OF_IDENT = {"TTNN": "ttnn", "TTSY": "system_desc"}


def compact(wire: Reflection, schema_hash: str, commit: str, version: list[int]) -> RawSchema:
    """The schema of one version, reduced to the data that encoding and decoding need."""
    objects = sorted(wire["objects"], key=lambda o: o["name"])
    return {
        "schema_hash": schema_hash,
        "ttmlir_git_hash": commit,
        "version": version,
        "file_ident": wire["file_ident"],
        "root": wire["root_table"],
        "tables": {o["name"]: {"fields": _table_fields(o)} for o in objects if not o["is_struct"]},
        "structs": {o["name"]: _struct(o) for o in objects if o["is_struct"]},
        "enums": {e["name"]: _enum(e) for e in sorted(wire["enums"], key=lambda e: e["name"])},
    }


def _table_fields(table: Reflection) -> list[RawField]:
    return [_field(field) for field in sorted(table["fields"], key=lambda f: f["id"])]


def _field(field: Reflection) -> RawField:
    out: RawField = {"name": field["name"], "id": field["id"], "type": field["base_type"]}
    if "type" in field:
        out["ref"] = field["type"]
    if "element" in field:
        out["element"] = field["element"]
    if default := field.get("default_integer") or field.get("default_real"):
        out["default"] = default
    # Reflection calls every offset optional. Only for a scalar does this mean that absence differs from the default.
    if field["optional"] and field["base_type"] in FORMATS:
        out["optional"] = True
    return out


def _struct(struct: Reflection) -> RawStruct:
    fields: list[RawField] = []
    for field in sorted(struct["fields"], key=lambda f: f["id"]):
        out: RawField = {"name": field["name"], "offset": field["offset"], "type": field["base_type"]}
        if "type" in field:
            out["ref"] = field["type"]
        fields.append(out)
    return {"size": struct["bytesize"], "align": struct["minalign"], "fields": fields}


def _enum(enum: Reflection) -> RawEnum:
    values = {value["name"]: value["value"] for value in enum["values"]}
    out: RawEnum = {"underlying": enum["underlying_type"], "is_union": enum["is_union"], "values": values}
    if enum["is_union"]:
        out["refs"] = {v["name"]: v["union_type"] for v in enum["values"] if "union_type" in v}
    # An enum without a member 0 is a set of bits: 0 then means "none of them".
    elif 0 not in values.values():
        out["flags"] = True
    return out


def to_text(schema: RawSchema) -> str:
    """JSON with one table, struct or enum per line."""
    parts = []
    for key, value in schema.items():
        if isinstance(value, dict):
            rows = [f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in value.items()]
            parts.append(f"{json.dumps(key)}:{{\n" + ",\n".join(rows) + "\n}")
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("wire", type=Path, help="wire description (JSON)")
    parser.add_argument("--hash", required=True, help="schema hash, 64 hex digits")
    parser.add_argument("--commit", required=True, help="tt-mlir commit, 40 hex digits")
    parser.add_argument("--version", required=True, help="major.minor.patch of that commit")
    args = parser.parse_args()
    wire = json.loads(args.wire.read_text())
    version = [int(part) for part in args.version.split(".")]
    name = f"{_PREFIX_OF_IDENT[wire['file_ident']]}_{args.hash[:8]}.json"
    path = Path(__file__).with_name("schemas") / name
    path.write_text(to_text(compact(wire, args.hash, args.commit, version)))
    print(path)


if __name__ == "__main__":
    main()

"""Writes a schema as FlatBuffers IDL, so that flatc can check our files.

Namespaces are dropped, since the last part of each name is unique.
"""


def short(name):
    return name.rpartition(".")[2]


def idl(schema, raw):
    """The text of a `.fbs` file. `raw` is the schema's data file; flatc keeps its order of declarations."""
    parts = [_enum(name, enum) for name, enum in raw["enums"].items() if not enum["is_union"]]
    parts += [_struct(name, raw) for name in _by_use(raw["structs"])]
    # Unions come before the tables: a field of a union has two slots, and flatc must know this when it reads the field.
    parts += [_union(name, enum) for name, enum in raw["enums"].items() if enum["is_union"]]
    parts += [_table(schema, name) for name in raw["tables"]]
    parts += [f"root_type {short(schema.root)};", f'file_identifier "{schema.file_ident}";']
    return "\n".join(parts) + "\n"


def _enum(name, enum):
    flags = " (bit_flags)" if enum.get("flags") else ""
    values = enum["values"].items()
    rows = ", ".join(f"{key} = {value.bit_length() - 1 if flags else value}" for key, value in values)
    return f"enum {short(name)} : {enum['underlying']}{flags} {{ {rows} }}"


def _union(name, enum):
    return f"union {short(name)} {{ {', '.join(f'{k}: {short(table)}' for k, table in enum['refs'].items())} }}"


def _by_use(structs):
    """Sorts structs after those that they contain, as flatc requires."""
    return sorted(structs, key=lambda name: any(field["type"] == "obj" for field in structs[name]["fields"]))


def _struct(name, raw):
    rows = [f"{f['name']}: {short(f.get('ref', f['type']))};" for f in raw["structs"][name]["fields"]]
    return f"struct {short(name)} {{ {' '.join(rows)} }}"


def _table(schema, name):
    rows = [_field(schema, f) for f in schema.fields(name) if "utype" not in (f.type, f.element)]
    return f"table {short(name)} {{ {' '.join(rows)} }}"


def _field(schema, field):
    kind = short(field.ref) or field.element or field.type
    if field.type == "vector":
        return f"{field.name}: [{kind}];"
    if field.optional:
        return f"{field.name}: {kind} = null;"
    if not field.default:
        return f"{field.name}: {kind};"
    default = schema.enum(field.ref).names[field.default] if field.ref else field.default
    return f"{field.name}: {kind} = {default};"

"""Makes a schema that differs from the default one in the numbers of the members of its enums and unions.

The encoder reads it from a folder of schemas. The runtime gets its tables from a library that is compiled here.
"""

import ctypes
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tt_torch.runtime import _runtime
from tt_torch.wire import schema as schemas

ROOT = Path(__file__).parents[2] / "tt_torch" / "runtime"
EMBEDDER = ROOT / "tools" / "embed_schemas.py"
LIBRARY = Path(_runtime.__file__).with_name("libtt_runtime.so")
NOVEL = "Novel"  # every enum of the new schema has this member, whose name the runtime does not know
ADD = """
#include "wire/schema.h"
static const bool added = (tt::runtime::wire::add_schemas(tt::runtime::wire::embedded_schemas()), true);
"""


def renumbered(raw):
    """The schema `raw` (the content of its JSON file), in which every member has the number of the next member.

    The defaults of fields get the new numbers, too, so that an absent field means the same as before.
    """
    new = json.loads(json.dumps(raw))
    for enum in new["enums"].values():
        if not enum.get("flags"):
            enum["values"] = moved_on(enum["values"], enum["is_union"])
    for table, fields in new["tables"].items():
        for field, old in zip(fields["fields"], raw["tables"][table]["fields"], strict=True):
            enum = raw["enums"].get(field.get("ref"))
            if enum and not enum["is_union"] and not enum.get("flags") and field["type"] != "vector":
                (name,) = (n for n, value in enum["values"].items() if value == old.get("default", 0))
                field["default"] = new["enums"][field["ref"]]["values"][name]
    new["schema_hash"] = hashlib.sha256(json.dumps(new).encode()).hexdigest()
    return new


def moved_on(values, is_union):
    """{"A": 0, "B": 3} becomes {"A": 3, "B": 4, "Novel": 0}. In a union, NONE keeps the 0 that all readers expect."""
    names = [name for name in values if not is_union or name != "NONE"]
    numbers = [values[name] for name in names]
    if not is_union:
        names.append(NOVEL)
        numbers.append(max(numbers) + 1)
    fixed = {"NONE": 0} if is_union else {}
    return fixed | dict(zip(names, numbers[1:] + numbers[:1], strict=True))


def add(folder):
    """Adds the renumbered schema to this process's runtime, writes it to `folder`, and returns its hash.

    The default schema is copied to `folder`, too.
    """
    raw = json.loads(path_of(schemas.DEFAULT).read_text())
    new = renumbered(raw)
    file = folder / f"ttnn_{new['schema_hash'][:8]}.json"
    file.write_text(json.dumps(new))
    shutil.copy(path_of(schemas.DEFAULT), folder)
    tables, addition, library = folder / "tables.cpp", folder / "add.cpp", folder / "libtables.so"
    subprocess.run([sys.executable, EMBEDDER, tables, file], check=True)
    addition.write_text(ADD)
    includes = [f"-I{ROOT / name}" for name in ("src", "include")]
    subprocess.run(
        ["c++", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", *includes, tables, addition, LIBRARY]
        + ["-o", library],
        check=True,
    )
    ctypes.CDLL(library)
    return new["schema_hash"]


def path_of(schema_hash):
    return Path(schemas.__file__).with_name("schemas") / f"ttnn_{schema_hash[:8]}.json"

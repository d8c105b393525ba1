"""The kinds of files that are made. A file depends only on its kind and its number."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import torch

from tests.fuzz_files import damage, modules, ops, packages
from tests.fuzz_files.documents import document
from tests.wire.messages import op_members, random_binary, with_op
from tt_torch.driver.aot import compile_model
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import DEFAULT, SYSTEM_DESC

DATA = Path(__file__).parents[1] / "data"
MOST_BYTES = 4096  # of a file that is damaged: in a small file, more of the damage is in bytes that are read
SCHEMAS = (DEFAULT, "433d79f9", ops.INFERRED)


def without_text(binary):
    """The binary without text and system, so that damage is in the parts that the runtime reads."""
    message = decode(binary)
    slim = {key: message[key] for key in ("version", "schema_hash", "programs")}
    for program in slim["programs"]:
        program.pop("debug_info", None)
        for op in program["operations"]:
            op["debug_info"] = ""
    return encode(slim, slim["schema_hash"])


@cache
def binaries():
    """Small sound binaries: what `compile_model` saves, and what tt-mlir and a plugin's compiler wrote."""
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten()).eval()
    ours = compile_model(model, (torch.ones(1, 2, 5, 5),)).binary
    theirs = sorted(path for folder in ("runtime", "plugin") for path in (DATA / folder).glob("*.ttnn"))
    found = [without_text(data) for data in (ours, *(path.read_bytes() for path in theirs))]
    return [data for data in found if len(data) <= MOST_BYTES]


@cache
def systems():
    """Sound system descriptors."""
    found = (system_desc("wormhole_b0"), system_desc("wormhole_b0", 2), system_desc("blackhole", 4))
    return [encode(header(SYSTEM_DESC) | {"system_desc": desc}, SYSTEM_DESC) for desc in found]


def any_op(rng, number):
    """A binary with one op or many ops of any schema, with or without kernels."""
    schema = rng.choice(SCHEMAS)
    members = op_members(schema)
    if rng.random() < 0.1:
        return encode(random_binary(schema, number, 0.4), schema)
    return encode(with_op(schema, members[number % len(members)], number), schema)


def system(rng, number):
    """A damaged or random system descriptor."""
    if rng.random() < 0.3:
        return encode(random_binary(SYSTEM_DESC, number, rng.choice((0.6, 0.95))), SYSTEM_DESC)
    way = rng.choice((damage.anywhere, damage.parts))
    return way(rng, rng.choice(systems()), rng.choice(systems()))


def _damaged(way):
    return lambda rng, number: way(rng, rng.choice(binaries()), rng.choice(binaries()))


# The ending of a file's name, and a function that makes its bytes from a generator and a number. If this
# ending is empty, the function returns an ending, too.
KINDS = {
    "op": (".ttnn", ops.random_op),
    "row": (".ttnn", ops.changed_row),
    "joined": (".ttnn", ops.joined),
    "any": (".ttnn", any_op),
    "bytes": (".ttnn", _damaged(damage.anywhere)),
    "parts": (".ttnn", _damaged(damage.parts)),
    "system": (".ttsys", system),
    "package": (".ttpkg", packages.damaged),
    "records": ("", document),
    "stablehlo": ("", modules.module),
}


def prepare():
    """Makes what all files share, so that child processes do not have to."""
    ops.kernels_by_schema(), ops.rows(), binaries(), systems(), packages.package(), packages.package(packages.FAMILY)
    packages.wide()
    modules.binaries(".mlirbc"), modules.binaries(".vhlo")
    for data in (*binaries(), *systems()):
        damage.structure(data)


def made(kind, number):
    """The ending and the bytes of the file with a number. The bytes are None if they do not fit the schema."""
    ending, make = KINDS[kind]
    found = make(random.Random(f"{kind} {number}"), number)
    return (ending, found) if ending else found

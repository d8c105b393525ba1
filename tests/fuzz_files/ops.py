"""Makes binaries with random ops for every kernel. Ops come from the schema, from rows of the kernel tests, or both."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch

from tests.runtime.programs import Maker, tensor_desc
from tests.wire.messages import Maker as Random
from tt_torch.errors import TTTorchError
from tt_torch.runtime import Binary, Executable
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.facts import is_tensor
from tt_torch.wire.schema import DEFAULT, load

SHAPES = ((), (0,), (1,), (4,), (8,), (4, 4), (32, 32), (1, 2, 32, 16), (1, 1, 16, 8), (8, 8, 3, 3), (2, 3, 4, 4, 8))
INFERRED = "912b70aa"
DTYPES = ("Float32",) * 4 + ("BFloat16", "Int32", "UInt32", "UInt16", "UInt8", "BFP_BFloat8", "Bool", "Int64")
NUMBERS = (0, 1, 1, 2, 3, 4, 8, 16, 32, -1, 255, 20_000, 1 << 20, (1 << 31) - 1, (1 << 63) - 1, -(1 << 63))


class Op(Random):
    """Random fields of an op, over a few tensors of the program."""

    def __init__(self, rng, maker, known, schema=DEFAULT):
        super().__init__(load(schema), rng, density=0.9)
        self.maker, self.known = maker, known

    def table(self, name, vector_limit=5):
        if not name.endswith("TensorRef"):
            return super().table(name, vector_limit)
        return self.rng.choice(self.known) if self.rng.random() < 0.7 else random_tensor(self.rng, self.maker)

    def number(self, field, kind):
        if field.ref or kind in ("bool", "float", "double"):
            return super().number(field, kind)
        return fitting(self.rng.choice(NUMBERS), kind)


def random_tensor(rng, maker):
    buffer = rng.choice(("DRAM", "DRAM", "L1", "host"))
    return maker.tensor(rng.choice(SHAPES), rng.choice(DTYPES), buffer, rng.random() < 0.5)


def fitting(number, kind):
    """The number, or its lowest bits, in an integer type of the schema."""
    bits = {"byte": 8, "ubyte": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32}.get(kind, 64)
    number %= 1 << bits
    return number - (1 << bits) if not kind.startswith("u") and number >> (bits - 1) else number


@cache
def kernels(schema=DEFAULT):
    """Every op of a schema that the runtime has a kernel for, except `CpuOp`, which runs machine code."""
    found = []
    for name in sorted(load(schema).enum("tt.target.ttnn.OpType").refs):
        maker = Maker()
        maker.op(name)
        try:
            Executable(Binary(maker.binary(schema=schema)))
        except TTTorchError as error:
            if "no kernel for" in str(error):
                continue
        found.append(name)
    return [name for name in found if name != "CpuOp"]


@cache
def kernels_by_schema():
    """The kernels of the default schema, and kernels whose table has other fields in the inferred schema."""
    fields = [{name: load(schema).fields(name) for name in kernels(schema)} for schema in (DEFAULT, INFERRED)]
    return [(DEFAULT, name) for name in fields[0]] + [
        (INFERRED, name) for name, theirs in fields[1].items() if theirs != fields[0].get(name)
    ]


@cache
def rows():
    """The programs of the kernel tests by their ops, as JSON, which is quick to copy."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))  # as pytest does for the modules of a test's folder
    from test_kernels import ROWS, program

    found = {}
    for row in ROWS:
        described = decode(program(row, torch.float32, DEFAULT))["programs"][0]
        found.setdefault(row.op, []).append(json.dumps(described, default=list))
    return found


@cache
def _head(schema):
    """A header and a system, as all binaries have them."""
    return header(schema) | {"system_desc": system_desc("blackhole")}


def file(*programs, schema=DEFAULT):
    """The bytes of a binary; None if a program does not fit the schema."""
    try:
        return encode({**_head(schema), "programs": list(programs)}, schema)
    except ValueError:
        return None


def random_op(rng, number):
    """A program of one op with random fields. In about half of the programs, an addition reads its result."""
    maker = Maker()
    maker.program["inputs"] = known = [random_tensor(rng, maker) for _ in range(4)]
    schema, name = kernels_by_schema()[number % len(kernels_by_schema())]
    wanted = maker.op(name, **Op(rng, maker, known, schema).table(name))
    if rng.random() < 0.5:  # the next op reads what it makes
        wanted = maker.binary_op("Add", wanted or known[0], known[0], random_tensor(rng, maker))
    maker.program["outputs"] = [wanted] if wanted else known[:1]
    return file(maker.program, schema=schema)


def changed_row(rng, number):
    """A row of the kernel tests with one to three values changed, wherever they are."""
    ops = sorted(rows())
    program = json.loads(rng.choice(rows()[ops[number % len(ops)]]))
    for _ in range(rng.randint(1, 3)):
        change(program, rng)
    return file(program)


def change(place, rng):
    while True:
        keys = [k for k in (place if isinstance(place, dict) else range(len(place))) if k not in ("name", "private")]
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.05:
            break
        place = place[key]
    value = place[key]
    if key == "shape" or (isinstance(value, dict) and "layout" in value):
        place[key] = list(rng.choice(SHAPES)) if key == "shape" else tensor_desc(rng.choice(SHAPES), rng.choice(DTYPES))
    elif isinstance(value, bool):
        place[key] = not value
    elif isinstance(value, int):
        place[key] = rng.choice((*NUMBERS[:11], value + 1, value - 1, value * 2))
    elif key == "data_type":
        place[key] = rng.choice(DTYPES)
    elif isinstance(place, dict) and rng.random() < 0.3:
        del place[key]


def joined(rng, number):
    """Several rows and random ops in one program, or also in a second one that it caches. Operands are exchanged."""
    maker = Maker()
    main = maker.program
    for _ in range(rng.randint(1, 3)):
        join(main, json.loads(rng.choice(rows()[rng.choice(sorted(rows()))])), maker)
    for _ in range(rng.randint(0, 2)):
        name = rng.choice(kernels())
        maker.op(name, **Op(rng, maker, [place[key] for place, key in references(main)]).table(name))
        if rng.random() < 0.2:
            rng.shuffle(main["operations"])
    if rng.random() < 0.4:
        cached(rng, maker)
    for _ in range(rng.randint(0, 3)):
        exchange(rng, rng.choice(maker.programs))
    return file(*maker.programs)


def join(program, other, maker):
    """Appends another program, whose tensors get new numbers."""
    first = maker.next_id
    for place, key in references(other):
        place[key]["global_id"] += first
        maker.next_id = max(maker.next_id, place[key]["global_id"] + 1)
    for part in ("inputs", "operations", "outputs"):
        program[part] += other[part]


def references(part) -> Iterator[tuple[dict | list, str | int]]:
    """Each place in a message that has a tensor, as a container and a key."""
    for key in list(part) if isinstance(part, dict) else range(len(part)):
        if is_tensor(part[key]):
            yield part, key
        elif isinstance(part[key], dict | list):
            yield from references(part[key])


def exchange(rng, program):
    """Replaces a tensor by another one: the whole, only its number, or only its description."""
    places = list(references(program))
    if not places:
        return
    (place, key), (other, its) = rng.choice(places), rng.choice(places)
    part = rng.choice(("", "global_id", "desc"))
    if part:
        place[key] = place[key] | {part: copy.deepcopy(other[its][part])}
    else:
        place[key] = other[its]


def cached(rng, maker):
    """Appends a private program, and an op that calls a program. The private program may get a call, too."""
    main = maker.program
    maker.begin("const", private=True)
    join(maker.program, json.loads(rng.choice(rows()[rng.choice(sorted(rows()))])), maker)
    for program in (main, maker.program) if rng.random() < 0.1 else (main,):
        fields = {"callee_name": rng.choice(("const", "const", "main")), "program_idx": rng.choice((0, 1, 1, 1, 2))}
        tensors = [place[key] for place, key in references(program)]
        given = rng.choices(tensors, k=len(maker.program["inputs"])) if rng.random() < 0.9 else tensors
        made = [maker.tensor(out["desc"]["shape"], out["desc"]["layout"]["memory_desc"]["data_type"])
                for out in maker.program["outputs"]]  # fmt: skip
        call = {"LoadCachedOp": {**fields, "inputs": given, "outputs": made, "program_hash": "a"}}
        place = rng.randint(0, len(program["operations"]))
        program["operations"].insert(place, {"type": call, "debug_info": "", "loc_info": ""})
        program["outputs"] += made

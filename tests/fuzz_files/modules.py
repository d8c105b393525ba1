"""Makes damaged StableHLO modules: text with changed words, and changed bytes of bytecode and portable artifacts."""

from __future__ import annotations

import io
import random
import re
from functools import cache

from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

from tests.fuzz_files.damage import anywhere
from tests.mlir import edge_rows
from tt_torch.mlir.context import make_context

KINDS = ("i1", "i8", "ui16", "i32", "ui64", "bf16", "f32", "f64")
ODD = ("0", "-1", "1", "2", "7", "255", "4294967296", "9223372036854775807", "1e400", "nan", "dense<0>", "true", "?")
WORD = re.compile(r"%\w+|@\w+|\d+(?=x)|(?<=x)[a-z]\w+|[\w.+-]+|[<>=:,#{}\[\]()]")


@cache
def texts() -> tuple[str, ...]:
    """A program per row of the table of edges."""
    return tuple(_program(row) for kind in KINDS for row in edge_rows.rows(kind))


def _program(row: edge_rows.Row) -> str:
    types = [edge_rows.named(kind, *x.shape) for kind, x in zip(row.kinds, row.inputs, strict=True)]
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in zip("abcd", types, strict=False))
    return f"func.func @main({arguments}) -> {row.result} {{\n{row.body}\nreturn %0 : {row.result}\n}}"


@cache
def binaries(ending: str) -> tuple[bytes, ...]:
    modules = [ir.Module.parse(text, make_context()) for text in texts()[::25]]
    if ending == ".vhlo":
        version = _stablehlo.get_current_version()
        return tuple(_stablehlo.serialize_portable_artifact(module, version) for module in modules)
    return tuple(_bytecode(module) for module in modules)


def _bytecode(module: ir.Module) -> bytes:
    data = io.BytesIO()
    module.operation.write_bytecode(data)
    return data.getvalue()


def damaged_text(rng: random.Random, text: str) -> str:
    """The text with words replaced, at one place or all: by a word of this or another program, or by one of `ODD`."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.choice(list(WORD.finditer(text)))
        words = ODD if rng.random() < 0.2 else WORD.findall(rng.choice((text, rng.choice(texts()))))
        new = rng.choice([word for word in words if _kind(word) == _kind(place[0])] or words)
        if rng.random() < 0.5:
            text = re.sub(rf"(?<![\w.]){re.escape(place[0])}(?![\w.])", new.replace("\\", ""), text)
        else:
            text = text[: place.start()] + new + text[place.end() :]
    return text


def _kind(word: str) -> str:
    """The part of a name before its dot, "9" for a number, "a" for another name, or the first character."""
    first, dot, _ = word.partition(".")
    return first if dot and first.isalpha() else "9" if word[0].isdigit() else "a" if word[0].isalpha() else word[0]


def module(rng: random.Random, number: int) -> tuple[str, bytes]:
    """The ending of a file's name, and its bytes."""
    ending = rng.choice((".mlir", ".mlir", ".mlirbc", ".vhlo"))
    if ending == ".mlir":
        return ending, damaged_text(rng, rng.choice(texts())).encode()
    sound = binaries(ending)
    return ending, anywhere(rng, rng.choice(sound), rng.choice(sound))

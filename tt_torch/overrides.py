"""Overrides of the optimizer's choices, as text. tt-mlir's options of these names have the same forms after an op's
name.

tt-mlir's users write `override-output-layout=op1=8x8:l1:block_sharded,op2=dram insert-memreconfig=op3=0:1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tt_torch.option_kinds import Kind, Setting, by_pattern, require
from tt_torch.wire.facts import TILE

_BUFFERS = {"dram": "DRAM", "l1": "L1"}
_MEMORY_LAYOUTS = {
    "interleaved": "Interleaved",
    "height_sharded": "HeightSharded",
    "width_sharded": "WidthSharded",
    "block_sharded": "BlockSharded",
}
_PAGES = {"tile": True, "row_major": False}
_DTYPES = {
    **{"f32": "Float32", "bf16": "BFloat16", "bfp_bf8": "BFP_BFloat8", "bfp_bf4": "BFP_BFloat4"},
    **{"u32": "UInt32", "u16": "UInt16", "u8": "UInt8", "si32": "Int32"},
}
_WORDS: dict[str, Mapping[str, str | bool]] = {
    "buffer": _BUFFERS,
    "memory_layout": _MEMORY_LAYOUTS,
    "tiled": _PAGES,
    "dtype": _DTYPES,
}
# The grids of each layout: the number of parts down, and the number of parts across.
_GRIDS = {"Interleaved": "1x1", "HeightSharded": "[0-9]+x1", "WidthSharded": "1x[0-9]+"}


@dataclass(frozen=True)
class Asked:
    """The overrides of one op. The first fields fix what its result is like; the optimizer chooses where they are None.
    `moved` has operands that are moved to the place of the result. `config` has fields of a convolution's
    configuration."""

    grid: tuple[int, int] | None = None
    buffer: str | None = None
    memory_layout: str | None = None
    tiled: bool | None = None
    dtype: str | None = None
    moved: tuple[int, ...] = ()
    config: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def sharded(self) -> bool:
        """Whether the result must be split over cores."""
        return self.memory_layout not in (None, "Interleaved")


def output_layout(text: str) -> dict[str, Setting]:
    """The fields of Asked that a text like `8x8:l1:block_sharded:tile:bf16` names; every part may be left out."""
    found: dict[str, Setting] = {}
    for word in text.split(":"):
        name, value = _field(word)
        require(name not in found, word)
        found[name] = value
    if "grid" in found:
        require("memory_layout" in found, text)
        require(bool(re.fullmatch(_GRIDS.get(found["memory_layout"], ".*"), "{}x{}".format(*found["grid"]))), text)
    require(found.get("buffer") != "DRAM" or found.get("memory_layout") in (None, "Interleaved"), text)
    return found


def _field(word: str) -> tuple[str, Setting]:
    if grid := re.fullmatch("([1-9][0-9]*)x([1-9][0-9]*)", word):
        return "grid", (int(grid[1]), int(grid[2]))
    (found,) = [(name, words[word]) for name, words in _WORDS.items() if word in words]
    return found


def output_words(grid: tuple[int, int], buffer: str, memory_layout: str) -> str:
    """The text of a place, as `output_layout` reads it."""
    named = {value: word for word, value in (*_BUFFERS.items(), *_MEMORY_LAYOUTS.items())}
    split = f"{grid[0]}x{grid[1]}:" if memory_layout != "Interleaved" else ""
    return f"{split}{named[buffer]}:{named[memory_layout]}"


def operands(text: str) -> dict[str, Setting]:
    """The positions in a text like `0:1`."""
    return {"moved": tuple(sorted({_number(word) for word in text.split(":")}))}


def conv2d_config(text: str) -> dict[str, Setting]:
    """The fields in a text like `shard_layout#height_sharded:act_block_h_override#64`."""
    pairs = [word.split("#") for word in text.split(":")]
    config = {name: _FIELDS[name](value) for name, value in pairs}
    require(len(config) == len(pairs), text)
    return {"config": config}


def _number(text: str) -> int:
    return int(require(text.isascii() and text.isdecimal(), text))


def _rows(text: str) -> int:
    return require(_number(text) % TILE == 0, _number(text))


_FLAGS = ["enable_act_double_buffer", "enable_weights_double_buffer", "reallocate_halo_output"]
_FLAGS += ["config_tensors_in_dram"]
_FIELDS: dict[str, Callable[[str], Setting]] = {
    "shard_layout": {word: _MEMORY_LAYOUTS[word] for word in ("height_sharded", "block_sharded")}.__getitem__,
    "act_block_h_override": _rows,
    **dict.fromkeys(_FLAGS, {"true": True, "false": False}.__getitem__),
    "weights_dtype": _DTYPES.__getitem__,
}
PARSERS: dict[str, Callable[[str], dict[str, Setting]]] = {
    "override_output_layout": output_layout,
    "insert_memreconfig": operands,
    "override_conv2d_config": conv2d_config,
}


def asked(texts: Mapping[str, str]) -> Asked:
    """The overrides in texts, which have the names of tt-mlir's options."""
    fields: dict[str, Setting] = {}
    for name, text in texts.items():
        fields |= PARSERS[name](text)
    return Asked(**fields)


def _kind(name: str, accepts: str) -> Kind:
    def check(text: Setting) -> str:
        PARSERS[name](require(isinstance(text, str), text))
        return str(text)

    return Kind(accepts, check)


_BY_OP = by_pattern(
    {
        "override_output_layout": _kind(
            "override_output_layout",
            f"the words that count of a grid like 8x8, {', '.join(_BUFFERS)}, {', '.join(_MEMORY_LAYOUTS)}, "
            f"{', '.join(_PAGES)}, {', '.join(_DTYPES)}, joined by colons. A grid needs the word that says what is "
            "split: Nx1 parts of height_sharded, 1xN of width_sharded, 1x1 of interleaved; what is split lies in l1",
        ),
        "insert_memreconfig": _kind("insert_memreconfig", 'positions of operands, like "0:1"'),
        "override_conv2d_config": _kind(
            "override_conv2d_config",
            f'fields and values like "shard_layout#height_sharded:act_block_h_override#64", of {", ".join(_FIELDS)}. '
            f"Rows of a block are a multiple of {TILE}, and shard_layout is height_sharded or block_sharded",
        ),
    }
)


def _of_tt_mlir(text: str) -> list[tuple[str, dict[str, str]]]:
    """The overrides in a text of tt-mlir's options, like `override-output-layout=op1=l1,op2=dram`."""
    found = []
    for word in text.split():
        name, _, rest = word.partition("=")
        for entry in rest.split(","):
            op, _, value = entry.rpartition("=")
            found.append((require(bool(op), op), {name.replace("-", "_"): value}))
    return found


def _is_of_tt_mlir(given: Setting) -> bool:
    return isinstance(given, str) and given.partition("=")[0].strip().replace("-", "_") in PARSERS


KIND = Kind(
    f'{_BY_OP.accepts}. Or tt-mlir\'s own text, like "override-output-layout=op1=8x8:l1:block_sharded,op2=dram"',
    lambda given: _BY_OP.check(_of_tt_mlir(given) if _is_of_tt_mlir(given) else given),
    _BY_OP.parse,
)

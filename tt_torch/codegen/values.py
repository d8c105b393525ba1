"""Values of a binary as Python text: literals, members of `ttnn`, and nested calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from tt_torch.wire.messages import CoreRangeSet, Dim2d, MemoryConfig, Record, ShardSpec, Value

WIDTH = 120

# Names of the wire's enums, which are distinct, to the package's.
NAMES = {
    "Float32": "ttnn.float32", "BFloat16": "ttnn.bfloat16", "BFP_BFloat8": "ttnn.bfloat8_b",
    "BFP_BFloat4": "ttnn.bfloat4_b", "UInt32": "ttnn.uint32", "Int32": "ttnn.int32", "UInt16": "ttnn.uint16",
    "UInt8": "ttnn.uint8", "Tile": "ttnn.TILE_LAYOUT", "RowMajor": "ttnn.ROW_MAJOR_LAYOUT",
    "Interleaved": "ttnn.TensorMemoryLayout.INTERLEAVED",
    "HeightSharded": "ttnn.TensorMemoryLayout.HEIGHT_SHARDED",
    "WidthSharded": "ttnn.TensorMemoryLayout.WIDTH_SHARDED",
    "BlockSharded": "ttnn.TensorMemoryLayout.BLOCK_SHARDED",
    "DRAM": "ttnn.BufferType.DRAM", "L1": "ttnn.BufferType.L1", "L1Small": "ttnn.BufferType.L1_SMALL",
    "RowMajorShards": "ttnn.ShardOrientation.ROW_MAJOR", "ColMajorShards": "ttnn.ShardOrientation.COL_MAJOR",
}  # fmt: skip


class Text(str):
    """Python text that stands as it is, unlike a string of the binary."""


@dataclass(frozen=True)
class Call:
    """A call expression; arguments are text or calls, the keyword empty for positional ones. A list is one with
    square brackets and no function."""

    function: str
    arguments: tuple[tuple[str, str | Call], ...]
    brackets: str = "()"

    def __str__(self) -> str:
        return f"{self._head}{', '.join(_flat(*a) for a in self.arguments)}{self.brackets[1]}"

    @property
    def _head(self) -> str:
        return self.function + self.brackets[0]

    def lines(self, indent: int, before: str = "", after: str = "") -> list[str]:
        """The expression between `before` and `after`, broken as ruff does where it is wider than a line."""
        pad, inner = " " * indent, " " * (indent + 4)
        flat = f"{pad}{before}{self}{after}"
        if len(flat) <= WIDTH:
            return [flat]
        arguments = inner + ", ".join(_flat(*a) for a in self.arguments)
        if len(arguments) <= WIDTH:
            return [f"{pad}{before}{self._head}", arguments, f"{pad}{self.brackets[1]}{after}"]
        body: list[str] = []
        for keyword, value in self.arguments:
            prefix = f"{keyword}=" if keyword else ""
            if isinstance(value, Call):
                body += value.lines(indent + 4, prefix, ",")
            else:
                body.append(f"{inner}{prefix}{value},")
        return [f"{pad}{before}{self._head}", *body, f"{pad}{self.brackets[1]}{after}"]


def _flat(keyword: str, value: str | Call) -> str:
    return f"{keyword}={value}" if keyword else str(value)


def call(function: str, *positional: str | Call, **keywords: object) -> Call:
    """A call with keywords that are None left out; other values are rendered."""
    named = [(k, render(v)) for k, v in keywords.items() if v is not None]
    return Call(function, (*(("", p) for p in positional), *named))


def names(values: Sequence[str]) -> Call:
    """A list of names."""
    return Call("", tuple(("", name) for name in values), "[]")


def render(value: object) -> str | Call:
    """A literal, an enum member or a memory config."""
    if isinstance(value, Call | Text):
        return value
    if isinstance(value, str):
        return NAMES.get(value) or f'"{value}"'
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, dict) and "buffer_type" in value:
        return memory_config(cast(MemoryConfig, value))
    if isinstance(value, list) and any(isinstance(v, Text) for v in value):
        return names(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(str(render(v)) for v in value)}]"
    if value is None or isinstance(value, bool | int):
        return repr(value)
    raise TypeError(f"no Python form for {value!r}")


def memory_config(value: MemoryConfig) -> str | Call:
    shards = value.get("shard_spec")
    plain = value["tensor_memory_layout"] == "Interleaved" and not shards
    if plain and value["buffer_type"] in ("DRAM", "L1"):
        return f"ttnn.{value['buffer_type']}_MEMORY_CONFIG"
    arguments = [str(render(name)) for name in (value["tensor_memory_layout"], value["buffer_type"])]
    return call("ttnn.MemoryConfig", *arguments, *([_shard_spec(shards)] if shards else []))


def _shard_spec(value: ShardSpec) -> Call:
    orientation = {"RowMajor": "RowMajorShards", "ColMajor": "ColMajorShards"}[value["orientation"]]
    return call("ttnn.ShardSpec", core_ranges(value["core_range_set"]), *map(render, (value["shape"], orientation)))


def core_ranges(value: CoreRangeSet) -> Call:
    def coordinate(c: Dim2d) -> str:
        return f"ttnn.CoreCoord({c['x']}, {c['y']})"

    ranges = (
        f"ttnn.CoreRange({coordinate(r['start_coord'])}, {coordinate(r['end_coord'])})" for r in value["core_ranges"]
    )
    return call("ttnn.CoreRangeSet", f"[{', '.join(ranges)}]")


def number(value: Record) -> int | float:
    """A member of NumberType."""
    ((_, record),) = value.items()
    found: int | float = record["value"]
    return found


def whole(value: float) -> int | float:
    """Sequences of integers are described by floats."""
    return int(value) if value == int(value) else value


def pool_padding(value: Sequence[int]) -> list[int]:
    """Four values are (top, left, bottom, right) on the wire, (top, bottom, left, right) in the package."""
    return list(value) if len(value) == 2 else [value[0], value[2], value[1], value[3]]


def pairs(value: Sequence[int]) -> Text:
    """(low, high) per dimension, as tuples."""
    return Text([(low, high) for low, high in zip(value[::2], value[1::2], strict=True)])


def reduce(value: str) -> str | None:
    """How scattered elements combine; the default of the package is to overwrite."""
    return {"Sum": "add", "Max": "amax", "Min": "amin", "Prod": "multiply", "Invalid": None}[value]


def scale(value: Record) -> Value:
    ((_, record),) = value.items()
    return record.get("scale") or record["scale_factor"]


def compute(value: Record) -> Call:
    fields = dict(value)
    if "math_fidelity" in fields:
        fields["math_fidelity"] = Text(f"ttnn.MathFidelity.{fields['math_fidelity']}")
    return call("ttnn.WormholeComputeKernelConfig", **fields)


def conv_config(value: Record) -> Call:
    fields = dict(value)
    activation = fields.pop("activation", None)
    grid = fields.pop("core_grid", None)
    if activation:
        kind = f"ttnn.UnaryOpType.{activation['op_type'].upper()}"
        fields["activation"] = call("ttnn.UnaryWithParam", kind, *map(render, activation["params"]))
    if grid:
        fields["core_grid"] = core_ranges(grid)
    return call("ttnn.Conv2dConfig", **fields)


def slice_config(value: Record) -> Call:
    kind = {"DramHeight": "DRAMSliceHeight", "DramWidth": "DRAMSliceWidth", "L1Full": "L1Full"}[value["slice_type"]]
    ways = Text(f"ttnn.Op2DSliceConfig.SliceTypeEnum.{kind}")
    return call("ttnn.Op2DSliceConfig", slice_type=ways, num_slices=value["num_slices"])


VALUES: dict[str, Callable[[Value], object]] = {
    f.__name__: f for f in (number, whole, pool_padding, pairs, reduce, scale, compute, conv_config, slice_config)
}

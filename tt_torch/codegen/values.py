"""Writes the values of a binary as Python text: literals, members of `ttnn`, and nested calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from tt_torch.codegen import quoting
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.wire.messages import CoreRangeSet, Dim2d, MemoryConfig, Record, ShardSpec, Value

WIDTH = 120

# Maps the members of the wire's enums to the names in the ttnn package. No two enums share a member's name.
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
    "Ring": "ttnn.Topology.Ring", "Linear": "ttnn.Topology.Linear", "Mesh": "ttnn.Topology.Mesh",
    "Torus": "ttnn.Topology.Torus",
}  # fmt: skip


class Text(str):
    """Python text that is written as it is. A plain `str` names a member of an enum. Neither of them
    is text that comes from a file."""


@dataclass(frozen=True)
class Call:
    """A call expression, or a list, which has square brackets and no function.

    An argument is a pair of keyword and value. The keyword of a positional argument is empty.
    """

    function: str
    arguments: tuple[tuple[str, str | Call], ...]
    brackets: str = "()"

    def __str__(self) -> str:
        return f"{self._head}{', '.join(_flat(*a) for a in self.arguments)}{self.brackets[1]}"

    @property
    def _head(self) -> str:
        return self.function + self.brackets[0]

    def lines(self, indent: int, before: str = "", after: str = "") -> list[str]:
        """The expression between `before` and `after`, broken into lines as ruff does if it does not fit into one."""
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
    """A call whose keyword values are rendered; keywords whose value is None are left out."""
    named = [(k, render(v)) for k, v in keywords.items() if v is not None]
    return Call(function, (*(("", p) for p in positional), *named))


def names(values: Sequence[str]) -> Call:
    """A list of names."""
    return Call("", tuple(("", name) for name in values), "[]")


def render(value: object) -> str | Call:
    """A value as Python text: a number, an enum's member by its name on the wire, or a memory config.

    Texts of a file come as `Text`, from `text`. Raises UnsupportedBinaryError for a member that ttnn has no name for,
    and BinaryFormatError for a value of any other kind.
    """
    if isinstance(value, Call | Text):
        return value
    if isinstance(value, str):
        if value not in NAMES:
            raise UnsupportedBinaryError(f"codegen/values.py has no name of the ttnn package for {value}")
        return NAMES[value]
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
    raise BinaryFormatError(f"a field has a value that no argument of ttnn can have: {ascii(value)[:60]}")


def memory_config(value: MemoryConfig) -> str | Call:
    shards = value.get("shard_spec")
    plain = value["tensor_memory_layout"] == "Interleaved" and not shards
    if plain and value["buffer_type"] in ("DRAM", "L1"):
        return f"ttnn.{value['buffer_type']}_MEMORY_CONFIG"
    arguments = [str(render(name)) for name in (value["tensor_memory_layout"], value["buffer_type"])]
    return call("ttnn.MemoryConfig", *arguments, *([_shard_spec(shards)] if shards else []))


def _shard_spec(value: ShardSpec) -> Call:
    orientation = f"{value['orientation']}Shards"
    return call("ttnn.ShardSpec", core_ranges(value["core_range_set"]), *map(render, (value["shape"], orientation)))


def core_ranges(value: CoreRangeSet) -> Call:
    ranges = (f"ttnn.CoreRange({_core(r['start_coord'])}, {_core(r['end_coord'])})" for r in value["core_ranges"])
    return call("ttnn.CoreRangeSet", f"[{', '.join(ranges)}]")


def _core(value: Dim2d) -> Call:
    return call("ttnn.CoreCoord", str(value["x"]), str(value["y"]))


def text(value: str) -> Text:
    """A text of the file, as a literal."""
    return Text(quoting.literal(value))


def number(value: Record) -> int | float:
    """The number in a NumberType union: `{"FP": {"value": 0.5}}` gives 0.5."""
    found: int | float
    match value:
        case {"FP": {"value": found}} | {"I32": {"value": found}}:
            return found
    raise BinaryFormatError("a field that is a number has another value")


def whole(value: float) -> int | float:
    """A float without a fractional part becomes an int: the wire describes ranges of integers by floats."""
    return int(value) if value.is_integer() else value


def pool_padding(value: Sequence[int]) -> list[int]:
    """Reorders four values from (top, left, bottom, right), as on the wire, to (top, bottom, left, right), as in ttnn.

    Two values, (height, width), are the same in both.
    """
    if len(value) not in (2, 4):
        raise BinaryFormatError(f"the padding of a pooling op has {len(value)} values, expected 2 or 4")
    return list(value) if len(value) == 2 else [value[0], value[2], value[1], value[3]]


def pairs(value: Sequence[int]) -> Text:
    """Groups a flat padding by dimension: `[1, 2, 0, 0]` becomes `[(1, 2), (0, 0)]`."""
    if len(value) % 2:
        raise BinaryFormatError(f"padding has {len(value)} values, expected an even number")
    return Text(list(zip(value[::2], value[1::2], strict=True)))


def reduce(value: str) -> Text | None:
    """ttnn's name for how scattered elements combine; None means that they overwrite, which is ttnn's default."""
    if value == "Invalid":
        return None
    names = {"Sum": "add", "Max": "amax", "Min": "amin", "Prod": "multiply"}
    if value not in names:
        raise UnsupportedBinaryError(f"codegen/values.py has no name of the ttnn package for scattering with {value}")
    return text(names[value])


def scale(value: Record) -> Value:
    ((_, record),) = value.items()
    return record["scale"] if "scale" in record else record["scale_factor"]


def compute(value: Record) -> Call:
    fields = dict(value)
    if "math_fidelity" in fields:
        fields["math_fidelity"] = Text(f"ttnn.MathFidelity.{fields['math_fidelity']}")
    return call("ttnn.WormholeComputeKernelConfig", **fields)


def _activation(value: Record) -> Call:
    parameters = map(render, value.get("params") or ())
    return call("ttnn.UnaryWithParam", f"ttnn.UnaryOpType.{value['op_type'].upper()}", *parameters)


def program_config(value: Record) -> Call:
    """The program configuration of a matrix product. The library's classes have the names of the union's members."""
    ((kind, record),) = value.items()
    fields = {_CONFIG_FIELDS.get(name, name): field for name, field in record.items() if name != "hop_cores"}
    grid, activation = fields.get("compute_with_storage_grid_size"), fields.get("fused_activation")
    if grid:
        fields["compute_with_storage_grid_size"] = _core(grid)
    if kind != "MatmulMultiCoreReuseProgramConfig":  # this class has no activation
        fields["fused_activation"] = _activation(activation) if activation else Text("None")
    if record.get("hop_cores", {}).get("core_ranges"):
        fields["hop_cores"] = core_ranges(record["hop_cores"])
    return call(f"ttnn.{kind}", **fields)


def norm_config(value: Record) -> Call:
    """How an RMS norm over several chips is computed on the cores of each of them."""
    fields = dict(value) | {"compute_with_storage_grid_size": _core(value["compute_with_storage_grid_size"])}
    return call("ttnn.LayerNormShardedMultiCoreProgramConfig", **fields)


def semaphore(value: Record) -> Text:
    """The name of a semaphore. No tensor has such a name (see program.py)."""
    return Text(f"semaphore_{value['global_id']}")


_CONFIG_FIELDS = {"per_core_m": "per_core_M", "per_core_n": "per_core_N"}


def conv_config(value: Record) -> Call:
    fields = dict(value)
    activation = fields.pop("activation", None)
    grid = fields.pop("core_grid", None)
    if activation:
        fields["activation"] = _activation(activation)
    if grid:
        fields["core_grid"] = core_ranges(grid)
    return call("ttnn.Conv2dConfig", **fields)


def slice_config(value: Record) -> Call:
    kind = {"DramHeight": "DRAMSliceHeight", "DramWidth": "DRAMSliceWidth", "L1Full": "L1Full"}[value["slice_type"]]
    ways = Text(f"ttnn.Op2DSliceConfig.SliceTypeEnum.{kind}")
    return call("ttnn.Op2DSliceConfig", slice_type=ways, num_slices=value["num_slices"])


def sub_device(value: int) -> Call:
    return call("ttnn.SubDeviceId", str(value))


def queue(value: int) -> Call:
    return call("ttnn.QueueId", str(value))


def coordinate(value: Sequence[int]) -> Call:
    """The place of a chip on its mesh: row and column."""
    return call("ttnn.MeshCoordinate", *map(str, value))


def mapper(value: Record) -> Call:
    """How a tensor of the host becomes one of the mesh: each axis splits a dimension, or copies the tensor."""
    placements = [
        call("ttnn.PlacementShard", str(p["dim"])) if p["type"] == "Shard" else call("ttnn.PlacementReplicate")
        for p in value["placements"]
    ]
    config = call("ttnn.MeshMapperConfig", Call("", tuple(("", p) for p in placements), "[]"), *_override(value))
    return call("ttnn.create_mesh_mapper", "device", config)


def composer(value: Record) -> Call:
    """How the parts of a tensor on the mesh become one tensor of the host: each axis joins a dimension."""
    config = call("ttnn.MeshComposerConfig", str(render(value["dims"])), *_override(value))
    return call("ttnn.create_mesh_composer", "device", config)


def _override(value: Record) -> list[Call]:
    """The sizes of the axes that are used, if they are not those of the mesh."""
    sizes = value.get("mesh_shape_override")
    return [call("ttnn.MeshShape", *map(str, sizes))] if sizes else []


def element(tensor: str) -> Text:
    """The first element of the tensor of integers with this name, which the host reads. If the chips of a mesh have
    different elements, `int` gets several numbers, and raises TypeError."""
    return Text(f"int(*{{part.to_list()[0] for part in ttnn.get_device_tensors(ttnn.from_device({tensor}))}})")


# Functions of the name that a tensor has in the program.
OF_TENSORS: dict[str, Callable[[str], object]] = {"element": element}
VALUES: dict[str, Callable[[Value], object]] = {
    f.__name__: f
    for f in (
        *(text, number, whole, pool_padding, pairs, reduce, scale, compute, program_config),
        *(conv_config, slice_config, norm_config, core_ranges, semaphore),
        *(sub_device, queue, coordinate, mapper, composer),
    )
}

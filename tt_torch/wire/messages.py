"""The parts of a decoded file that the compiler and the tools read, as types: what decode.py gives, by the schema.

A field that a table may lack is `NotRequired`. The tables of the format have more fields than stand here; ops have a
table each, whose fields only the schema knows.
"""

# No `annotations` of `__future__`: TypedDict reads NotRequired when a class is made.
from typing import Any, NotRequired, TypedDict

# What a field has, as the schema says: a number, a text, bytes, a Record or struct, a list of these, or None.
Value = Any
# A table by its fields, a union by the name of its member. Read-only, as all messages.
Record = dict[str, Value]


class Dim2d(TypedDict):
    """Rows and columns: of a tile, of a grid of cores, of a mesh of chips."""

    y: int
    x: int


class CoreRange(TypedDict):
    """A rectangle of cores; both corners belong to it."""

    start_coord: Dim2d
    end_coord: Dim2d


class CoreRangeSet(TypedDict):
    core_ranges: list[CoreRange]


class ShardSpec(TypedDict):
    """How a tensor is cut into parts (`shape` is that of one part), and the cores that they lie on."""

    core_range_set: CoreRangeSet
    shape: list[int]
    orientation: str


class MemoryConfig(TypedDict):
    """Where in device memory a tensor lies: DRAM or L1 (`buffer_type`), interleaved or in which kind of shards."""

    tensor_memory_layout: str
    buffer_type: str
    shard_spec: NotRequired[ShardSpec]
    nd_shard_spec: NotRequired[ShardSpec]


class MemoryDesc(TypedDict):
    """How a tensor lies in memory. `storage_type` is "Host" or "Device"; a tile of 1x1 means row major."""

    storage_type: str
    tile_shape: Dim2d
    data_type: str
    memory_config: NotRequired[MemoryConfig]


class LayoutDesc(TypedDict):
    memory_desc: MemoryDesc


class TensorDesc(TypedDict):
    shape: list[int]
    layout: LayoutDesc


class TensorRef(TypedDict):
    """A tensor by the number that no other tensor of the file has, and its description."""

    global_id: int
    desc: TensorDesc


class Operation(TypedDict):
    """One op. `type` has one entry: the name of the op's table and the table."""

    type: NotRequired[dict[str, Record]]
    loc_info: NotRequired[str]
    debug_info: NotRequired[str]


class DynamicLib(TypedDict):
    """A shared library with machine code of functions that run on the host."""

    dylib_id: int
    raw_file: bytes


class Program(TypedDict):
    """A function of a binary. Private ones compute what depends on weights only; public ones are what a call runs."""

    name: str
    private: bool
    inputs: NotRequired[list[TensorRef]]
    outputs: NotRequired[list[TensorRef]]
    operations: NotRequired[list[Operation]]
    dylibs: NotRequired[list[DynamicLib]]
    mesh_shape: NotRequired[Dim2d]


class ChipDesc(TypedDict):
    arch: str
    grid_size: Dim2d
    l1_size: int
    l1_unreserved_base: int
    num_dram_channels: int
    dram_channel_size: int


class ChipChannel(TypedDict):
    """A link between two chips."""

    device_id0: int
    ethernet_core_coord0: Dim2d
    device_id1: int
    ethernet_core_coord1: Dim2d


class SystemDesc(TypedDict):
    """A machine: `chip_desc_indices` has the number of its description for each chip."""

    cpu_descs: list[Record]
    chip_descs: list[ChipDesc]
    chip_desc_indices: list[int]
    chip_capabilities: list[str]
    chip_coords: list[Record]
    chip_channels: NotRequired[list[ChipChannel]]


class Version(TypedDict):
    major: int
    minor: int
    patch: int


class MLIR(TypedDict):
    """The text of the module that a binary was made of."""

    name: NotRequired[str]
    source: NotRequired[str]


class File(TypedDict):
    """A `.ttnn` file, or a `.ttsys` file, which has no programs."""

    version: Version
    schema_hash: str
    system_desc: SystemDesc
    ttmlir_git_hash: NotRequired[str]
    mlir: NotRequired[MLIR]
    programs: NotRequired[list[Program]]

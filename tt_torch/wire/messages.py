"""Types of the parts of a decoded file that the compiler and the tools read.

A field that a table may lack is `NotRequired`. The tables of the format have more fields than are listed here. Each op
has its own table, whose fields only the schema lists.
"""

# This file does not import `annotations` from `__future__`: TypedDict must see NotRequired when a class is made.
from typing import Any

from typing_extensions import NotRequired, TypedDict

# The value of a field: a number, a string, bytes, a Record, a list of these, or None. The schema says which.
Value = Any
# A table or struct as a dict from field to value, or a union as a dict from member to table. Do not change it.
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
    """How a tensor is cut into shards of shape `shape`, and the cores that hold them."""

    core_range_set: CoreRangeSet
    shape: list[int]
    orientation: str


class MemoryConfig(TypedDict):
    """A tensor's place in device memory: DRAM or L1 (`buffer_type`), interleaved or sharded."""

    tensor_memory_layout: str
    buffer_type: str
    shard_spec: NotRequired[ShardSpec]
    nd_shard_spec: NotRequired[ShardSpec]


class MemoryDesc(TypedDict):
    """A tensor's form in memory. `storage_type` is "Host" or "Device"; a tile of 1x1 means row major."""

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
    """A tensor: its `global_id`, which is unique in the file, and its description."""

    global_id: int
    desc: TensorDesc


class Operation(TypedDict):
    """One op. `type` has one entry, from the name of the op's table to the table."""

    type: NotRequired[dict[str, Record]]
    loc_info: NotRequired[str]
    debug_info: NotRequired[str]


class DynamicLib(TypedDict):
    """A shared library whose functions run on the host."""

    dylib_id: int
    raw_file: bytes


class Program(TypedDict):
    """A function of a binary. A call runs public ones; private ones compute values that depend only on weights."""

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
    """A machine. For each chip, `chip_desc_indices` has the index of its description in `chip_descs`."""

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
    """The text of the module from which a binary was made."""

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

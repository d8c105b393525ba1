"""Facts about the tensors and ops of a message: sizes, operands and results, memory.

No other module reads the tables of tensors and ops for such facts.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from tt_torch.errors import BinaryFormatError
from tt_torch.wire import custom_ops
from tt_torch.wire.messages import MemoryConfig, MemoryDesc, Program, Record, TensorRef, Value

TILE = 32  # a tile has 32 rows and 32 columns
FEW_CHANNELS = 8  # pixels that a convolution reads in rows have a multiple of so many channels (ttnn 0.81.1)
# Bytes per element of each data type.
ELEMENT_BYTES = {
    "Float32": 4, "Float16": 2, "BFloat16": 2, "UInt32": 4, "Int32": 4, "UInt16": 2, "UInt8": 1,
    "Float64": 8, "Int64": 8, "UInt64": 8, "Int16": 2, "Int8": 1, "Bool": 1,
}  # fmt: skip
# Bits per element of block floats. In addition, each 16 elements share an exponent of one byte. They exist only in
# tiles.
BLOCK_BITS = {
    "BFP_BFloat8": 8, "BFP_BFloat4": 4, "BFP_BFloat2": 2, "BFP_Float8": 8, "BFP_Float4": 4, "BFP_Float2": 2,
}  # fmt: skip
_MOST_ELEMENTS = 1 << 48  # of a tensor
BLOCK_FLOATS = {"bfp8_b": "BFP_BFloat8", "bfp4_b": "BFP_BFloat4"}  # option value -> data type

SUM = 0  # the `reduce_type` of a collective that adds; the tables have a plain number there, and no enum

Attribute = str | int | float | list[str] | list[int] | list[float]  # bool is an int

# Ops that only do bookkeeping or call programs: they themselves neither compute nor move anything on the device.
NOT_DEVICE_OPS = frozenset({
    "BeginTraceCaptureOp", "CaptureOrExecuteTraceOp", "DeallocateOp", "EndTraceCaptureOp", "ExecuteTraceOp",
    "FuncCallOp", "GetDeviceOp", "LoadCachedOp",
})  # fmt: skip
# Ops that change a cache in its own memory.
CACHE_UPDATES = frozenset({"FillCacheOp", "PagedFillCacheOp", "PagedUpdateCacheOp", "UpdateCacheOp"})
# Ops that look rows or elements up in a table, and the field of the table.
LOOKUPS = {"EmbeddingOp": "weight", "GatherOp": "input"}
# Ops that only place, reorder, copy or convert elements.
DATA_MOVEMENT = CACHE_UPDATES | frozenset({
    "AssignOp", "BitcastConvertOp", "ConcatOp", "CopyOp", "FromDeviceOp", "PadOp", "PermuteOp",
    "RepeatInterleaveOp", "RepeatOp", "ReshapeOp", "SliceOp", "ToDeviceOp", "ToLayoutOp",
    "ToMemoryConfigOp", "TransposeOp", "TypecastOp", "WriteTensorOp",
})  # fmt: skip


def physical_bytes(dtype: str, tiled: bool, shape: Iterable[int]) -> int:
    """The bytes that a tensor takes in memory. The last two dimensions of a tiled tensor are padded to multiples of 32.

    Example: a tiled Float32 tensor of shape (3, 40) takes 32 * 64 * 4 = 8,192 bytes.
    The device aligns each row of a row-major tensor to 32 bytes; this padding is not counted. Raises BinaryFormatError
    for row-major block floats.
    """
    if not tiled and dtype in BLOCK_BITS:
        raise BinaryFormatError(f"a tensor of {dtype} is row major; block floats are stored in tiles")
    if not tiled:
        return math.prod(shape) * ELEMENT_BYTES[dtype]
    *outer, rows, columns = [1, 1, *shape]
    tiles = math.prod(outer) * math.ceil(rows / TILE) * math.ceil(columns / TILE)
    if dtype in BLOCK_BITS:
        return tiles * TILE * TILE * (BLOCK_BITS[dtype] * 2 + 1) // 16
    return tiles * TILE * TILE * ELEMENT_BYTES[dtype]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a program. `memory` is the MemoryDesc of the message."""

    id: int
    shape: tuple[int, ...]
    memory: MemoryDesc

    @property
    def dtype(self) -> str:
        """The wire's name of the data type: "Float32", "BFP_BFloat8"."""
        return self.memory["data_type"]

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a tile; (1, 1) if the tensor is row major."""
        return self.memory["tile_shape"]["y"], self.memory["tile_shape"]["x"]

    @property
    def tiled(self) -> bool:
        return self.tile == (TILE, TILE)

    @property
    def page_layout(self) -> str:
        """The wire's name of the layout: "Tile" or "RowMajor"."""
        return page_layout(self.tiled)

    @property
    def on_device(self) -> bool:
        return self.memory["storage_type"] == "Device"

    @property
    def memory_config(self) -> MemoryConfig | None:
        """The tensor's place in device memory; None for a tensor on the host."""
        return self.memory.get("memory_config") if self.on_device else None

    @property
    def place(self) -> str:
        """The buffer type of device memory ("DRAM", "L1"), or "host"."""
        return self.memory_config["buffer_type"] if self.memory_config else "host"

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the smallest rectangle that contains all cores of a sharded tensor; None if the tensor is
        not sharded. Raises BinaryFormatError if a sharded tensor has no cores."""
        config = self.memory_config
        spec = config and (config.get("shard_spec") or config.get("nd_shard_spec"))
        if not spec:
            return None
        ranges = spec["core_range_set"]["core_ranges"]
        first, last = [r["start_coord"] for r in ranges], [r["end_coord"] for r in ranges]
        rows, columns = (max([c[x] for c in last] or [0]) - min([c[x] for c in first] or [1]) + 1 for x in ("y", "x"))
        if min(rows, columns) < 1:
            raise BinaryFormatError(f"tensor {self.id} is sharded over {rows} x {columns} cores")
        return rows, columns

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return physical_bytes(self.dtype, self.tiled, self.shape)


def page_layout(tiled: bool) -> str:
    return "Tile" if tiled else "RowMajor"


def tensor(ref: TensorRef) -> Tensor:
    """The tensor of a reference. Raises BinaryFormatError if its shape has more elements than memory can hold."""
    shape = tuple(ref["desc"]["shape"])
    if any(size < 0 for size in shape) or math.prod(max(size, 1) for size in shape) > _MOST_ELEMENTS:
        raise BinaryFormatError(f"tensor {ref['global_id']} has the shape {shape}, which no tensor has")
    return Tensor(ref["global_id"], shape, ref["desc"]["layout"]["memory_desc"])


def is_tensor(part: object) -> TypeGuard[TensorRef]:
    """True for a TensorRef. A reference to a device also has a `global_id`, but no `desc`."""
    return isinstance(part, dict) and "global_id" in part and "desc" in part


def named_tensors(part: object, field: str = "") -> Iterator[tuple[str, Tensor]]:
    """Each tensor in a part of a message, with the name of its field, in the order of the fields."""
    if is_tensor(part):
        yield field, tensor(part)
    elif isinstance(part, dict):
        for name, value in part.items():
            yield from named_tensors(value, name)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from named_tensors(value, field)


def tensors(part: object) -> list[Tensor]:
    """The tensors in a part of a message, in the order of the fields. A tensor in two fields occurs twice."""
    return [found for _, found in named_tensors(part)]


@dataclass(frozen=True, slots=True)
class Op:
    """An op of a program. `record` is its table, `name` the table's name, `location` the text of an MLIR location.

    Operands and results are in the order of the table's fields. A tensor in two fields occurs twice.
    """

    name: str
    record: Record
    location: str
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]

    @property
    def key(self) -> str:
        return key_of(self.name, self.record)

    @property
    def on_device(self) -> bool:
        """True if the device computes or moves something for this op."""
        return self.name not in NOT_DEVICE_OPS

    @property
    def read(self) -> tuple[Tensor, ...]:
        """The tensors that the op reads. A look-up of rows reads only these rows. A gather reads, for each row of its
        index, the whole row along its dimension: ttnn 0.81.1 searches the row for the elements. A view reads nothing.
        """
        if self.is_view:
            return ()
        if self.updates:
            return tuple(t for t in self.operands if t.id != self.tensor("cache").id)
        if self.name not in LOOKUPS:
            return self.operands
        table, given = self.tensor(LOOKUPS[self.name]), list(self.results[0].shape) if self.results else []
        if self.name == "GatherOp" and len(given) == len(table.shape) > 0:  # a damaged file may say anything
            along = self.record["dim"] % len(given)
            given[along] = table.shape[along]
        found = replace(table, shape=tuple(given))
        return tuple(found if t.id == table.id and found.bytes < t.bytes else t for t in self.operands)

    @property
    def written(self) -> tuple[Tensor, ...]:
        """The tensors that the op writes. If it updates a cache, these are only the new rows, once per user."""
        if not self.updates:
            return () if self.is_view else self.results
        rows = self.tensor("input")
        users = rows.shape[2:3] if self.name == "UpdateCacheOp" else ()
        return (replace(rows, shape=(*users, *rows.shape)),)

    @property
    def is_view(self) -> bool:
        """True if the result has the memory of the operand. The op is then a reshape that leaves all pages as they are:
        ttnn 0.81.1 allocates nothing for it, and starts no kernel."""
        if self.name != "ReshapeOp" or len(self.operands) != 1 or len(self.results) != 1:
            return False
        x, made = self.operands[0], self.results[0]
        (rows, columns), (made_rows, made_columns) = ([1, 1, *t.shape][-2:] for t in (x, made))
        if (x.place, x.grid, x.tile, columns) != (made.place, made.grid, made.tile, made_columns):
            return False
        return not x.tiled or rows == made_rows or (rows % TILE == 0 and made_rows % TILE == 0)

    @property
    def updates(self) -> bool:
        """True if the op changes a cache in place."""
        return self.name in CACHE_UPDATES

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The fields that are numbers, strings or lists of them."""
        return {field: value for field, value in self.record.items() if _is_plain(value)}

    def tensor(self, field: str) -> Tensor:
        return tensor(self.record[field])


def _is_plain(value: Value) -> TypeGuard[Attribute]:
    return all(isinstance(item, str | int | float) for item in (value if isinstance(value, list) else [value]))


def key_of(name: str, record: Record) -> str:
    """The name of an op, with the member of its family if it belongs to one: "MatmulOp", "EltwiseBinaryOp.Add". An op
    of the user has its own name there: "CpuOp.mylib::scaled.default"."""
    if name == custom_ops.TABLE and (custom := custom_ops.op_of(record)):
        return f"{name}.{custom}"
    kind = record.get("type")
    return f"{name}.{kind}" if isinstance(kind, str) else name


def ops(program: Program) -> Iterator[Op]:
    """The ops of a program in order. A tensor is a result of the op that first names it, unless it is an input."""
    known = {ref["global_id"] for ref in program.get("inputs") or ()}
    for operation in program.get("operations") or ():
        for name, record in operation.get("type", {}).items():
            found = tensors(record)
            results = tuple(t for t in found if t.id not in known)
            operands = tuple(t for t in found if t.id in known)
            yield Op(name, record, operation.get("loc_info", ""), operands, results)
            known.update(t.id for t in results)


def mesh_shape(program: Program) -> tuple[int, int]:
    """The rows and columns of the mesh for which a program was compiled; (1, 1) for one chip."""
    mesh = program.get("mesh_shape")
    return (max(mesh["y"], 1), max(mesh["x"], 1)) if mesh else (1, 1)


def inputs(program: Program) -> list[Tensor]:
    return [tensor(ref) for ref in program.get("inputs") or ()]


def outputs(program: Program) -> list[Tensor]:
    return [tensor(ref) for ref in program.get("outputs") or ()]


def bytes_by_place(held: Iterable[Tensor]) -> Counter[str]:
    """The bytes that tensors take in each place: "DRAM", "L1", "host"."""
    sizes: Counter[str] = Counter()
    for one in held:
        sizes[one.place] += one.bytes
    return sizes


def allocations(program: Program, without: Container[int] = ()) -> Iterator[tuple[Op, Counter[str]]]:
    """Yields each op and the bytes that are allocated after it in each place.

    Inputs and results count until they are deallocated, except the tensors whose ids are in `without`. Memory that an
    op needs besides its operands and results is not in the file. The counter is the same object each time: copy it to
    keep it.
    """
    live = {t.id: t for t in inputs(program) if t.id not in without}
    held = bytes_by_place(live.values())
    for op in ops(program):
        for operand in op.operands if op.name == "DeallocateOp" else ():
            if freed := live.pop(operand.id, None):
                held[freed.place] -= freed.bytes
        made = {t.id: t for t in op.results if t.id not in without}
        live |= made
        held.update(bytes_by_place(made.values()))
        yield op, held


def live_after(program: Program, position: int, without: Container[int] = ()) -> list[Tensor]:
    """The tensors that are still allocated after the op at this position of `ops(program)`, except the tensors whose
    ids are in `without`."""
    live = {t.id: t for t in inputs(program)}
    for op in itertools.islice(ops(program), position + 1):
        for operand in op.operands if op.name == "DeallocateOp" else ():
            live.pop(operand.id, None)
        live |= {t.id: t for t in op.results}
    return [t for t in live.values() if t.id not in without]


def weights(program: Program, roles: Sequence[str]) -> set[int]:
    """The ids of the tensors that stay on the device between calls: inputs whose role is not "input", and the results
    of private programs. `roles` has the role of each input of the program."""
    kept = {t.id for t, role in zip(inputs(program), roles, strict=True) if role != "input"}
    return kept.union(*({t.id for t in op.results} for op in ops(program) if op.name == "LoadCachedOp"))


def peak_bytes(program: Program) -> dict[str, int]:
    """The largest number of bytes that a program's tensors, including its inputs, take at once in each place of the
    device."""
    peak = bytes_by_place({t.id: t for t in inputs(program)}.values())
    for _, held in allocations(program):
        peak |= held
    return {place: size for place, size in peak.items() if place != "host"}

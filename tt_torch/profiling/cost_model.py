"""A roofline model of the chips: an op takes as long as the slowest of its arithmetic, its traffic to DRAM and to L1,
and what it sends to other chips.

The model ignores kernels, the network between cores, overlap of ops, and the time to launch an op. docs/profiling.md
names the sources of the figures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tt_torch.errors import BinaryFormatError
from tt_torch.profiling.links import Mesh, crossing
from tt_torch.wire.binary import first_chip
from tt_torch.wire.calls import cost, public
from tt_torch.wire.chips import CHIPS, MATRIX_FLOPS, PASSES, Chip
from tt_torch.wire.facts import BLOCK_BITS, DATA_MOVEMENT, Op, allocations, bytes_by_place, mesh_shape
from tt_torch.wire.messages import File, Program

_VECTOR_LANES = 32  # elements per core and cycle
_TRANSCENDENTAL = 20  # cycles of the vector unit per element
LOOKUPS = {"EmbeddingOp": "weight", "GatherOp": "input"}  # ops that read rows or elements of a table


@dataclass(frozen=True)
class OpCost:
    """The cost of an op: flops of the matrix unit, bytes moved, and the seconds that each part would take alone.

    `link_bytes` cross the busiest link between chips in one direction: profiling/links.py.
    """

    fidelity: str
    flops: int
    dram_read: int
    dram_written: int
    l1_bytes: int
    link_bytes: int
    compute: float
    dram: float
    l1: float
    link: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.dram, self.l1, self.link)

    @property
    def bytes(self) -> int:
        return self.dram_read + self.dram_written + self.l1_bytes


@dataclass(frozen=True)
class PlannedOp:
    """An op of a binary with everything that is the same in each call. `dram` and `l1` are the bytes that are
    allocated after the op."""

    op: Op
    cost: OpCost
    dram: int
    l1: int

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def location(self) -> str:
        return self.op.location


@dataclass(frozen=True)
class CallCost:
    """The cost of one call of a binary.

    `moves` are those of the device ops that only move data, and `seconds` is the time that the roofline model gives.
    """

    device_ops: int
    moves: int
    bytes: int
    seconds: float


def of_call(message: File) -> CallCost:
    """The cost of one call of a binary on its own system."""
    spent, arch = cost(message), first_chip(message["system_desc"])["arch"]
    seconds = sum(op.cost.seconds for program in public(message) for op in planned(program, arch))
    return CallCost(spent.device_ops, spent.data_movement, spent.bytes_moved, seconds)


def planned(program: Program, arch: str) -> Iterator[PlannedOp]:
    """The device ops of a program in order, with their costs. `arch` is a key of CHIPS."""
    mesh = mesh_shape(program)
    for op, held in allocations(program):
        if op.on_device:
            yield PlannedOp(op, cost_of(op, CHIPS[arch], mesh), held["DRAM"], held["L1"])


def cost_of(op: Op, chip: Chip, mesh: Mesh = (1, 1)) -> OpCost:
    """The cost of one op of a binary on a chip of a mesh. All cores are assumed to share the work."""
    read, written = _bytes_read(op), bytes_by_place(op.written)
    if _adds_apart(op):  # the product is written, and read by the addition
        between = bytes_by_place(op.results)
        read, written = read + between, written + between
    flops = matrix_flops(op)
    fidelity = _fidelity(op) if flops else ""
    if flops:
        compute = flops * PASSES[fidelity] / (MATRIX_FLOPS * chip.cores * chip.clock)
    else:
        compute = _vector_cycles(op) / (_VECTOR_LANES * chip.cores * chip.clock)
    dram_bytes, l1_bytes = (read[place] + written[place] for place in ("DRAM", "L1"))
    dram, l1 = dram_bytes / chip.dram, l1_bytes / (chip.l1 * chip.cores)
    links = crossing(op, mesh)
    return OpCost(fidelity, flops, read["DRAM"], written["DRAM"], l1_bytes, links, compute, dram, l1, links / chip.link)


def _bytes_read(op: Op) -> Counter[str]:
    """The bytes that an op reads in each place. A lookup in a table reads as much of it as it gives."""
    read = bytes_by_place(op.read)
    if op.name in LOOKUPS:
        for table in (t for t in op.read if t.id == op.tensor(LOOKUPS[op.name]).id):
            read[table.place] -= max(0, table.bytes - sum(t.bytes for t in op.results))
    return read


def _adds_apart(op: Op) -> bool:
    """Whether the library adds the bias of a product in a kernel of its own, which it does for one of several rows."""
    if op.name != "LinearOp" or not op.record.get("bias"):
        return False
    bias = op.tensor("bias")
    return bias.elements > math.prod(bias.shape[-1:])


def matrix_flops(op: Op) -> int:
    """The number of multiplications and additions of an op of the matrix unit; 0 for other ops.

    Example: a product of 32x64 and 64x16 has 2 * 32 * 16 * 64 = 65,536 flops. Raises BinaryFormatError if the op has
    no groups of channels, or a scalar where it needs a matrix.
    """
    try:
        return _matrix_flops(op)
    except (ZeroDivisionError, IndexError):
        raise BinaryFormatError(f"{op.name} at {op.location}: its shapes or groups fit no such op") from None


def _matrix_flops(op: Op) -> int:
    record = op.record
    if op.name in ("MatmulOp", "LinearOp"):
        shape = op.tensor("a").shape
        return 2 * op.tensor("out").elements * shape[-2 if record.get("transpose_a") and len(shape) > 1 else -1]
    if op.name in ("Conv2dOp", "Conv3dOp", "ConvTranspose2dOp"):
        tensor, channels = ("input", "out_channels") if op.name == "ConvTranspose2dOp" else ("out", "in_channels")
        window: int = record[channels] // record["groups"] * math.prod(record["kernel_size"])
        return 2 * op.tensor(tensor).elements * window
    if op.name == "ScaledDotProductAttentionOp":
        return 4 * op.tensor("query").elements * op.tensor("key").shape[-2]
    return 0


def _fidelity(op: Op) -> str:
    """The math fidelity that the binary asks for. Otherwise the one that uses all bits of the operands: HiFi2 for block
    floats (8 bits), HiFi4 for wider types."""
    asked = str((op.record.get("compute_config") or {}).get("math_fidelity"))
    if asked in PASSES:
        return asked
    return "HiFi2" if any(t.dtype in BLOCK_BITS for t in op.operands) else "HiFi4"


def _vector_cycles(op: Op) -> int:
    """Cycles of one vector lane: 0 for data movement, 1 per element for simple ops, 20 per element for
    transcendental functions."""
    if op.name in DATA_MOVEMENT or op.name in LOOKUPS:
        return 0
    per_element = _TRANSCENDENTAL if _is_transcendental(op.name, str(op.record.get("type", ""))) else 1
    work = max([t.elements for t in (*op.read, *op.written)] or [0])
    return per_element * max(work, sum(t.elements for t in op.results))


def _is_transcendental(name: str, kind: str) -> bool:
    simple = {"Relu", "Neg", "Abs", "Add", "Subtract", "Multiply", "Maximum", "Minimum", "ClampScalar", "Sum", "Max",
              "Min", "Mean", ""}  # fmt: skip
    return name in ("SoftmaxOp", "LayerNormOp", "RMSNormOp", "BatchNormInferenceOp") or (
        name.startswith("EltwiseUnary") and kind not in simple
    )

"""The times of an op on a chip, by two models: the roofline, which no program can beat, and the full model, which also
has what a roofline leaves out. docs/profiling.md says where each figure comes from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tt_torch.profiling.work import (
    CONVOLUTIONS,
    PRODUCTS,
    Product,
    adds_apart,
    cycles_per_element,
    elements,
    factors,
    has_rows,
    is_product,
    product,
)
from tt_torch.wire.chips import (
    GAP,
    KERNEL,
    MATRIX_FLOPS,
    PACK_BYTES,
    PAGE_CYCLES,
    PASS_CYCLES,
    PASSES,
    VECTOR_LANES,
    Chip,
)
from tt_torch.wire.facts import FEW_CHANNELS, TILE, Op, Tensor, physical_bytes

WINDOWS = ("Conv2dOp", "ConvTranspose2dOp", "Pool2dOp")  # a kernel before them exchanges borders


@dataclass(frozen=True)
class Times:
    """The seconds that each part of an op would take alone. The parts overlap, but nothing overlaps the launch."""

    arithmetic: float
    dram: float
    l1: float
    network: float
    links: float
    launch: float

    @property
    def total(self) -> float:
        return self.launch + max(self.arithmetic, self.dram, self.l1, self.network, self.links)


def roofline(op: Op, chip: Chip, fidelity: str, flops: int, dram: int, l1: int, links: int) -> Times:
    """The times of an op if all cores share all work, and nothing waits. `dram`, `l1` and `links` are bytes."""
    if flops:
        arithmetic = flops * PASSES[fidelity] / (MATRIX_FLOPS * chip.cores * chip.clock)
    else:
        arithmetic = cycles_per_element(op) * elements(op) / (VECTOR_LANES * chip.cores * chip.clock)
    return Times(arithmetic, dram / chip.dram, l1 / (chip.l1 * chip.cores), 0.0, links / chip.link, 0.0)


def full(op: Op, chip: Chip, fidelity: str, flops: int, dram: int, links: float) -> Times:
    """The times of an op in a recording, by the full model. `dram` is in bytes, and `links` in seconds."""
    found = product(op, flops) if flops else None
    arithmetic = _product(op, found, chip, fidelity) if found else _other(op, chip, fidelity, flops)
    launch = kernels(op) * (GAP + KERNEL) + (chip.first if found and factors(op)[0].place == "DRAM" else 0.0)
    network = max(_pages(op, chip), _multicast(op, found, chip) if found else 0.0)
    return Times(arithmetic, dram / _rate(op, found, chip), _l1(op, chip), network, links, launch)


def _rate(op: Op, found: Product | None, chip: Chip) -> float:
    """The bytes of DRAM per second of an op. A product of one row of tiles reads its weight more slowly than others."""
    if not found or op.name not in PRODUCTS or found.batch * found.rows > 1 or factors(op)[1].place != "DRAM":
        return chip.dram * chip.reached
    parts = _banks(op)
    return chip.bank * parts if parts else chip.dram * chip.row


def _banks(op: Op) -> int:
    """The number of banks of DRAM that have a part of the right operand; 0 if it is not split over them."""
    right = factors(op)[1]
    return math.prod(right.grid) if right.grid and right.place == "DRAM" else 0


def kernels(op: Op) -> int:
    """The kernels that the library starts for an op.

    A view starts none. A bias of several rows is added by a kernel of its own. An op with windows first exchanges
    borders between cores. If its operand or its result is not sharded, one more kernel moves it; if its pixels are rows
    of 3 channels, one more kernel gives them 8. A convolution of single pixels is a matrix product. Graph captures of
    ttnn 0.81.1 show this.
    """
    if op.name not in WINDOWS or is_product(op):
        return 0 if op.is_view else 1 + adds_apart(op)
    aligned = op.name == "Conv2dOp" and has_rows(op) and op.record["in_channels"] % FEW_CHANNELS > 0
    return 2 + aligned + sum(tensor.grid is None for tensor in (*op.operands[:1], *op.results[:1]))


def _product(op: Op, found: Product, chip: Chip, fidelity: str) -> float:
    """The busiest core computes whole tiles, one step along the inner dimension after the other. The tiles of a step
    that come from other cores or from DRAM take at least `step`. This time overlaps with arithmetic in part."""
    tiles = found.batch * math.prod(_split(op, found, chip))
    left, right = factors(op)
    cycles = PASSES[fidelity] * PASS_CYCLES + chip.unpack * physical_bytes(right.dtype, True, (TILE, TILE))
    return found.inner * math.hypot(tiles * cycles / chip.clock, 0.0 if left.grid else chip.step)


def _split(op: Op, found: Product, chip: Chip) -> tuple[int, int]:
    """The rows and columns of tiles of the result on the busiest core. The cores share the result in blocks, or in
    columns or rows alone: the form that gives this core the fewest tiles is chosen. If banks of DRAM have parts of the
    right operand, one core computes the columns of each part."""
    rows, columns = found.rows, found.columns
    if parts := _banks(op):
        return rows, math.ceil(columns / parts)
    blocks = math.ceil(rows / chip.rows), math.ceil(columns / chip.columns)
    forms = [blocks, (rows, math.ceil(columns / chip.cores)), (math.ceil(rows / chip.cores), columns)]
    return min(forms, key=lambda form: (math.prod(form), max(form)))


def _other(op: Op, chip: Chip, fidelity: str, flops: int) -> float:
    if flops:  # attention and transposed convolutions: they count as products, but no table has their tiles
        size = physical_bytes(factors(op)[0].dtype, True, (TILE, TILE))
        slower = 1 + chip.unpack * size / (PASSES[fidelity] * PASS_CYCLES)
        return slower * flops * PASSES[fidelity] / (MATRIX_FLOPS * chip.cores * chip.clock)
    if not (each := cycles_per_element(op)):
        return 0.0
    tiles = math.ceil(elements(op) / TILE**2)
    size = max((physical_bytes(t.dtype, True, (TILE, TILE)) for t in op.results), default=0)
    return math.ceil(tiles / chip.cores) * max(each * TILE**2 / VECTOR_LANES, size / PACK_BYTES) / chip.clock


def _l1(op: Op, chip: Chip) -> float:
    """The fullest core reads and writes its part of each sharded tensor; all cores share the others."""
    found = 0.0
    for tensor in (*op.read, *op.written):
        if tensor.place == "L1":
            found += tensor.bytes / (min(math.prod(tensor.grid), chip.cores) if tensor.grid else chip.cores)
    return found / chip.l1


def _pages(op: Op, chip: Chip) -> float:
    """Pages of tensors that are not sharded travel over the network. A core asks for one after the other."""
    tensors = [t for t in (*op.read, *op.written) if t.on_device and not t.grid]
    asked = math.ceil(sum(map(_count, tensors)) / chip.cores) * PAGE_CYCLES / chip.clock
    return max(asked, sum(t.bytes for t in tensors) / (chip.noc * chip.cores))


def _count(tensor: Tensor) -> int:
    if tensor.tiled:
        *outer, rows, columns = [1, 1, *tensor.shape]
        return math.prod(outer) * math.ceil(rows / TILE) * math.ceil(columns / TILE)
    return math.prod(tensor.shape[:-1])


def _multicast(op: Op, found: Product, chip: Chip) -> float:
    """Each core gets the rows and the columns of tiles that it multiplies, each over one of the two networks. The cores
    of a convolution have their pixels already, and get only filters."""
    sizes = [physical_bytes(t.dtype, True, (TILE, TILE)) for t in factors(op)]
    rows, columns = (count * size for count, size in zip(_split(op, found, chip), sizes, strict=True))
    received = columns if op.name in CONVOLUTIONS else max(rows, columns)
    return found.batch * found.inner * received / chip.noc

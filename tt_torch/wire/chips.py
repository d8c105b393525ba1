"""Figures of the chips, for models of time: `tt_torch/profiling/cost_model.py` and the optimizer.

docs/profiling.md names the sources of the figures. `unpack`, `step` and `first` are not published: `python -m
benchmarks chips` finds them by least squares from the times that tt-metal publishes for matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass

MATRIX_FLOPS = 4096  # per core and cycle, in one pass of the matrix unit: 8x16 times 16x16
PASSES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}  # passes that the matrix unit makes over the operands' bits
PASS_CYCLES = 16  # cycles of one pass over the product of two tiles of 32x32
VECTOR_LANES = 32  # elements per core and cycle
PACK_BYTES = 64  # per core and cycle, from L1 into the registers of the vector unit and back
PAGE_CYCLES = 50  # cycles in which a core asks the network for one page: a tile, or a row of a row-major tensor
GAP = 0.7e-6  # seconds between two ops of a recording
KERNEL = 0.85e-6  # seconds of the shortest kernels: start on all cores, and end
HOP = 0.65e-6  # seconds until a packet has arrived at the next chip, without the time for its bytes
DISPATCH = 16e-6  # seconds in which the host starts one op that is not part of a recording


@dataclass(frozen=True)
class Chip:
    """A chip with `rows` x `columns` cores. Rates are bytes per second.

    The data sheet gives `dram`, and `reached` is the share of it that was measured. A product of one row of tiles
    reaches only the share `row` if the pages of its weight lie on all banks in turn. If the banks have parts of the
    weight, one core reads each part at the rate `bank`. One core reads its own L1 at the rate `l1`, and sends over the
    network between cores at the rate `noc`. Two chips that are neighbours in a mesh send at the rate `link` in each
    direction.

    A product of two tiles takes `unpack` cycles more for each byte of a tile of the operands. Each step of one tile
    along the inner dimension takes at least `step` seconds. The first tiles arrive after `first` seconds.
    """

    rows: int
    columns: int
    clock: float  # Hz
    dram: float
    reached: float
    row: float
    bank: float
    l1: float
    noc: float
    link: float
    unpack: float
    step: float
    first: float

    @property
    def cores(self) -> int:
        return self.rows * self.columns


# By the wire's name of the architecture.
CHIPS = {
    "Wormhole_b0": Chip(
        rows=8, columns=8, clock=1.0e9, dram=288e9, reached=0.92, row=0.61, bank=20.8e9,
        l1=64e9, noc=32e9, link=25e9, unpack=0.0082, step=0.063e-6, first=5.5e-6,
    ),
    "Blackhole": Chip(
        rows=10, columns=13, clock=1.35e9, dram=512e9, reached=0.98, row=0.78, bank=35.2e9,
        l1=86.4e9, noc=86.4e9, link=100e9, unpack=0.0026, step=0.22e-6, first=5.2e-6,
    ),
}  # fmt: skip

"""The cores of a chip, and the ways to split a tensor over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tt_torch.mlir.parts import even, shares
from tt_torch.mlir.ttnn.layout import Layout, tiles
from tt_torch.wire.binary import first_chip
from tt_torch.wire.chips import CHIPS, Chip
from tt_torch.wire.messages import SystemDesc

# The firmware and the kernels' code take about 100 KiB of each core's L1 at its beginning. A description of a Blackhole
# says so (98,304 bytes). A description of a Wormhole that was made without hardware does not, so RESERVED is kept free.
RESERVED = 104 * 1024


@dataclass(frozen=True)
class Cores:
    """Rows and columns of cores, the bytes of L1 that programs have on each, and the figures of the chip.

    `banks` counts the banks of DRAM over which weights may be split; it is 0 if they must not be.
    """

    rows: int
    columns: int
    l1: int
    chip: Chip
    banks: int = 0

    @property
    def count(self) -> int:
        return self.rows * self.columns


def cores_of(system: SystemDesc, splits_weights: bool = False) -> Cores:
    chip = first_chip(system)
    grid = chip["grid_size"]
    l1 = chip["l1_size"] - max(chip["l1_unreserved_base"], RESERVED)
    return Cores(grid["y"], grid["x"], l1, CHIPS[chip["arch"]], chip["num_dram_channels"] if splits_weights else 0)


def by_height(layout: Layout, shape: Sequence[int], cores: Cores) -> Layout:
    """Whole rows of tiles on each core."""
    return _sharded(layout, "HeightSharded", (shares(tiles(shape)[0], cores.count), 1))


def by_width(layout: Layout, shape: Sequence[int], cores: Cores) -> Layout:
    """The same number of whole columns of tiles on each core."""
    return _sharded(layout, "WidthSharded", (1, even(tiles(shape)[1], cores.count)))


def by_block(layout: Layout, shape: Sequence[int], columns: int, cores: Cores) -> Layout:
    """A rectangle of tiles on each core. The grid has `columns` columns of cores."""
    return _sharded(layout, "BlockSharded", (shares(tiles(shape)[0], cores.rows), columns))


def _sharded(layout: Layout, kind: str, grid: tuple[int, int]) -> Layout:
    return layout.with_(buffer="L1", memory_layout=kind, grid=grid)


def like(layout: Layout, other: Layout) -> Layout:
    """`layout` in the place of `other`."""
    return layout.with_(buffer=other.buffer, memory_layout=other.memory_layout, grid=other.grid)


def largest_part(tile_counts: tuple[int, int], grid: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of tiles of the largest part."""
    return -(-tile_counts[0] // grid[0]), -(-tile_counts[1] // grid[1])

"""Descriptions of clusters of mock chips, which the `ttnn` package opens in place of hardware.

A description is YAML in the form of Tenstorrent's user-mode driver. The cards lie in a grid, and each chip is linked to
those beside, above and below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BOARD_ID = 1 << 36  # the kind of a card is above its serial number; the lower 16 bits must differ on Wormhole
CHIP_ID = 1 << 42  # the id of the first chip
CHANNELS = 2  # the number of channels of each link


@dataclass(frozen=True)
class Card:
    """A kind of card. The bits of a mask are the parts of a chip that are switched off: rows of cores on Wormhole,
    columns on Blackhole. The channels of links begin at `east`, `west`, `north` and `south`."""

    arch: str
    board: int  # the number of this kind in the id of a card
    chips: int = 1  # a second chip has no link to the host
    cores: int = 0
    ethernet: int = 0
    pcie: int = 0
    east: int = 8
    west: int = 0
    north: int = 4
    south: int = 12


# A real n300 has one row of cores fewer than in this table. Commands can go through its Ethernet cores, which leaves
# 8x8 cores to programs. A mock device always counts as if commands went through a row of the other cores.
CARDS = {
    "n150": Card("wormhole_b0", board=0x18, cores=0b100000),
    "p150": Card("blackhole", board=0x40, ethernet=0b100100000, pcie=0b10, east=6, north=3, south=10),
    "n300": Card("wormhole_b0", board=0x14, chips=2, cores=0b100000),
}


def description(device: str, mesh_shape: Sequence[int] = (1, 1)) -> str:
    """The YAML of a grid of cards of this kind with (rows, columns) of chips. A card with two chips is never divided,
    so a grid with an odd number of chips gets another column."""
    card = CARDS[device]
    rows, columns = mesh_shape
    columns += rows * columns % card.chips
    chips = range(rows * columns)
    boards = [list(chips[i : i + card.chips]) for i in chips[:: card.chips]]
    masks = {
        "noc_translation": True,
        "harvest_mask": card.cores,
        "dram_harvesting_mask": 0,
        "eth_harvesting_mask": card.ethernet,
        "pcie_harvesting_mask": card.pcie,
        "l2cpu_harvesting_mask": 0,
    }
    places = {chip: [chip % columns, chip // columns, 0, 0] for chip in chips}
    facts = {
        "arch": dict.fromkeys(chips, card.arch),
        "chips": places if card.arch == "wormhole_b0" else {},
        "chip_unique_ids": {chip: CHIP_ID + chip for chip in chips},
        "ethernet_connections": list(_links(card, rows, columns)),
        "ethernet_connections_to_remote_devices": [],
        "chips_with_mmio": [{board[0]: number} for number, board in enumerate(boards)],
        "harvesting": dict.fromkeys(chips, masks),
        "boards": [
            [{"board_id": card.board * BOARD_ID + number}, {"board_type": device}, {"chips": board}]
            for number, board in enumerate(boards)
        ],
    }
    return json.dumps(facts, indent=1)  # JSON is YAML, too


def _links(card: Card, rows: int, columns: int) -> Iterator[list[dict[str, int]]]:
    for chip in range(rows * columns):
        beside = [(chip + 1, card.east, card.west)] if chip % columns < columns - 1 else []
        below = [(chip + columns, card.south, card.north)] if chip // columns < rows - 1 else []
        for other, out, into in beside + below:
            for k in range(CHANNELS):
                yield [{"chip": chip, "chan": out + k}, {"chip": other, "chan": into + k}]


def fabric(device: str, mesh_shape: Sequence[int]) -> str:
    """The mesh as the library's fabric sees it: lines of chips, not rings. It is the text of a Protocol Buffers message
    `MeshGraphDescriptor`."""
    rows, columns = mesh_shape
    return f"""mesh_descriptors {{
  name: "mesh"
  arch: {CARDS[device].arch.upper()}
  device_topology {{ dims: [{rows}, {columns}] }}
  host_topology {{ dims: [1, 1] }}
  channels {{ count: {CHANNELS} policy: RELAXED }}
}}
top_level_instance {{ mesh {{ mesh_descriptor: "mesh" mesh_id: 0 }} }}
"""

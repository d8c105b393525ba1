"""Figures of the chips, for models of time: `tt_torch/profiling/cost_model.py` and the optimizer.

docs/profiling.md names the sources of the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

MATRIX_FLOPS = 4096  # per core and cycle, in one pass of the matrix unit: 8x16 times 16x16
PASSES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}  # passes that the matrix unit makes over the operands' bits


@dataclass(frozen=True)
class Chip:
    cores: int
    clock: float  # Hz
    dram: float  # bytes per second
    l1: float  # bytes per second and core
    link: float  # bytes per second, in each direction, between two chips that are neighbours in a mesh


# By the wire's name of the architecture.
CHIPS = {
    "Wormhole_b0": Chip(cores=64, clock=1.0e9, dram=288e9, l1=64e9, link=25e9),
    "Blackhole": Chip(cores=130, clock=1.35e9, dram=512e9, l1=86.4e9, link=100e9),
}

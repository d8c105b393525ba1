"""The cost of a binary's ops on the chips: work, bytes, and the times of two models (`times.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tt_torch.profiling import times
from tt_torch.profiling.links import Mesh, crossing, hops
from tt_torch.profiling.times import Times
from tt_torch.profiling.work import fidelity, matrix_flops, traffic
from tt_torch.wire.binary import first_chip
from tt_torch.wire.calls import cost, public, recorded
from tt_torch.wire.chips import CHIPS, DISPATCH, HOP, Chip
from tt_torch.wire.facts import Op, allocations, mesh_shape
from tt_torch.wire.messages import File, Program


@dataclass(frozen=True)
class OpCost:
    """The cost of an op: flops of the matrix unit, bytes moved, and times. `ideal` has the times by the roofline, and
    `full` the times by the full model.

    `link_bytes` cross the busiest link between chips in one direction: profiling/links.py.
    """

    fidelity: str
    flops: int
    dram_read: int
    dram_written: int
    l1_bytes: int
    link_bytes: int
    ideal: Times
    full: Times

    @property
    def seconds(self) -> float:
        """The time of the op and of its launch, by the full model."""
        return self.full.total

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

    `moves` counts the device ops that only move data. `ideal` is the time by the roofline, and `seconds` the time by
    the full model. `dispatch` is the time that the host needs to start all ops one by one; it is 0 for a recording. A
    call takes `seconds` or `dispatch`, whichever is longer. All times are in seconds.
    """

    device_ops: int
    moves: int
    bytes: int
    ideal: float
    seconds: float
    dispatch: float


def of_call(message: File) -> CallCost:
    """The cost of one call of a binary on its own system."""
    spent, arch = cost(message), first_chip(message["system_desc"])["arch"]
    ops = [op for program in public(message) for op in planned(program, arch)]
    ideal, seconds = sum(op.cost.ideal.total for op in ops), sum(op.cost.seconds for op in ops)
    dispatch = 0.0 if recorded(message) else DISPATCH * sum(times.kernels(op.op) for op in ops)
    return CallCost(spent.device_ops, spent.data_movement, spent.bytes_moved, ideal, seconds, dispatch)


def planned(program: Program, arch: str) -> Iterator[PlannedOp]:
    """The device ops of a program in order, with their costs. `arch` is a key of CHIPS."""
    mesh = mesh_shape(program)
    for op, held in allocations(program):
        if op.on_device:
            yield PlannedOp(op, cost_of(op, CHIPS[arch], mesh), held["DRAM"], held["L1"])


def cost_of(op: Op, chip: Chip, mesh: Mesh = (1, 1)) -> OpCost:
    """The cost of one op of a binary on a chip of a mesh."""
    read, written = traffic(op)
    flops, links = matrix_flops(op), crossing(op, mesh)
    passes = fidelity(op) if flops else ""
    dram, l1 = (read[place] + written[place] for place in ("DRAM", "L1"))
    ideal = times.roofline(op, chip, passes, flops, dram, l1, links)
    full = times.full(op, chip, passes, flops, dram, links / chip.link + HOP * hops(op, mesh))
    return OpCost(passes, flops, read["DRAM"], written["DRAM"], l1, links, ideal, full)

"""A roofline of the chips: an op takes as long as the slowest of its arithmetic, its DRAM traffic and its L1 traffic.

It knows nothing of kernels, of the network between cores, of what overlaps, or of launching. docs/profiling.md says
where the figures are from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tt_torch.wire.binary import DATA_MOVEMENT, NOT_DEVICE_OPS, physical_bytes, tensor_refs

MATRIX_FLOPS = 4096  # per core and cycle, in one pass of the matrix unit: 8x16 times 16x16
_VECTOR_LANES = 32  # elements per core and cycle
_TRANSCENDENTAL = 20  # cycles of the vector unit per element
_PASSES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}  # of the matrix unit over the operands' bits


@dataclass(frozen=True)
class Chip:
    cores: int
    clock: float  # Hz
    dram: float  # bytes per second
    l1: float  # bytes per second and core


CHIPS = {
    "Wormhole_b0": Chip(cores=64, clock=1.0e9, dram=288e9, l1=64e9),
    "Blackhole": Chip(cores=130, clock=1.35e9, dram=512e9, l1=86.4e9),
}


@dataclass(frozen=True)
class OpCost:
    """Flops and vector cycles of an op, the bytes that it moves, and the seconds that each would take alone."""

    fidelity: str
    flops: int
    dram_read: int
    dram_written: int
    l1_bytes: int
    compute: float
    dram: float
    l1: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.dram, self.l1)

    @property
    def bytes(self) -> int:
        return self.dram_read + self.dram_written + self.l1_bytes


@dataclass(frozen=True)
class PlannedOp:
    """An op as the binary has it: what does not change from call to call. Memory is that after the op, in bytes."""

    name: str
    table: dict[str, Any]
    location: str
    cost: OpCost
    dram: int
    l1: int


def planned(program: dict[str, Any], arch: str) -> Iterator[PlannedOp]:
    """The device ops of a program in order, with the memory that is allocated after each: inputs and results, until
    their `deallocate`."""
    live = {ref["global_id"]: ref for ref in program.get("inputs") or ()}
    for operation in program.get("operations") or ():
        for name, table in operation["type"].items():
            made = table.get("outputs") if name == "LoadCachedOp" else results(table)
            live |= {ref["global_id"]: ref for ref in made or () if "desc" in ref}
            if name == "DeallocateOp":
                live.pop(table["in"]["global_id"], None)
            elif name not in NOT_DEVICE_OPS:
                dram, l1 = (sum(physical_bytes(r) for r in live.values() if place_of(r) == p) for p in ("DRAM", "L1"))
                yield PlannedOp(name, table, operation.get("loc_info", ""), cost_of(name, table, CHIPS[arch]), dram, l1)


def cost_of(name: str, op: dict[str, Any], chip: Chip) -> OpCost:
    """The cost of one op of a binary on a chip, all of whose cores take part."""
    written = results(op)
    read = [ref for ref in tensor_refs(op) if not any(ref is out for out in written)]
    traffic = {place: [sum(physical_bytes(r) for r in refs if place_of(r) == place) for refs in (read, written)]
               for place in ("DRAM", "L1")}  # fmt: skip
    flops = matrix_flops(name, op)
    fidelity = _fidelity(op, read) if flops else ""
    if flops:
        compute = flops * _PASSES[fidelity] / (MATRIX_FLOPS * chip.cores * chip.clock)
    else:
        compute = _vector_cycles(name, op, written) / (_VECTOR_LANES * chip.cores * chip.clock)
    dram_read, dram_written = traffic["DRAM"]
    dram, l1 = (dram_read + dram_written) / chip.dram, sum(traffic["L1"]) / (chip.l1 * chip.cores)
    return OpCost(fidelity, flops, dram_read, dram_written, sum(traffic["L1"]), compute, dram, l1)


def results(op: dict[str, Any]) -> list[dict[str, Any]]:
    """The tensors that an op makes."""
    fields = [value for field, value in op.items() if field.startswith(("out", "result"))]
    return list(tensor_refs(fields))


def place_of(ref: dict[str, Any]) -> str:
    """DRAM, L1 or host."""
    memory = ref["desc"]["layout"]["memory_desc"].get("memory_config")
    return (memory or {}).get("buffer_type", "host")


def elements(ref: dict[str, Any]) -> int:
    return math.prod(ref["desc"]["shape"])


def matrix_flops(name: str, op: dict[str, Any]) -> int:
    """Multiplications and additions of the ops that the matrix unit does; 0 for all others."""
    if name in ("MatmulOp", "LinearOp"):
        shape = op["a"]["desc"]["shape"]
        return 2 * elements(op["out"]) * shape[-2 if op.get("transpose_a") and len(shape) > 1 else -1]
    if name in ("Conv2dOp", "Conv3dOp"):
        return 2 * elements(op["out"]) * op["in_channels"] // op["groups"] * math.prod(op["kernel_size"])
    if name == "ConvTranspose2dOp":
        return 2 * elements(op["input"]) * op["out_channels"] // op["groups"] * math.prod(op["kernel_size"])
    if name == "ScaledDotProductAttentionOp":
        return 4 * elements(op["query"]) * op["key"]["desc"]["shape"][-2]
    return 0


def _fidelity(op: dict[str, Any], read: list[dict[str, Any]]) -> str:
    """What the file asks for, else all bits: two passes for the 8 of block floats, four for more."""
    asked = (op.get("compute_config") or {}).get("math_fidelity")
    if asked in _PASSES:
        return asked
    types = {ref["desc"]["layout"]["memory_desc"]["data_type"] for ref in read}
    return "HiFi2" if any(t.startswith("BFP_") for t in types) else "HiFi4"


def _vector_cycles(name: str, op: dict[str, Any], written: list[dict[str, Any]]) -> int:
    """Lane cycles: none for moving data, one per element for what is simple, twenty for what has exponentials."""
    if name in DATA_MOVEMENT:
        return 0
    per_element = _TRANSCENDENTAL if _is_transcendental(name, str(op.get("type", ""))) else 1
    work = max([elements(ref) for ref in tensor_refs(op)] or [0])
    return per_element * max(work, sum(map(elements, written)))


def _is_transcendental(name: str, kind: str) -> bool:
    simple = {"Relu", "Neg", "Abs", "Add", "Subtract", "Multiply", "Maximum", "Minimum", "ClampScalar", "Sum", "Max",
              "Min", "Mean", ""}  # fmt: skip
    return name in ("SoftmaxOp", "LayerNormOp", "RMSNormOp", "BatchNormInferenceOp") or (
        name.startswith("EltwiseUnary") and kind not in simple
    )

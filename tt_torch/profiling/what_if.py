"""Modelled times for the same ops with other data types or on another chip.

Nothing is compiled again: the ops, their places in memory and the math fidelity stay as they are in the binary. Casts
at the border of the program, which other data types need, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from tt_torch.profiling.cost_model import OpCost, cost_of
from tt_torch.profiling.links import Mesh
from tt_torch.profiling.work import is_product
from tt_torch.wire.chips import CHIPS
from tt_torch.wire.facts import BLOCK_FLOATS, Op, Tensor, ops
from tt_torch.wire.messages import Program

AS_COMPILED = "as compiled"
BF16, BFP8 = 'dtype="bf16"', 'weight_dtype="bfp8_b"'  # the options that would do it
# For each choice of numbers: the data type of wider floats (None: unchanged) and of weights of matrix products.
NUMBERS: dict[str, tuple[str | None, str | None]] = {
    AS_COMPILED: (None, None),
    BF16: ("BFloat16", None),
    BFP8: (None, BLOCK_FLOATS["bfp8_b"]),
    f"{BF16}, {BFP8}": ("BFloat16", BLOCK_FLOATS["bfp8_b"]),
}


@dataclass(frozen=True)
class Scenario:
    """A chip, which is a key of CHIPS, and a choice of numbers, which is a key of NUMBERS."""

    chip: str
    numbers: str


SCENARIOS = [Scenario(chip, numbers) for chip in CHIPS for numbers in NUMBERS]


def costs(op: Op, constants: Set[int], mesh: Mesh) -> Iterator[OpCost]:
    """The cost of an op in each of SCENARIOS. `constants` are the ids of the program's constant tensors."""
    ops_by_numbers = {numbers: _with(op, *types, constants) for numbers, types in NUMBERS.items()}
    for scenario in SCENARIOS:
        yield cost_of(ops_by_numbers[scenario.numbers], CHIPS[scenario.chip], mesh)


def constant_tensors(program: Program, weights: Set[int]) -> set[int]:
    """The ids of the tensors that depend on weights only: `weights`, and results of ops that read no others."""
    constant = set(weights)
    for op in ops(program):
        if op.operands and all(t.id in constant for t in op.operands):
            constant |= {t.id for t in op.results}
    return constant


def _with(op: Op, floats: str | None, weights: str | None, constants: Set[int]) -> Op:
    """The op with other data types of its tensors. A cast between two types that become equal does nothing."""

    def changed(tensor: Tensor) -> Tensor:
        dtype = tensor.dtype
        if weights and tensor.id in constants and tensor.id == product_weight(op):
            dtype = weights if dtype in ("Float32", "BFloat16") else dtype
        elif floats and dtype == "Float32":
            dtype = floats
        return replace(tensor, memory=tensor.memory | {"data_type": dtype})

    new = replace(op, operands=tuple(map(changed, op.operands)), results=tuple(map(changed, op.results)))
    if op.name == "TypecastOp" and _casts(op) and not _casts(new):
        return replace(op, operands=(), results=())
    return new


def _casts(op: Op) -> bool:
    return [t.dtype for t in op.operands] != [t.dtype for t in op.results]


def product_weight(op: Op) -> int | None:
    """The id of the operand that gets the data type of weights: the second one of a matrix product, or the filters of
    a convolution that is a matrix product."""
    if op.name in ("MatmulOp", "LinearOp"):
        return op.tensor("b").id
    return op.tensor("weight").id if is_product(op) else None

"""The forms of an op that the optimizer weighed, and why it took one of them: for `tt-torch inspect --why`."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir

from tt_torch.mlir.ttnn.layout import layout_of
from tt_torch.mlir.ttnn.optimizer.choice import Choice
from tt_torch.mlir.ttnn.optimizer.overriding import words
from tt_torch.mlir.ttnn.sharded import BANKS


@dataclass(frozen=True)
class Candidate:
    """A form of an op. `seconds` is the modelled time of the op with the moves of its operands, and `readers` the time
    that other ops take to read its result. `l1` counts the bytes that the fullest core needs while the op runs, with
    all that later ops still read."""

    result: str
    moves: str
    configuration: str
    seconds: float
    readers: float
    l1: int
    verdict: str

    @property
    def total(self) -> float:
        return self.seconds + self.readers


@dataclass(frozen=True)
class Decision:
    """An op, its names, the user's line, and its candidates. If no candidate is chosen, the op lies in DRAM."""

    op: str
    names: tuple[str, ...]
    location: str
    candidates: tuple[Candidate, ...]


CHOSEN = "chosen"
REFUSED = "refused: "  # begins the verdict of a form that the op model refuses, before its reason


def moves_of(op: ir.Operation, choice: Choice) -> str:
    """The operands that must be moved first, by position."""
    made, reads = words(choice.result), enumerate(zip(op.operands, choice.reads(op), strict=True))
    moved = {i: layout for i, (value, layout) in reads if layout != layout_of(value)}
    places = {i: "beside the result" if words(layout) == made else f"to {words(layout)}" for i, layout in moved.items()}
    return ", ".join(f"{i} {place}{'' if moved[i].tiled else ', in rows'}" for i, place in places.items())


def configuration_of(choice: Choice) -> str:
    """The configuration of the kernel, in short."""
    if config := choice.attributes.get("matmul_program_config"):
        ((kind, fields),) = config.items()
        line = "1D, sends the left" if fields.get("mcast_in0") else "1D, sends the right"
        direction = "from banks" if kind == BANKS else line if "1D" in kind else "2D"
        part = f"{fields['per_core_m']}x{fields['per_core_n']} tiles in steps of {fields['in0_block_w']}"
        return f"{direction}: {part}"
    fields = choice.attributes.get("conv2d_config") or {}
    return ", ".join(f"{name} {value}" for name, value in fields.items() if name.startswith(("act_block", "enable_")))

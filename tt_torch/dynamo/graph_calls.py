"""Ops that call graphs, such as `while_loop`, in a graph that becomes one StableHLO module.

torch-mlir does not lower these ops. Each of them crosses it as a call with a number, and `mlir/graph_calls.py` writes
the loop or the branch of this number in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tt_torch.torch_private.ops import OpOverload

LIBRARY = torch.library.Library("tt_graphs", "DEF")
TARGET = "tt_torch.graphs"  # the name of the custom call
OPS: dict[int, OpOverload] = {}  # by the number of their results


@dataclass(frozen=True)
class GraphCall:
    """A call that becomes a loop or a branch. It may have one more result, which is a flag."""

    is_loop: bool
    results: int


def op_with(results: int) -> OpOverload:
    """The op that stands for a call with so many results. Nothing computes it."""
    if results not in OPS:
        kinds = ", ".join(["Tensor"] * results)
        LIBRARY.define(f"call{results}(Tensor[] operands, *, int number) -> ({kinds})")
        OPS[results] = getattr(torch.ops.tt_graphs, f"call{results}").default
    return OPS[results]


def is_call(target: object) -> bool:
    return target in OPS.values()

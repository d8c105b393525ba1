"""Removes Shardy's annotations. They say on which chips a value lies, and never which value it is.

torch-mlir has no dialect `sdy`. Ops in the generic form of MLIR can be read without their dialect; ops in the usual
form of text are rewritten first. `sdy.manual_computation` computes on parts of values: see manual.py.
"""

from __future__ import annotations

import re

from torch_mlir import ir

# The result of each of these is its operand, laid out in another way.
LAYOUTS = (
    *("sharding_constraint", "reshard", "propagation_barrier"),
    *("all_gather", "all_slice", "all_to_all", "collective_permute"),
)
NOTES = ("mesh", "sharding_group")  # these have no results
_MESH = re.compile(r"^[ \t]*sdy\.mesh @.*$", re.MULTILINE)
_LAYOUT = re.compile(rf"= sdy\.(?:{'|'.join(LAYOUTS[:2])}) (%[\w#]+) <[^>\n]*> :")


def plain_text(text: str) -> str:
    """The text of a module without meshes and constraints of `sdy`, which are what JAX writes. Lines keep their
    numbers."""
    return _LAYOUT.sub(r"= stablehlo.optimization_barrier \1 :", _MESH.sub("", text))


def remove_annotations(module: ir.Module) -> None:
    for function in list(module.body.operations):
        _remove(function.operation)


def _remove(op: ir.Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                _remove(inner.operation)
    dialect, _, name = op.name.partition(".")
    if dialect != "sdy" or name not in (*LAYOUTS, *NOTES):
        return
    if name in LAYOUTS:
        op.results[0].replace_all_uses_with(op.operands[0])
    op.erase()

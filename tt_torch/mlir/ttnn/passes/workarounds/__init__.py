"""Workarounds for Tenstorrent's library: each rule is for an op that it refuses, or whose result has another form.

The docstring of a rule quotes the message of the library; `python -m tt_torch.tools.workaround_docs` writes
docs/workarounds.md from the docstrings. The layouts that operands need are in the op's declaration (`needs`).
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import main
from tt_torch.mlir.stablehlo.normalize import retype_function
from tt_torch.mlir.ttnn.passes.workarounds import (  # noqa: F401  (registers the rules)
    attention,
    integers,
    movement,
    orderings,
    sliding,
)
from tt_torch.mlir.ttnn.passes.workarounds.registry import ALL, RULES, Workaround

__all__ = ["ALL", "Workaround", "apply_workarounds"]


def apply_workarounds(module: ir.Module) -> None:
    """Applies the rules until none matches, because some make ops for which another rule exists."""
    RULES.simplify(module)
    with module.context, ir.Location.unknown():
        retype_function(main(module))

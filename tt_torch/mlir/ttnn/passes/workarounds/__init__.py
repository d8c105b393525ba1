"""Programs that Tenstorrent's library takes: each rule is for something that it refuses, or makes in another form.

A rule's docstring quotes the library's message; `python -m tt_torch.tools.workaround_docs` makes
docs/workarounds.md of them. What the library wants of an operand's layout is in the op's declaration (`needs`).
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
    """Until no rule matches: some make ops that another is for."""
    RULES.simplify(module)
    with module.context, ir.Location.unknown():
        retype_function(main(module))

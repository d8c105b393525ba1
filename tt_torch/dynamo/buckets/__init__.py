"""Programs for sizes that are rounded up: inputs are padded to the next bucket, and results are cropped again.

A captured graph with symbolic sizes is traced once per bucket (`padding.py`), with masks wherever an op would mix
padding into results that are kept. An op without a rule for padding is refused, and the error names it.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch
from torch.fx import GraphModule

from tt_torch import user_code
from tt_torch.dynamo.buckets import lookups, rules, writes  # noqa: F401  (importing fills the table)

Sizes = tuple[tuple[str, tuple[int, ...]], ...]  # of dimensions by name, like (("x.1", (16, 32)),)


def symbols_of(gm: GraphModule, buckets: Sizes) -> dict[sympy.Symbol, tuple[int, ...]]:
    """The symbols of the named dimensions in a graph's inputs, with their bucket sizes. Warns if there is none."""
    wanted = dict(buckets)
    found: dict[sympy.Symbol, tuple[int, ...]] = {}
    names: list[str] = []
    for node in gm.graph.nodes:
        x = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(x, torch.Tensor):
            continue
        for dim, size in enumerate(x.shape):
            if symbol := symbol_of(size):
                names.append(f"{node.meta.get('source')}.{dim}")
                if sizes := wanted.get(names[-1]):
                    found[symbol] = sizes
    if not found:
        wrong, right = ", ".join(wanted), ", ".join(names)
        text = f"the option buckets names {wrong}, which do not change; the sizes that change in this graph are {right}"
        user_code.warn(UserWarning(text))
    return found


def round_up(size: int, sizes: Sequence[int]) -> int:
    """The smallest bucket that holds a size; beyond the largest bucket, the next multiple of it.

    With the buckets (8, 16), 5 becomes 8, and 20 becomes 32.
    """
    return next((s for s in sizes if size <= s), -(-size // sizes[-1]) * sizes[-1])


def symbol_of(size: int) -> sympy.Symbol | None:
    """The symbol of a size; None for a number, and for a size that is computed from others."""
    expr = size.node.expr if isinstance(size, torch.SymInt) else None
    return expr if isinstance(expr, sympy.Symbol) else None

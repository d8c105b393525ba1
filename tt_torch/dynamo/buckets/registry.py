"""The table of rules for padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import sympy

from tt_torch.dynamo.facts import ByOp
from tt_torch.dynamo.types import Result

# Per dimension of a tensor: which padded symbols it is made of, and how many elements one step of each takes.
Tags: TypeAlias = tuple[dict[sympy.Symbol, int], ...]
# A rule takes the Padding that runs the graph, the node, and the arguments by schema name. It gives a Tagged.
Tagged: TypeAlias = tuple[Result, Tags | list[Tags]]  # a result with its tags; several results with a list of tags
Rule = Callable[..., Tagged]
RULES = ByOp[Rule]()

"""The table of rules for padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from tt_torch.dynamo.facts import ByOp

# Per dimension of a tensor: which padded symbols it is made of, and how many elements one step of each takes.
Tags = tuple[dict[sympy.Symbol, int], ...]
# Takes the Padding that runs the graph, the node, and the arguments by schema name; gives the result and its tags.
Rule = Callable[..., tuple[Any, Any]]
RULES = ByOp[Rule]()

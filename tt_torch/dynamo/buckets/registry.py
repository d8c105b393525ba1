"""The table of rules for padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import sympy

from tt_torch.dynamo.facts import ByOp
from tt_torch.dynamo.types import Result

# Per dimension of a tensor: which padded symbols it is made of, and how many elements one step of each takes.
Tags: TypeAlias = tuple[dict[sympy.Symbol, int], ...]
# Takes the Padding that runs the graph, the node, and the arguments by schema name; gives the result and its tags.
Tagged: TypeAlias = tuple[Result, Tags | list[Tags]]  # a result with its tags; the tags of each if there are several
Rule = Callable[..., Tagged]
RULES = ByOp[Rule]()

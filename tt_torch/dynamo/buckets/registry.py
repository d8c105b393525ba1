"""The table of rules: what an op family does with padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch

# Per dimension of a tensor: which padded symbols it is made of, and how many elements one step of each takes.
Tags = tuple[dict[sympy.Symbol, int], ...]
# Takes the Padding that runs the graph, the node, and the arguments by schema name; gives the result and its tags.
Rule = Callable[..., tuple[Any, Any]]
RULES: dict[str, Rule] = {}
POINTWISE = "any op that PyTorch tags as pointwise"


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for ATen ops by name, in strings of several names."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys((name for text in names for name in text.split()), function))
        return function

    return register


def rule_of(target: Any) -> Rule | None:
    """The rule of an op: its own, or that of pointwise ops if it is one."""
    known = RULES.get(target._schema.name.split("::")[1])
    return known or (RULES[POINTWISE] if torch.Tag.pointwise in target.tags else None)

"""Marks on functions that Dynamo reads. Importing this module does not import Dynamo, which would take long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame  # 2.13.0: for part_of_graphs

Function = TypeVar("Function", bound=Callable[..., Any])


# 2.13.0: without it Dynamo would compile a function of `torch.tt` that is called after a graph break.
def part_of_graphs(function: Callable[..., Any]) -> None:
    """Marks a function so that Dynamo traces it only as a part of a traced caller.

    Outside of traced callers, Dynamo compiles neither the function nor the functions that it calls.
    """
    skip = eval_frame._FrameAction.SKIP
    eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))


# 2.13.0: without it the fused steps that another backend compiles would not count up versions (`fused_steps.py`).
# Dynamo would also trace the calls of C++ in functions of `torch.tt`, with a warning. It would fail in
# `torch.tt.set_rng_state`.
def never_traced(reason: str) -> Callable[[Function], Function]:
    """Marks a function so that Dynamo breaks the graph at its calls, and compiles neither it nor the functions it
    calls.

    The public way is `torch.compiler.disable`, which imports Dynamo.
    """

    def mark(function: Any) -> Any:
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = reason
        part_of_graphs(function)
        return function

    return mark


# 2.13.0: without it `torch.tt.is_available()` would break graphs, with a warning.
def constant_result(function: Any) -> None:
    """Marks a function so that Dynamo calls it while it traces; the result becomes a constant of the graph.

    The public way is `torch.compiler.assume_constant_result`, which imports Dynamo.
    """
    function._dynamo_marked_constant = True
    part_of_graphs(function)

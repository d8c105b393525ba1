"""What Dynamo reads from functions. Importing this does not import Dynamo, which takes longer than importing torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame  # 2.13.0: for part_of_graphs

Function = TypeVar("Function", bound=Callable[..., Any])


# 2.13.0: without it Dynamo would compile a function of `torch.tt` that is called after a graph break.
def part_of_graphs(function: Any) -> None:
    """Dynamo traces the function as part of a caller that it traces. It compiles neither the function by itself nor
    what the function then calls."""
    skip = eval_frame._FrameAction.SKIP
    eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))


# 2.13.0: without it fused steps that another backend compiled would go unseen, as `fused_steps.py` says. Dynamo would
# trace calls of C++ in functions of `torch.tt`, with a warning, and fail in `torch.tt.set_rng_state`.
def never_traced(reason: str) -> Callable[[Function], Function]:
    """Dynamo breaks the graph at a call of the function, and compiles neither it nor what it calls.

    `torch.compiler.disable` is the public way, and imports Dynamo.
    """

    def mark(function: Any) -> Any:
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = reason
        part_of_graphs(function)
        return function

    return mark


# 2.13.0: without it `torch.tt.is_available()` would break graphs, with a warning.
def constant_result(function: Any) -> None:
    """Dynamo calls the function while it traces, and the result is a constant of the graph.

    `torch.compiler.assume_constant_result` is the public way, and imports Dynamo.
    """
    function._dynamo_marked_constant = True
    part_of_graphs(function)

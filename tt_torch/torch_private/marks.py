"""What Dynamo reads from functions. Importing this does not import Dynamo, which takes longer than importing torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame  # 2.13.0: for never_traced

Function = TypeVar("Function", bound=Callable[..., Any])


# 2.13.0: without it fused steps that another backend compiled would go unseen, as `fused_steps.py` says.
def never_traced(reason: str) -> Callable[[Function], Function]:
    """Dynamo breaks the graph at a call of the function, and compiles neither it nor what it calls.

    `torch.compiler.disable` is the public way, and imports Dynamo.
    """

    def mark(function: Any) -> Any:
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = reason
        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))
        return function

    return mark

"""Graph breaks: the lines that Dynamo leaves to Python, alone or with the rest of their function."""

from __future__ import annotations

import re
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import CodeType
from typing import Any
from unittest import mock

from torch._dynamo.exc import (
    Unsupported,  # 2.13.0: without it functions that are wholly left to Python would not be told
    UserError,  # 2.13.0: the same, for programs that torch.export would refuse
)
from torch._dynamo.symbolic_convert import InstructionTranslatorBase  # 2.13.0: without it no break would be noted

from tt_torch import user_code
from tt_torch.torch_private.dynamo import Compilation, Function, compiled_within


class Left(str, Enum):
    """The part that Dynamo leaves to Python because of a graph break. As a string, it can be written as JSON."""

    LINE = "the graph breaks at this line, which Python runs"
    REST = "the graph ends before this line, and Python runs the rest of the function"
    FUNCTION = "Dynamo leaves the whole function to Python"


@dataclass(frozen=True)
class GraphBreak:
    """A line that Dynamo does not capture.

    `location` is the user's line as `file.py:12`; `reason` is Dynamo's reason in one line. If the break is `asked_for`,
    the user or PyTorch asks for it, and it costs no more than what they ask for.
    """

    location: str
    left: Left
    reason: str
    asked_for: bool

    def __str__(self) -> str:
        return f"{self.left.value}: {self.reason}"


Tell = Callable[[Sequence[GraphBreak], Compilation], None]


def told_of_graph_breaks(tell: Tell) -> Callable[[Function], Function]:
    """Marks a backend with a function that gets the graph breaks of each frame that Dynamo compiles for this backend.

    It is called once per frame with graph breaks, before the frame runs. What it raises reaches the caller of the
    frame. Nothing is told with `fullgraph=True`, because PyTorch raises an error then.
    """

    @contextmanager
    def telling(frame: Compilation) -> Iterator[None]:
        with _noted(frame.code) as breaks:
            try:
                yield
            except (Unsupported, UserError) as error:
                if not frame.whole and not _is_of_the_program(error):
                    tell([_break(error, Left.FUNCTION, frame.code)], frame)
                raise
        if breaks:
            tell(list(breaks), frame)

    return compiled_within(telling)


# 2.13.0: Dynamo calls log_graph_break once for each break. The texts are those that it passes if it cannot go on after
# the line.
@contextmanager
def _noted(code: CodeType) -> Iterator[dict[GraphBreak, None]]:
    """Notes the breaks that Dynamo logs while the context is active, in their order, each break once."""
    breaks: dict[GraphBreak, None] = {}
    log = InstructionTranslatorBase.log_graph_break

    def noting(tracer: InstructionTranslatorBase, code_options: Any, reason: str, exc: Exception) -> None:
        left = Left.REST if reason.startswith("Encountered graph break that we cannot resume from") else Left.LINE
        breaks[_break(exc, left, code)] = None
        log(tracer, code_options, reason, exc)

    with mock.patch.object(InstructionTranslatorBase, "log_graph_break", noting):
        yield breaks


def _break(error: Exception, left: Left, code: CodeType) -> GraphBreak:
    """The break that an error of Dynamo means. If the error has no line of its own, the function's line is taken."""
    line, reason = line_and_reason(error)
    files = [frame.filename for frame in _stack(error)] or [code.co_filename]
    own = f"{code.co_filename}:{code.co_firstlineno}"
    return GraphBreak(line or own, left, reason, _is_asked_for(_message(error), left, files[-1]))


def line_and_reason(error: Exception) -> tuple[str, str]:
    """The user's line that an error of Dynamo is about, as "file:number" or "", and the reason in one line."""
    stack = _stack(error)
    position = user_code.innermost([frame.filename for frame in stack])
    line = "" if position is None else f"{stack[position].filename}:{stack[position].lineno}"
    return line, _reason(_message(error))


def _stack(error: Exception) -> list[traceback.FrameSummary]:
    return list(getattr(error, "real_stack", None) or [])


def _message(error: Exception) -> str:
    return getattr(error, "msg", None) or str(error)


# 2.13.0: the first lines of Dynamo's messages for breaks that somebody asks for: the user, PyTorch's optimizers around
# a step, or functions that change the state of PyTorch. After `backward`, the gradients come from a compiled graph.
_ASKED_FOR = (
    "Call to `torch._dynamo.graph_break()`",
    "Skip calling `torch.compiler.disable()`d function",
    "Skip inlining `torch.compiler.disable()`d function",
    "Unsupported Tensor.backward() call",
    "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`",
)
# 2.13.0: the file of a function that Dynamo skips, in its messages.
_SKIPPED = re.compile(
    r"^Attempted to (?:call|inline) function marked as skipped\n.*?(?:in file |filename: )`(.*?)`", re.S
)
# 2.13.0: the same for messages to a log and for warnings.
_LOGGED = re.compile(r"^logging\.Logger method|^Attempted to call function marked as skipped\n.*`_warnings\.warn`")


_LONGEST = 600  # characters of a reason
# 2.13.0: the kind of break that means too many captures. Transformers runs the models of all families in one function.
_LIMIT = "Dynamo recompile limit exceeded"
_ADVICE = (
    " Models that run in one function, as those of transformers do, count together. `isolate_recompiles=True` of"
    " torch.compile counts each compiled model by itself, and `recompile_limit` allows more."
)


def _is_asked_for(message: str, left: Left, file: str) -> bool:
    """Whether somebody asks for a break. `file` has the innermost line.

    If the whole function is left to Python, the break costs more than what was asked for. The same holds for the rest
    of a function. Only logs of installed packages count as asked for then, because a user cannot change them.
    """
    if left is Left.FUNCTION:
        return False
    if user_code.is_installed(file) and _LOGGED.match(message):
        return True
    skipped = _SKIPPED.match(message)
    asked = message.startswith(_ASKED_FOR) or bool(skipped and user_code.is_pytorchs_or_ours(skipped[1]))
    return asked and left is Left.LINE


# 2.13.0: Dynamo gives up a frame that raises. Eager PyTorch then raises the program's own error.
def _is_of_the_program(error: Exception) -> bool:
    return str(error).startswith("Observed exception")


def _reason(message: str) -> str:
    """The kind and the explanation in a message of Dynamo, without its hints and its context for developers. An error
    of PyTorch's dispatcher has lists of all backends, so the text ends after _LONGEST characters. If there were
    too many captures, it says what to do."""
    kind, _, rest = message.partition("\n  Explanation: ")
    explanation = rest.partition("\n  Hint: ")[0].partition("\n\n")[0]
    whole = f"{kind}: {explanation}" if explanation else kind.partition("\n\n")[0]
    return textwrap.shorten(whole, _LONGEST, placeholder=" ...") + (_ADVICE if kind == _LIMIT else "")

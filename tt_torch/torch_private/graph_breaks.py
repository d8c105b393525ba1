"""Graph breaks: the lines at which Dynamo gives a frame up, wholly or in part.

Dynamo has no hook for them. So its function that compiles a frame is replaced by one that notes the graph breaks of the
frame, and tells them to the backend if the backend asks for them. For other backends it behaves the same.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import torch
from torch._dynamo import convert_frame  # 2.13.0: for told_of_graph_breaks
from torch._dynamo.exc import (
    Unsupported,  # 2.13.0: without it frames that are wholly given up would not be told
    UserError,  # 2.13.0: without it programs that export would refuse would not be told
)
from torch._dynamo.symbolic_convert import InstructionTranslatorBase  # 2.13.0: without it no break would be noted

from tt_torch.torch_private.dynamo import unwrapped

_TORCH = f"{Path(torch.__file__).parent}/"
Backend = TypeVar("Backend", bound=Callable[..., Any])


@dataclass(frozen=True)
class GraphBreak:
    """`reason` is Dynamo's, in one line; `location` is the user's line, as `file.py:12`."""

    reason: str
    location: str

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}"


# 2.13.0: without it nobody would be told that a part of a program runs in Python.
def told_of_graph_breaks(tell: Callable[..., None]) -> Callable[[Backend], Backend]:
    """Marks a backend with a function that gets the graph breaks of each frame that Dynamo compiles for this backend.

    It is called once per frame with graph breaks, before the frame runs, with a list of GraphBreak and with the
    keyword arguments of the backend, such as `options`. What it raises reaches the caller of the frame.
    """

    def mark(backend: Backend) -> Backend:
        backend.tt_graph_breaks = tell  # type: ignore[attr-defined]
        return backend

    return mark


_compile = convert_frame._compile  # 2.13.0: the function that is replaced below, for its replacement to call
_signature = inspect.signature(_compile)


@functools.wraps(_compile)
def _compile_and_tell(*args: Any, **options: Any) -> object:
    given = _signature.bind(*args, **options).arguments
    backend, keywords = unwrapped(given["compiler_fn"])
    tell = getattr(backend, "tt_graph_breaks", None)
    if tell is None or given["one_graph"]:  # with fullgraph=True, Dynamo raises an error instead
        return _compile(*args, **options)
    code = given["code"]
    frame = f"{code.co_filename}:{code.co_firstlineno}"
    with _noted(frame) as breaks:
        try:
            compiled = _compile(*args, **options)
        except (Unsupported, UserError) as error:
            tell(list({**breaks, _break(error, frame): None}), **keywords)
            raise
    if breaks:
        tell(list(breaks), **keywords)
    return compiled


# 2.13.0: for told_of_graph_breaks.
convert_frame._compile = _compile_and_tell


# 2.13.0: Dynamo calls log_graph_break once for each break that splits a frame.
@contextmanager
def _noted(frame: str) -> Iterator[dict[GraphBreak, None]]:
    """Notes the breaks that Dynamo logs while the context is active, in their order, each one once."""
    breaks: dict[GraphBreak, None] = {}
    log = InstructionTranslatorBase.log_graph_break

    def noting(tracer: InstructionTranslatorBase, code_options: Any, reason: str, exc: Any) -> None:
        if not _is_of_pytorch(exc):
            breaks[_break(exc, frame)] = None
        log(tracer, code_options, reason, exc)

    with mock.patch.object(InstructionTranslatorBase, "log_graph_break", noting):
        yield breaks


def _is_of_pytorch(error: Exception) -> bool:
    """Whether PyTorch itself asks for the break, as its optimizers do around a step: no tensor is computed there."""
    stack: list[traceback.FrameSummary] = list(getattr(error, "real_stack", None) or [])
    asked = (getattr(error, "gb_type", None) or "").startswith("Call to `torch._dynamo.graph_break()`")
    return asked and bool(stack) and stack[-1].filename.startswith(_TORCH)


def _break(error: Exception, frame: str) -> GraphBreak:
    """The break that an error of Dynamo means. If the error has no line of the user's, it gets that of the frame."""
    stack: list[traceback.FrameSummary] = list(getattr(error, "real_stack", None) or [])
    own = [line for line in stack if "/site-packages/" not in line.filename] or stack
    location = f"{own[-1].filename}:{own[-1].lineno}" if own else frame
    return GraphBreak(_reason(getattr(error, "msg", None) or str(error)), location)


def _reason(message: str) -> str:
    """The kind and the explanation in a message of Dynamo, without its hints and its context for developers."""
    kind, _, rest = message.partition("\n  Explanation: ")
    explanation = rest.partition("\n  Hint: ")[0].partition("\n\n")[0]
    return " ".join((f"{kind}: {explanation}" if explanation else kind.partition("\n\n")[0]).split())

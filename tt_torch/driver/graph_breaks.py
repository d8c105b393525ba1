"""Tells the user about graph breaks, because the code between two graphs runs in Python, on the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tt_torch import user_code
from tt_torch.config import BackendOptions
from tt_torch.errors import GraphBreakError
from tt_torch.torch_private.dynamo import Compilation, once
from tt_torch.torch_private.graph_breaks import GraphBreak


class GraphBreakWarning(UserWarning):
    """Python runs a part of a compiled function, on the host; `graph_break` has the line and the reason."""

    def __init__(self, graph_break: GraphBreak) -> None:
        super().__init__(str(graph_break))
        self.graph_break = graph_break


def tell(breaks: Sequence[GraphBreak], frame: Compilation) -> None:
    """Warns at the line of each graph break that nobody asks for, once until the next `torch.compiler.reset()`.

    Raises GraphBreakError instead if the option `fallback` is "error".
    """
    for found in breaks:
        if found.asked_for:
            continue
        if BackendOptions.of(frame.keywords.get("options")).compiler_config.fallback == "error":
            raise GraphBreakError(found.location, str(found))
        once(f"{found.location}: {found}", partial(user_code.warn_at, found.location, GraphBreakWarning(found)))

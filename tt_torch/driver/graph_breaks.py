"""Graph breaks are told, because what is between two graphs runs in Python, on the host."""

from __future__ import annotations

from collections.abc import Sequence

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.errors import GraphBreakError
from tt_torch.torch_private.graph_breaks import GraphBreak


class GraphBreakWarning(UserWarning):
    """A part of a program runs in Python, outside of the compiled graphs; `breaks` lists where and why."""

    def __init__(self, breaks: Sequence[GraphBreak]) -> None:
        head = "Dynamo breaks the graph here, so a part of the program runs in Python, on the host:"
        super().__init__("\n  ".join([head, *map(str, breaks)]))
        self.breaks = tuple(breaks)


def tell(breaks: Sequence[GraphBreak], config: CompilerConfig) -> None:
    """Warns of the graph breaks of one frame. Raises GraphBreakError instead if the option `fallback` is "error"."""
    if config.fallback == "error":
        raise GraphBreakError([str(broken) for broken in breaks])
    user_code.warn(GraphBreakWarning(breaks))

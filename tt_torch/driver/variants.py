"""The programs of one graph, for calls that differ in more than the values of tensors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from tt_torch import user_code
from tt_torch.dynamo.types import Function

MOST = 64  # programs of one graph


class Variants:
    """The programs of one graph, by what distinguishes the calls.

    A program after the first 64 replaces the program whose last call was the longest ago. Each replacement warns with
    `many`, because a program that was replaced is compiled again at its next call.
    """

    def __init__(self, many: str) -> None:
        self._programs: OrderedDict[Hashable, Function] = OrderedDict()
        self._many = many

    def __setitem__(self, key: Hashable, program: Function) -> None:
        self._programs[key] = program

    def get(self, key: Hashable, compiled: Callable[[], Function]) -> Function:
        """The program for a call: the program that is kept, or what `compiled` returns."""
        if key not in self._programs:
            self._programs[key] = compiled()
        self._programs.move_to_end(key)
        if len(self._programs) > MOST:
            self._programs.popitem(last=False)
            user_code.warn(UserWarning(self._many))
        return self._programs[key]

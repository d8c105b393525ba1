"""Programs of several rows of a table: most of the time of a small compilation does not depend on its size."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

TOGETHER = int(os.environ.get("ROWS_TOGETHER", "12"))  # the recorder of tests/mutation sets it to 1

Ends: TypeAlias = list[Any]  # what each row of a program gives


class Programs:
    """Compiles the rows `names` with the function `compiled`, up to `TOGETHER` at a time, and keeps each row's results.

    If rows do not compile together, each one compiles alone, so that the row that fails has the error. If none fails
    alone, all have the error of the program.
    """

    def __init__(self, names: Sequence[str], compiled: Callable[[Sequence[str]], Ends]) -> None:
        self.groups = [names[start : start + TOGETHER] for start in range(0, len(names), TOGETHER)]
        self.compiled = compiled
        self.ends: dict[str, Any] = {}

    def end(self, name: str) -> Any:
        """Returns the results of a row, or raises its error. The results are not kept after that, to save memory."""
        if name not in self.ends:
            self._run(next(group for group in self.groups if name in group))
        end = self.ends.pop(name)
        if isinstance(end, Exception):
            raise end
        return end

    def _run(self, group: Sequence[str]) -> None:
        try:
            ends = self.compiled(group)
        except Exception as together:
            ends = [self._alone(name) for name in group]
            if not any(isinstance(end, Exception) for end in ends):
                together.add_note(f"Each of {', '.join(group)} compiles alone.")
                ends = [together] * len(group)
        self.ends |= dict(zip(group, ends, strict=True))

    def _alone(self, name: str) -> Any:
        torch._dynamo.reset()
        try:
            return self.compiled([name])[0]
        except Exception as error:
            return error


def together(functions: Sequence[Callable[..., Any]]) -> Callable[..., list[Any]]:
    """Returns a function that takes the inputs of each function and returns the results of each."""

    def run(*inputs: Sequence[Any]) -> list[Any]:
        return [function(*own) for function, own in zip(functions, inputs)]  # noqa: B905  (Dynamo reads it)

    return run

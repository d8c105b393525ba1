"""Types of the messages between the two processes. They contain arrays and plain Python values."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

import numpy as np

Arguments = dict[str, Any]  # of a command: the keyword arguments of the method that has its name
Answer = Any  # what that method returns
Shardings = list[tuple[int | None, int | None]]  # of tensors on a mesh: sharding.py says what they mean
Values: TypeAlias = "np.ndarray | list[np.ndarray]"  # of a tensor: a whole array, or the array of each chip
Message = Any  # a command with its arguments, or "ok" with an answer, or "error" with a text


class TensorFacts(TypedDict):
    """A tensor as a binary describes it, and the sharding of an input on a mesh. `dtype`, `layout` and `memory_config`
    are Python text, with `ttnn` for the package."""

    name: str
    shape: list[int]
    dtype: str
    layout: str
    memory_config: str  # "None" on the host
    sharding: tuple[int | None, int | None]  # as in Shardings


class StatementFacts(TypedDict):
    """A statement of a generated function, and what the binary says about its results."""

    code: str
    results: list[TensorFacts]
    callee: str  # the cached function that it calls, or ""
    blocked: bool  # the library chooses the padding of its results
    freed: str  # the tensor that it deallocates, or ""


class FunctionFacts(TypedDict):
    name: str
    inputs: list[TensorFacts]
    outputs: list[str]  # their names
    statements: list[StatementFacts]


class Checked(TypedDict):
    """The library's objections to each statement of a function, and the function's peaks of memory in bytes."""

    verdicts: list[list[str]]
    peak: dict[str, int]

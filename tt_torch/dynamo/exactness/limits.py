"""The conditions under which a program is exact, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch.fx import GraphModule

from tt_torch.dynamo.exactness.interval import Interval


@dataclass(frozen=True)
class Limit:
    """The interval of an input of integers for which the program is exact.

    `cause` is the op whose integers may need more than 32 bits if the input is outside of the interval. An input of
    float64 has the interval of float32. Infinities and NaN are the same in float32, so they are not compared.
    """

    name: str
    interval: Interval
    cause: str


@dataclass
class Plan:
    """The conditions under which a program is exact.

    `limits` has the limits by the positions of the inputs. If `flagged`, the last output of the program must be true.
    If there is a graph `check`, its only output must be true. It takes the inputs at the positions `checked`.
    """

    limits: dict[int, Limit]
    flagged: bool = False
    check: GraphModule | None = None
    checked: list[int] = field(default_factory=list)

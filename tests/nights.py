"""Which of many combinations a plain `pytest` runs. The nightly workflow runs the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

Parameters = list[Any]


def seeds(often: int, count: int) -> Parameters:
    """Seeds of random programs: the first `often` of `count` run for each change."""
    return often_if(lambda seed: seed < often, ((seed,) for seed in range(count)))


def often_if(is_often: Callable[..., bool], combinations: Iterable[tuple[Any, ...]]) -> Parameters:
    """Combinations of arguments: those for which `is_often` holds run for each change."""
    return [pytest.param(*each, marks=() if is_often(*each) else pytest.mark.nightly) for each in combinations]

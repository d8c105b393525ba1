"""The records of a test of a model: the properties and the `tags` that collectors of Tenstorrent's CI read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from tt_torch.config import OP_BY_OP, CompileDepth, CompilerConfig
from tt_torch.sweep.junit import STATUS

Tags: TypeAlias = dict[str, Any]  # values by name: texts, numbers, flags, lists of numbers
Recorder: TypeAlias = Callable[[str, object], object]  # pytest's `record_property`

BACKENDS = ("tt", "tt-legacy", "tt-experimental")  # they mean the same
LARGEST = 2**32  # collectors store no larger number


@dataclass(frozen=True)
class Required:
    """The requirements on the results of a model: a PCC and a largest difference. Each of the two may be asserted.

    The difference is `atol`, or `relative_atol` times the largest golden value; without both it is 0.01. Raises
    ValueError if both are given, or if one is no number.
    """

    pcc: float = 0.99
    atol: float | None = None
    relative_atol: float | None = None
    assert_pcc: bool = True
    assert_atol: bool = True

    def __post_init__(self) -> None:
        given = {"required_pcc": self.pcc, "required_atol": self.atol, "relative_atol": self.relative_atol}
        for name, value in given.items():
            if not isinstance(value, int | float) and (value is not None or name == "required_pcc"):
                raise ValueError(f"{name} is a number, not {value!r}")
        if self.atol is not None and self.relative_atol is not None:
            raise ValueError("give required_atol or relative_atol, not both")
        if self.atol is None and self.relative_atol is None:
            object.__setattr__(self, "atol", 0.01)

    def tags(self) -> Tags:
        return {
            "required_pcc": self.pcc,
            "required_atol": self.relative_atol if self.atol is None else self.atol,
            "is_asserting_pcc": self.assert_pcc,
            "is_asserting_atol": self.assert_atol,
        }


def record_start(record_property: Recorder, name: str, group: str, config: CompilerConfig) -> Tags:
    """Records what is known before a test begins; returns the first tags."""
    shared = {"model_name": name, "frontend": "tt-torch"}
    for key, value in {**shared, "owner": "tt-torch", "group": group}.items():
        record_property(key, value)
    record_property("config", {"compiler_config": config.to_dict()})
    return {**shared, "backend": "tt"}


def plain(values: Sequence[float]) -> list[float]:
    """Numbers that a collector can store: -1 for NaN and infinity, others within ±LARGEST."""
    return [min(max(value, -LARGEST), LARGEST) if math.isfinite(value) else -1 for value in values]


def figures(pccs: Sequence[float], atols: Sequence[float]) -> Tags:
    """The PCCs and differences of all outputs, with averages and limits; -1 stands for a figure that is not known."""
    tags: Tags = {}
    for name, values in (("pccs", plain(pccs)), ("atols", plain(atols))):
        known = values or [-1]
        tags |= {name: values, f"avg_{name}": sum(known) / len(known)}
        tags |= {f"min_{name}": min(known), f"max_{name}": max(known)}
    return tags | {"pcc": tags["min_pccs"], "atol": tags["max_atols"]}


def bringup_status(depth: CompileDepth, passed: bool) -> str:
    """How far a model has come: PASSED, or the stage that it did not get through.

    An op-by-op run compares no results of the model, so it counts as INCORRECT_RESULT.
    """
    if depth in OP_BY_OP:
        return STATUS["EXECUTE"]
    return STATUS["PASSED" if passed and depth == CompileDepth.EXECUTE else depth.name]


def skip_full_eval_test(
    record_property: Recorder,
    compiler_config: CompilerConfig,
    model_name: str,
    bringup_status: str,
    reason: str,
    model_group: str = "generality",
    model_name_filter: str | Sequence[str] | None = None,
    forge_models_test: bool = False,
) -> bool:
    """Skips the test of a whole model, and records why it cannot run; returns False if it does not skip.

    It skips at the depth EXECUTE only, so op-by-op runs go on, and only for the names of `model_name_filter` if given.
    """
    names = [model_name_filter] if isinstance(model_name_filter, str) else model_name_filter
    if compiler_config.with_env().compile_depth != CompileDepth.EXECUTE or (names and model_name not in names):
        return False
    tags = {"bringup_status": bringup_status, "model_name": model_name, "forge_models_test": forge_models_test}
    record_property("tags", tags)
    record_property("group", str(model_group))
    pytest.skip(reason)

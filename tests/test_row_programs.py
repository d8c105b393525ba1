"""Rows that are compiled together: each row has its own result or error."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from row_programs import TOGETHER, Programs

NAMES = [f"row {i}" for i in range(TOGETHER + 3)]


def test_neighbours_are_one_program() -> None:
    groups: list[Sequence[str]] = []
    programs = Programs(NAMES, lambda names: groups.append(names) or [f"{name}!" for name in names])
    assert [programs.end(name) for name in reversed(NAMES)] == [f"{name}!" for name in reversed(NAMES)]
    assert groups == [NAMES[TOGETHER:], NAMES[:TOGETHER]]
    assert programs.ends == {}


def test_a_row_that_does_not_compile_has_the_error() -> None:
    def compiled(names: Sequence[str]) -> list[str]:
        if "row 1" in names:
            raise ValueError(f"one of {len(names)}")
        return [*names]

    programs = Programs(NAMES[:3], compiled)
    assert (programs.end("row 0"), programs.end("row 2")) == ("row 0", "row 2")
    with pytest.raises(ValueError, match="one of 1"):
        programs.end("row 1")


def test_rows_that_fail_only_together_all_fail() -> None:
    def compiled(names: Sequence[str]) -> list[str]:
        if len(names) > 1:
            raise ValueError("together")
        return [*names]

    programs = Programs(NAMES[:2], compiled)
    for name in NAMES[:2]:
        with pytest.raises(ValueError, match="together") as raised:
            programs.end(name)
        assert raised.value.__notes__ == ["Each of row 0, row 1 compiles alone."]

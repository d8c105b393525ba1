"""The table of tests that run at night names tests that exist. A plain `pytest` still runs some of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nights import ONE_IN, at_night


@pytest.mark.parametrize("file", ONE_IN)
def test_the_table_names_tests(file: str) -> None:
    names = re.findall(r"^def (test_\w+)", (Path(__file__).parent / file).read_text(), re.MULTILINE)
    for begin in ONE_IN[file]:
        assert any(name.startswith(begin) for name in names), begin


def test_one_in_so_many_is_left_and_at_least_one() -> None:
    file = "tests/dynamo/test_rounding.py"
    many = [f"{file}::test_a[{i}-{j}]" for i in range(4) for j in range(3)]
    few = [f"{file}::test_b[x]", f"{file}::test_c"]
    others = ["tests/test_other.py::test_a[1]", "tests/test_other.py::test_a[2]"]
    left_out = at_night([*many, *few, *others])
    assert left_out < {*many}
    assert len(left_out) == 8
    kept = {*many} - left_out
    assert len({name.partition("-")[2] for name in kept}) > 1  # they have several values of the second parameter
    assert at_night(many[:1]) == set()

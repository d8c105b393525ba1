"""docs/coming_from.md: each old name of tt-torch can be imported, and each new name of the page exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import tomllib
import torch
import typer

from tt_torch.tools.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming_from.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| `")]
NAME = re.compile(r"`(tt_torch(?:\.\w+)+)`")
OLD = sorted({name for row in ROWS for name in NAME.findall(row[0])})
NEW = sorted({name for row in ROWS for name in NAME.findall(row[1])})


def found(name: str) -> object:
    """The module with this name, or the member of a module with this name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, member = name.rpartition(".")
        return getattr(importlib.import_module(module), member)


@pytest.mark.parametrize("name", OLD)
def test_an_old_name_is_imported(name: str):
    assert found(name) is not None


@pytest.mark.parametrize("name", NEW)
def test_a_new_name_is_imported(name: str):
    assert found(name) is not None


def test_a_name_that_does_not_exist_is_no_name():
    with pytest.raises(AttributeError):
        found("tt_torch.tools.utils.Nothing")


def test_the_page_has_three_columns_and_all_names():
    assert all(len(row) == 3 for row in ROWS)
    assert len(OLD) > 35 and len(NEW) > 15


def test_commands_of_the_page_exist():
    commands = set(typer.main.get_command(app).commands)
    named = set(re.findall(r"`tt-torch (\w+)", PAGE))
    assert named and named <= commands


def test_backends_of_the_page_are_entry_points():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (row,) = (row for row in ROWS if "tt-experimental" in row[0])
    assert set(re.findall(r'"(tt[\w-]*)"', row[0])) == set(project["entry-points"]["torch_dynamo_backends"])


def test_the_same_behaviour_under_both_names():
    from tt_torch.tools.utils import calculate_pcc, onnx_output_to_torch

    assert calculate_pcc is found("tt_torch.accuracy.calculate_pcc")
    assert onnx_output_to_torch is found("tt_torch.onnx_compile.onnx_output_to_torch")
    assert torch.equal(onnx_output_to_torch([torch.ones(2).numpy()])[0], torch.ones(2))

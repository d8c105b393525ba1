"""We encode each op as tt-mlir does, except for the differences that reference_encoding.py lists with their reasons."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from reference_encoding import OTHERWISE, compile_all, differences, intended, table

from tt_torch.wire.decode import decode

TESTS = Path(__file__).parents[1]
FOLDERS = [TESTS / "data" / "runtime", TESTS / "data" / "wire"]
BINARIES = {path.stem: path for folder in FOLDERS for path in folder.glob("*.ttnn")}
STABLEHLO = {path.stem: path.read_text() for path in (TESTS / "data" / "stablehlo").glob("*.mlir")}


@pytest.fixture(scope="module")
def ours():
    return compile_all(STABLEHLO.values())


@pytest.fixture(scope="module")
def found(ours):
    theirs = {name: decode(path.read_bytes()) for name, path in BINARIES.items()}
    return [(name, *found) for name, message in theirs.items() for found in differences(message, ours)]


def test_each_binary_has_its_stablehlo():
    assert BINARIES.keys() == STABLEHLO.keys() and len(BINARIES) > 50


def test_every_field_of_every_op(found):
    assert [difference for difference in found if not intended(*difference[1:3])] == []


def test_a_changed_field_is_found(ours):
    message = copy.deepcopy(decode(BINARIES["matmul_ragged"].read_bytes()))
    (op,) = (o["type"]["MatmulOp"] for o in message["programs"][0]["operations"] if "MatmulOp" in o["type"])
    op["compute_config"]["math_fidelity"], op["transpose_b"] = "LoFi", True
    assert {field for _, field, _, _ in differences(message, ours)} == {"compute_config.math_fidelity", "transpose_b"}


def test_the_list_of_replaced_ops_is_current(found):
    """If we begin to emit an op, its row must go."""
    assert {kind for _, kind, field, _, _ in found if not field} == OTHERWISE.keys()


def test_the_documentation_has_the_table():
    assert table() in (TESTS.parent / "docs" / "binary_format.md").read_text()

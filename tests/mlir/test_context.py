"""The user's line and the FX node are found in locations that torch-mlir wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_mlir import ir

from tt_torch.mlir.context import brief, describe, make_context, node_of

TORCH = f'"{Path(torch.__file__).parent}/nn/functional.py":99:0'
TRANSFORMERS = '"/venv/lib/python3.11/site-packages/transformers/model.py":7:0'
USER = '"/home/me/model.py":12:0'


def location(text: str) -> ir.Location:
    return ir.Module.parse(f"module {{}} {text}").operation.location


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"loc({USER})", "/home/me/model.py:12"),
        (f"loc(callsite({TORCH} at {USER}))", "/home/me/model.py:12"),
        (f"loc(callsite({TORCH} at callsite({TRANSFORMERS} at {USER})))", "/home/me/model.py:12"),
        (
            f"loc(callsite({TORCH} at {TRANSFORMERS}))",
            "/venv/lib/python3.11/site-packages/transformers/model.py:7",
        ),
        (f'loc("add_1: aten.add.Tensor"({USER}))', "/home/me/model.py:12"),
        ("loc(unknown)", "loc(unknown)"),
    ],
)
def test_describe_names_the_users_line(text, line):
    with make_context():
        assert describe(location(text)) == line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"loc(callsite({TORCH} at callsite({TRANSFORMERS} at callsite({USER} at {USER}))))", f"loc({USER})"),
        (f"loc(callsite(callsite({TORCH} at {TRANSFORMERS}) at {TORCH}))", f"loc({TRANSFORMERS})"),
        (f"loc(callsite({TORCH} at {TORCH}))", f"loc({TORCH})"),
        (f'loc(callsite(unknown at callsite("f"({TORCH}) at {USER})))', f"loc({USER})"),
        ("loc(callsite(unknown at unknown))", "loc(callsite(unknown at unknown))"),
        (f'loc("a: b"(callsite({TORCH} at {USER})))', f'loc("a: b"({USER}))'),
        (f'loc(fused["a", callsite({TORCH} at {USER})])', f'loc(fused["a", {USER}])'),
        ("loc(unknown)", "loc(unknown)"),
    ],
)
def test_a_brief_location_has_only_the_users_frame(text, expected):
    with make_context():
        whole = location(text)
    assert str(brief(whole)) == expected


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (f'loc("add_1: aten.add.Tensor"({USER}))', ("add_1", "aten.add.Tensor")),
        (f"loc({USER})", ("", "")),
        ("loc(unknown)", ("", "")),
    ],
)
def test_node_of(text, node):
    with make_context():
        assert node_of(location(text)) == node

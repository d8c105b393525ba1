"""Nodes and lines are read from the text of locations."""

import pytest

from tt_torch.wire import locations

USER = '"/home/me/model.py":12:0'
ADD = f'loc("add_1: aten.add.Tensor"({USER}))'
PART = f'loc("getitem: <built-in function getitem>"({USER}))'
FUSED = f'loc(fused["mm: aten.mm.default"({USER}), "relu: aten.relu.default"("net.py":7:4)])'


@pytest.mark.parametrize(
    ("text", "nodes", "only", "lines"),
    [
        (ADD, ["add_1"], ("add_1", "aten.add.Tensor"), [("/home/me/model.py", 12)]),
        (PART, [], ("getitem", ""), [("/home/me/model.py", 12)]),
        (FUSED, ["mm", "relu"], ("", ""), [("/home/me/model.py", 12), ("net.py", 7)]),
        (f"loc({USER})", [], ("", ""), [("/home/me/model.py", 12)]),
        ("loc(unknown)", [], ("", ""), []),
    ],
)
def test_locations(text, nodes, only, lines):
    assert (locations.nodes(text), locations.only_node(text), locations.lines(text)) == (nodes, only, lines)

"""Ops with operands on the CPU and on the device: which operands are copied, and where the copies are in the graph."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Graph, Node

from tt_torch.dynamo.mixed_devices import _ignores_devices, _insert, _strangers

TT = torch.device("tt")


def graph_of(*values: object) -> tuple[list[Node], Node]:
    """Inputs with these values, and an op that reads them all."""
    graph = Graph()
    inputs = [graph.placeholder(f"x{i}") for i in range(len(values))]
    for node, value in zip(inputs, values, strict=True):
        node.meta["example_value"] = value
    return inputs, graph.call_function(torch.stack, (inputs,), {"dim": 0})


def test_copies_take_the_place_of_their_operands() -> None:
    (x, y, z), op = graph_of(1, 2, 3)
    other = op.graph.call_function(torch.neg, (y,))
    _insert(op, {y: "copy of y", z: "copy of z"}, TT)
    (operands,) = op.args
    assert operands[0] is x
    for copy, operand, value in zip(operands[1:], (y, z), ("copy of y", "copy of z"), strict=True):
        assert (copy.op, copy.target, copy.args) == ("call_method", "to", (operand, TT))
        assert copy.meta["example_value"] == value
    assert [n.name for n in op.graph.nodes] == [
        "x0",
        "x1",
        "x2",
        operands[1].name,
        operands[2].name,
        op.name,
        other.name,
    ]
    assert other.args == (y,)


@pytest.mark.parametrize(
    ("values", "strangers", "device"),
    [
        ((torch.ones(2), torch.ones(2, device=TT)), [0], "tt"),
        ((torch.ones(2, device=TT), torch.ones(2), torch.ones(1)), [1, 2], "tt"),
        ((torch.ones(2), torch.ones((), device=TT)), [0], "tt"),
        ((torch.tensor(1.0), torch.ones(2, device=TT)), [], None),  # a scalar may be anywhere
        ((torch.ones(2, device=TT), 3, None), [], None),
        ((torch.ones(2), torch.ones(2)), [0, 1], None),
    ],
)
def test_operands_on_the_cpu(values: tuple[object, ...], strangers: list[int], device: str | None) -> None:
    inputs, op = graph_of(*values)
    found, place = _strangers(op)
    assert found == [inputs[i] for i in strangers]
    assert (place and place.type) == device


def test_only_convolutions_do_not_check_their_operands() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    assert _ignores_devices(graph.call_function(torch.nn.functional.conv2d, (x, x)))
    assert not _ignores_devices(graph.call_function(torch.add, (x, x)))


def test_a_gradient_of_what_was_read_by_index_on_the_cpu() -> None:
    """The gradient is on the device, and is added to zeros on the CPU: rules rewrite this op without its copies."""

    def read(x: torch.Tensor, y: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x[:, i].to(y.device) * y

    x, y, i = torch.randn(3, 4, requires_grad=True), torch.randn(3, 3), torch.tensor([0, -1, -1])
    (expected,) = torch.autograd.grad(read(x, y, i).sum(), x)
    compiled = torch.compile(read, backend="tt", options={"fallback": "error"})
    (found,) = torch.autograd.grad(compiled(x, y.to("tt"), i).sum(), x)
    torch.testing.assert_close(found, expected)

"""Optimizers of ONNX's domain for training, `ai.onnx.preview.training`, by their definitions.

The operands are the learning rate, the number of the step, the weights, their gradients, and what the optimizer keeps
for each weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tt_torch.mlir.onnx_nodes import Nodes

Update = Callable[[Nodes, Sequence[str]], list[str]]  # of the operands of one weight


def _optimizer(kept: int, update: Update) -> Callable[[Nodes], bool]:
    """The rule of an optimizer that keeps so many tensors for each weight."""

    def rule(nodes: Nodes) -> bool:
        count = (len(nodes.node.input) - 2) // (kept + 2)
        for i in range(count):
            results = update(nodes, [nodes.operand(2 + i + count * part) for part in range(kept + 2)])
            for part, result in enumerate(results):
                nodes.named(i + count * part, result)
        return True

    return rule


def _number(nodes: Nodes, number: float) -> str:
    """A number in the type of the weights."""
    return nodes.constant(number, like=nodes.operand(2))


def _given(nodes: Nodes, name: str, otherwise: float) -> float:
    return float(nodes.given.get(name, otherwise))


def _times(nodes: Nodes, factor: float, x: str) -> str:
    return nodes.op("Mul", x, _number(nodes, factor))


def _as_weights(nodes: Nodes, number: int) -> str:
    """An operand, in the type of the weights."""
    return nodes.cast(nodes.operand(number), nodes.facts.types[nodes.operand(2)])


def _gradient(nodes: Nodes, x: str, gradient: str) -> str:
    """The gradient, with that of the squares of the weights."""
    return nodes.op("Add", _times(nodes, _given(nodes, "norm_coefficient", 0), x), gradient)


def _moved(nodes: Nodes, x: str, rate: str, step: str) -> str:
    return nodes.op("Sub", x, nodes.op("Mul", rate, step))


def _root(nodes: Nodes, x: str) -> str:
    return nodes.op("Add", nodes.op("Sqrt", x), _number(nodes, _given(nodes, "epsilon", 1e-6)))


def _is_later(nodes: Nodes) -> str:
    """Whether this is not the first step."""
    return nodes.op("Greater", nodes.operand(1), nodes.constant(0, like=nodes.operand(1)))


def _momentum(nodes: Nodes, given: Sequence[str]) -> list[str]:
    x, gradient, velocity = given
    rate, alpha = _as_weights(nodes, 0), _given(nodes, "alpha", 0)
    total = _gradient(nodes, x, gradient)
    weighted = nodes.op("Where", _is_later(nodes), _times(nodes, _given(nodes, "beta", 1), total), total)
    new = nodes.op("Add", _times(nodes, alpha, velocity), weighted)
    if nodes.given["mode"] == b"standard":
        return [_moved(nodes, x, rate, new), new]
    return [_moved(nodes, x, rate, nodes.op("Add", total, _times(nodes, alpha, new))), new]


def _adagrad(nodes: Nodes, given: Sequence[str]) -> list[str]:
    x, gradient, squares = given
    decay = _times(nodes, _given(nodes, "decay_factor", 0), _as_weights(nodes, 1))
    rate = nodes.op("Div", _as_weights(nodes, 0), nodes.op("Add", decay, _number(nodes, 1)))
    total = _gradient(nodes, x, gradient)
    new = nodes.op("Add", squares, nodes.op("Mul", total, total))
    return [_moved(nodes, x, rate, nodes.op("Div", total, _root(nodes, new))), new]


def _adam(nodes: Nodes, given: Sequence[str]) -> list[str]:
    x, gradient, velocity, squares = given
    alpha, beta = _given(nodes, "alpha", 0.9), _given(nodes, "beta", 0.999)
    total = _gradient(nodes, x, gradient)
    new = nodes.op("Add", _times(nodes, alpha, velocity), _times(nodes, 1 - alpha, total))
    square = nodes.op("Mul", total, total)
    newer = nodes.op("Add", _times(nodes, beta, squares), _times(nodes, 1 - beta, square))
    step = nodes.op("Div", new, _root(nodes, newer))
    moved = _moved(nodes, x, _corrected_rate(nodes, alpha, beta), step)
    return [_times(nodes, 1 - _given(nodes, "norm_coefficient_post", 0), moved), new, newer]


def _corrected_rate(nodes: Nodes, alpha: float, beta: float) -> str:
    """The learning rate, corrected for the first steps."""
    rate, steps = _as_weights(nodes, 0), _as_weights(nodes, 1)
    rests = [nodes.op("Sub", _number(nodes, 1), nodes.op("Pow", _number(nodes, x), steps)) for x in (beta, alpha)]
    corrected = nodes.op("Mul", rate, nodes.op("Div", nodes.op("Sqrt", rests[0]), rests[1]))
    return nodes.op("Where", _is_later(nodes), corrected, rate)


_DOMAIN = "ai.onnx.preview.training"
OPTIMIZERS: dict[str, Callable[[Nodes], bool]] = {
    f"{_DOMAIN}.Adagrad": _optimizer(1, _adagrad),
    f"{_DOMAIN}.Adam": _optimizer(2, _adam),
    f"{_DOMAIN}.Momentum": _optimizer(1, _momentum),
}

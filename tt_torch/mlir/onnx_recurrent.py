"""The recurrent nodes of ONNX models, RNN, LSTM and GRU, written as the plain nodes of all their steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tt_torch.mlir.onnx_nodes import Nodes

MOST_STEPS = 512
ACTIVATIONS = {"RNN": [b"tanh"], "LSTM": [b"sigmoid", b"tanh", b"tanh"], "GRU": [b"sigmoid", b"tanh"]}


@dataclass
class Weights:
    """The transposed weights of one direction. `inputs` is the product of the inputs of all steps with their weights,
    plus their bias."""

    hidden: int
    inputs: str  # steps x batch x gates * hidden
    recurrent: str  # hidden x gates * hidden
    bias: str  # gates * hidden, for the recurrent product; "" if there is none
    peepholes: str  # 3 * hidden; "" if there are none


State = list[str]  # the hidden state, and the cell state of an LSTM; each of batch x hidden
Cell = Callable[[Nodes, Weights, str, State], State]


def recurrent(nodes: Nodes) -> bool:
    """Writes all steps of a node. Returns False for unusual activations, for `clip` and `input_forget`, for sequences
    of several lengths, and if there are no steps or too many."""
    op, given = nodes.node.op_type, nodes.given
    backward = {b"forward": [False], b"reverse": [True], b"bidirectional": [False, True]}
    directions = backward[given.get("direction", b"forward")]
    shape = nodes.facts.shapes[nodes.operand(0)]
    batch_first = bool(given.get("layout", 0))
    steps, batch = (shape[1], shape[0]) if batch_first else (shape[0], shape[1])
    usual = ACTIVATIONS[op] * len(directions)
    activations = [name.lower() for name in given.get("activations", usual)]
    other = activations != usual or "clip" in given or given.get("input_forget", 0)
    if other or not 0 < steps <= MOST_STEPS or not _is_one_length(nodes, steps):
        return False
    x = nodes.op("Transpose", nodes.operand(0), perm=[1, 0, 2]) if batch_first else nodes.operand(0)
    ends: list[State] = []
    outputs: list[list[str]] = []  # by direction and step
    for number, reverse in enumerate(directions):
        weights = _weights(nodes, x, number)
        state = [
            _initial(nodes, operand, number, batch, weights.hidden) for operand in ([5, 6] if op == "LSTM" else [5])
        ]
        made = [""] * steps
        for step in range(steps)[:: -1 if reverse else 1]:
            state = CELLS[op](nodes, weights, _row(nodes, weights.inputs, step), state)
            made[step] = state[0]
        ends.append(state)
        outputs.append(made)
    _write_results(nodes, outputs, ends)
    return True


def _is_one_length(nodes: Nodes, steps: int) -> bool:
    lengths = nodes.value(4)
    return not nodes.operand(4) or (lengths is not None and bool((lengths == steps).all()))


def _weights(nodes: Nodes, x: str, direction: int) -> Weights:
    w, r = (nodes.op("Transpose", _row(nodes, nodes.operand(n), direction), perm=[1, 0]) for n in (1, 2))
    hidden = nodes.facts.shapes[nodes.operand(2)][2]
    wide = nodes.facts.shapes[nodes.operand(2)][1]
    inputs, bias = nodes.op("MatMul", x, w), ""
    if nodes.operand(3):
        both = _row(nodes, nodes.operand(3), direction)
        inputs = nodes.op("Add", inputs, _part(nodes, both, 0, wide))
        bias = _part(nodes, both, wide, 2 * wide)
    peepholes = _row(nodes, nodes.operand(7), direction) if nodes.operand(7) else ""
    return Weights(hidden, inputs, r, bias, peepholes)


def _initial(nodes: Nodes, operand: int, direction: int, batch: int, hidden: int) -> str:
    name = nodes.operand(operand)
    if not name:
        return nodes.constant(np.zeros((batch, hidden)), like=nodes.operand(0))
    return nodes.op("Gather", name, nodes.constant(direction), axis=1 if nodes.given.get("layout", 0) else 0)


def _row(nodes: Nodes, name: str, number: int) -> str:
    return nodes.op("Gather", name, nodes.constant(number), axis=0)


def _part(nodes: Nodes, name: str, first: int, last: int) -> str:
    """The elements from `first` to before `last` along the last dimension."""
    return nodes.op("Slice", name, *(nodes.constant([number]) for number in (first, last, -1)))


def _gate(nodes: Nodes, weights: Weights, name: str, number: int) -> str:
    return _part(nodes, name, number * weights.hidden, (number + 1) * weights.hidden)


def _product(nodes: Nodes, weights: Weights, state: str) -> str:
    product = nodes.op("MatMul", state, weights.recurrent)
    return nodes.op("Add", product, weights.bias) if weights.bias else product


def _rnn(nodes: Nodes, weights: Weights, x: str, state: State) -> State:
    return [nodes.op("Tanh", nodes.op("Add", x, _product(nodes, weights, state[0])))]


def _lstm(nodes: Nodes, weights: Weights, x: str, state: State) -> State:
    """The parts of `sums` are the input gate, the output gate, the forget gate and the new cell. Peepholes add the cell
    times a factor to each of the three gates."""
    hidden, cell = state
    sums = nodes.op("Add", x, _product(nodes, weights, hidden))
    i, o, f, new = (_gate(nodes, weights, sums, number) for number in range(4))

    def seen(gate: str, number: int, cell: str) -> str:
        if not weights.peepholes:
            return nodes.op("Sigmoid", gate)
        factor = _gate(nodes, weights, weights.peepholes, number)
        return nodes.op("Sigmoid", nodes.op("Add", gate, nodes.op("Mul", factor, cell)))

    kept = nodes.op("Mul", seen(f, 2, cell), cell)
    cell = nodes.op("Add", kept, nodes.op("Mul", seen(i, 0, cell), nodes.op("Tanh", new)))
    return [nodes.op("Mul", seen(o, 1, cell), nodes.op("Tanh", cell)), cell]


def _gru(nodes: Nodes, weights: Weights, x: str, state: State) -> State:
    """The parts of a product are the update gate, the reset gate and the new state."""
    (hidden,) = state
    product = _product(nodes, weights, hidden)
    update, reset = (
        nodes.op("Sigmoid", nodes.op("Add", _gate(nodes, weights, x, n), _gate(nodes, weights, product, n)))
        for n in (0, 1)
    )
    if nodes.given.get("linear_before_reset", 0):
        inner = nodes.op("Mul", reset, _gate(nodes, weights, product, 2))
    else:  # the reset gate is applied to the state, before the product
        inner = _gate(nodes, weights, _product(nodes, weights, nodes.op("Mul", reset, hidden)), 2)
    new = nodes.op("Tanh", nodes.op("Add", _gate(nodes, weights, x, 2), inner))
    return [nodes.op("Add", new, nodes.op("Mul", update, nodes.op("Sub", hidden, new)))]


CELLS: dict[str, Cell] = {"RNN": _rnn, "LSTM": _lstm, "GRU": _gru}


def _write_results(nodes: Nodes, outputs: list[list[str]], ends: list[State]) -> None:
    """Y has the shape steps x directions x batch x hidden. The states at the end have the shape directions x batch x
    hidden. If `layout` is 1, the batch is the first dimension of both."""
    batch_first = bool(nodes.given.get("layout", 0))
    all_steps = _stacked(nodes, [_stacked(nodes, list(step)) for step in zip(*outputs, strict=True)])
    nodes.named(0, nodes.op("Transpose", all_steps, perm=[2, 0, 1, 3]) if batch_first else all_steps)
    for number, states in enumerate(zip(*ends, strict=True), 1):
        end = _stacked(nodes, list(states))
        nodes.named(number, nodes.op("Transpose", end, perm=[1, 0, 2]) if batch_first else end)


def _stacked(nodes: Nodes, names: list[str]) -> str:
    first = nodes.constant([0])
    return nodes.op("Concat", *(nodes.op("Unsqueeze", name, first) for name in names), axis=0)

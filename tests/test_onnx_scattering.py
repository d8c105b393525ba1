"""Nodes that write to computed places: results are those of ONNX Runtime, or of ONNX's reference evaluator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import helper
from onnx_programs import compared

node = helper.make_node
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)).astype("float32")
REDUCTIONS = ("add", "mul", "max", "min")


@pytest.mark.parametrize("kind", ["float32", "int32", "int64", "uint8"])
def test_updates_are_combined_along_a_dimension(kind: str) -> None:
    """Some places get two updates, some are counted from the end, and there are fewer updates than elements."""
    x, updates = ((v * 9 + 200).astype(kind) for v in (X, RNG.standard_normal((2, 3, 5))))
    places = np.array([0, -1, 1, 0, -3])[RNG.integers(0, 5, updates.shape)]
    forms = list(itertools.product(REDUCTIONS, (0, -2)))
    nodes = [node("ScatterElements", ["x", "i", "u"], [f"{r} {a}"], axis=a, reduction=r) for r, a in forms]
    compared(nodes, {"x": x, "i": places, "u": updates})


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
def test_updates_of_unsigned_integers(kind: str) -> None:
    most = np.iinfo(kind).max
    x = {"x": np.array([1, most - 5, 7], kind), "u": np.array([5, 3, most - 1, 0], kind), "i": np.array([0, 1, 1, 2])}
    compared([node("ScatterElements", ["x", "i", "u"], [r], reduction=r) for r in REDUCTIONS], x)


def test_updates_that_are_not_finite_change_their_places_only() -> None:
    x = X.copy()
    x[0, 0, 0] = np.nan
    updates = np.array([np.inf, -np.inf, 5, 1, 2, -np.inf], "float32").reshape(1, 1, 6)
    places = np.array([1, 2, 3, 3, 1, 2]).reshape(1, 1, 6)
    nodes = [node("ScatterElements", ["x", "i", "u"], [r], axis=2, reduction=r) for r in REDUCTIONS]
    compared(nodes, {"x": x, "i": places, "u": updates}, by_reference=True)


def test_updates_of_rows_are_combined() -> None:
    """Places have one, two or all three indices, and some indices are counted from the end."""
    places = np.array([[0, -1, 2], [2, 1, -5], [0, -1, 2], [-1, 1, 0]])
    inputs = {"x": X, "i1": places[:, :1], "i2": places[:, :2].reshape(2, 2, 2), "i3": places}
    inputs |= {"u1": RNG.standard_normal((4, 4, 5)), "u2": RNG.standard_normal((2, 2, 5)), "u3": places[:, 0] + 0.5}
    nodes = [
        node("ScatterND", ["x", f"i{n}", f"u{n}"], [f"{r}{n}"], reduction=r) for n in (1, 2, 3) for r in REDUCTIONS
    ]
    compared(nodes, {name: v if name[0] == "i" else v.astype("float32") for name, v in inputs.items()})


def test_rows_are_written_to_a_cache() -> None:
    """Rows are written from the first place on, from given places on, and around the end of the cache."""
    update, begins = RNG.standard_normal((3, 2, 5)).astype("float32"), np.array([0, 2, 3])
    nodes = [
        node("TensorScatter", ["x", "u"], ["first"]),
        node("TensorScatter", ["x", "u", "within"], ["from"], axis=1),
        node("TensorScatter", ["x", "u", "begins"], ["around"], mode="circular"),
    ]
    within = np.array([2, 0, 1])
    compared(nodes, {"x": X, "u": update, "within": within, "begins": begins}, opset=24, by_reference=True)


def test_sequences_are_reversed() -> None:
    inputs = {"x": X, "rows": np.array([1, 3, 0, 2]), "columns": np.array([4, 1, 2])}
    nodes = [
        node("ReverseSequence", ["x", "rows"], ["y"], time_axis=0, batch_axis=1),
        node("ReverseSequence", ["x", "columns"], ["z"], time_axis=1, batch_axis=0),
    ]
    compared(nodes, inputs)

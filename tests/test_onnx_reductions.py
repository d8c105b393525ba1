"""Reductions of ONNX models that torch-mlir refuses, crashes for or computes otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.helper import make_node
from onnx.numpy_helper import from_array
from onnx_programs import compared

AXES = make_node("Constant", [], ["axes"], value=from_array(np.array([1])))


def test_scalars() -> None:
    names = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
    nodes = [make_node(f"Reduce{name}", ["x"], [name]) for name in names]
    whole = [make_node(f"Reduce{name}", ["n"], [f"whole {name}"]) for name in ("Max", "Mean", "Sum")]
    compared([*nodes, *whole], {"x": np.array(3.5, np.float32), "n": np.array(7, np.int32)}, opset=18)


@pytest.mark.parametrize("kind", ["uint16", "uint32", "uint64"])
def test_unsigned_integers(kind: str) -> None:
    """Also those that the signed type of the same width lacks, and rows without such numbers."""
    x = np.array([[5, 5, 2], [1, np.iinfo(kind).max, 7], [np.iinfo(kind).max] * 3], kind)
    nodes = [AXES, make_node("ReduceMax", ["x", "axes"], ["max"]), make_node("ReduceMin", ["x", "axes"], ["min"])]
    nodes += [
        make_node(f"Arg{name}", ["x"], [f"{name} {last}"], axis=1, select_last_index=last)
        for name in ("Max", "Min")
        for last in (0, 1)
    ]
    compared(nodes, {"x": x}, results=["max", "min", *(x.output[0] for x in nodes[3:])], opset=18, by_reference=True)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
def test_means_of_integers_are_rounded_toward_zero(kind: str) -> None:
    x = np.array([[3, -4], [-3, -4], [1, 2]])
    x = (x if kind != "uint8" else abs(x)).astype(kind)  # the evaluator's sums of bytes wrap
    nodes = [AXES, make_node("ReduceMean", ["x", "axes"], ["y"]), make_node("ReduceMean", ["x"], ["z"], keepdims=0)]
    compared(nodes, {"x": x}, results=["y", "z"], opset=18, by_reference=True)


def test_dimensions_of_one_element_that_stay() -> None:
    names = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
    compared([AXES, *(make_node(f"Reduce{name}", ["x", "axes"], [name]) for name in names)],
             {"x": np.array([[[3.5, 2.0]]], np.float32)}, results=names, opset=18)  # fmt: skip

"""Nodes that are written as plain nodes by their definitions: results are those of ONNX Runtime."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_programs import compared, model_of

from tt_torch.driver.onnx import compile_onnx
from tt_torch.errors import UnsupportedOpError

node = helper.make_node
X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")


def value(name: str, array: object) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(array)))


def test_sizes_change() -> None:
    """Each mode, larger and smaller, by factors and to sizes."""
    modes = [("nearest", "asymmetric"), ("linear", "half_pixel"), ("cubic", "half_pixel")]
    scales, sizes = np.array([1, 1, 0.6, 1.7], "float32"), [2, 3, 7, 2]
    nodes, names = [value("scales", scales), value("sizes", sizes)], []
    for (mode, places), operand in itertools.product(modes, ("scales", "sizes")):
        inputs = ["x", "", operand] if operand == "scales" else ["x", "", "", operand]
        names.append(f"{mode} {operand}")
        nodes.append(node("Resize", inputs, [names[-1]], mode=mode, coordinate_transformation_mode=places))
    compared(nodes, {"x": X}, results=names)


def test_the_nearest_of_values_that_are_not_finite() -> None:
    x = np.array([[np.inf, 1.0, np.nan]], "float32")
    compared([value("s", np.array([1, 2], "float32")), node("Resize", ["x", "", "s"], ["y"])], {"x": x}, results=["y"])


def test_cumulative_products() -> None:
    """ONNX Runtime has no CumProd; ONNX's reference evaluator does."""
    forms = list(itertools.product((1, -2), (0, 1), (0, 1)))
    nodes = [value("1", 1), value("-2", -2)]
    nodes += [node("CumProd", ["x", f"{a}"], [f"y{a}{r}{e}"], reverse=r, exclusive=e) for a, r, e in forms]
    model = model_of(nodes, {"x": X}, names := [f"y{a}{r}{e}" for a, r, e in forms], opset=26)
    expected = ReferenceEvaluator(model).run(names, {"x": X})
    for got, want in zip(compile_onnx(model)(torch.from_numpy(X)), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)


@pytest.mark.parametrize("inverse", [0, 1])
def test_fourier_transforms(inverse: int) -> None:
    """Longer and shorter ones than the input, along two dimensions, of real and of complex numbers."""
    nodes, names = [], []
    for part, axis, length in itertools.product(("real", "complex"), (1, 2), (None, 3, 6)):
        names.append(f"{part} {axis} {length}")
        nodes.append(node("DFT", [part, *([f"n{length}"] if length else [])], [names[-1]], axis=axis, inverse=inverse))
    nodes += [node("DFT", ["real"], ["half"], axis=2, onesided=1)] * (1 - inverse)
    names += ["half"] * (1 - inverse)
    inputs = {"real": X[..., :1], "complex": X[..., :2]}
    model = model_of([value("n3", 3), value("n6", 6), *nodes], inputs, names, opset=19)
    expected = ReferenceEvaluator(model).run(None, inputs)  # ONNX Runtime rounds more
    for got, want in zip(compile_onnx(model)(*map(torch.from_numpy, inputs.values())), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_norms() -> None:
    x = X.copy()
    x[0, 0] = 0
    nodes = [node("LpNormalization", ["x"], [f"n{p}{axis}"], p=p, axis=axis) for p in (1, 2) for axis in (-1, 1)]
    nodes += [node("LpPool", ["x"], [f"p{p}"], p=p, kernel_shape=[2, 3], pads=[1, 1, 0, 1]) for p in (1, 2, 3)]
    compared(nodes, {"x": x})


def test_the_largest_of_booleans() -> None:
    ops = ("ReduceMax", "ReduceMin")
    nodes = [node(op, ["x", "axes"], [op], keepdims=keep) for keep, op in enumerate(ops)]
    compared([value("axes", [1]), *nodes], {"x": X > 0.5}, results=ops)


def test_another_form_is_refused() -> None:
    crop = node("Resize", ["x", "roi", "", "sizes"], ["y"], coordinate_transformation_mode="tf_crop_and_resize")
    roi = value("roi", np.array([0, 0, 0, 0, 1, 1, 2, 2], "float32"))
    with pytest.raises(UnsupportedOpError, match=r"^onnx\.Resize is not supported"):
        compile_onnx(model_of([value("sizes", [2, 3, 7, 2]), roi, crop], {"x": X}, ["y"]))

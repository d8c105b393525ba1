"""Nodes that take elements from known places: results are those of ONNX Runtime, or of ONNX's reference evaluator."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx_programs import compared, model_of

from tt_torch.driver.onnx import compile_onnx
from tt_torch.errors import UnsupportedOpError

node = helper.make_node
X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")


def value(name: str, array: object) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(array)))


def test_padding_repeats_elements() -> None:
    """Elements are also repeated more than once, and after a crop. An infinite element stays where it is."""
    x = X.copy()
    x[0, 0, 0] = [np.inf, np.nan, -np.inf, 0, 1]
    nodes = [value("some", [0, 0, 1, 2, 0, 0, 3, 0]), value("crop", [-1, 2, 0, 1]), value("axes", [-1, 1])]
    forms = list(itertools.product(("some", "crop"), ("edge", "reflect", "wrap")))
    for pads, mode in forms:
        axes = ["", "axes"] if pads == "crop" else []
        nodes.append(node("Pad", ["x", pads, *axes], [f"{pads} {mode}"], mode=mode))
    compared(nodes, {"x": x}, results=[f"{pads} {mode}" for pads, mode in forms])


def test_padding_with_a_value_that_is_an_input() -> None:
    nodes = [value("some", [0, 0, 1, -2, 0, 0, -1, 3]), value("none", [0] * 8)]
    nodes += [node("Pad", ["x", pads, "v"], [pads + "!"]) for pads in ("some", "none")]
    nodes += [node("Pad", [x, "some", "v"], [x + "!"]) for x in ("no_row", "no_element")]
    inputs = {"x": X, "v": np.array(np.nan, "float32")}
    inputs |= {"no_row": np.zeros((2, 1, 0, 4), "float32"), "no_element": np.zeros((2, 1, 4, 0), "float32")}
    compared(nodes, inputs, results=["some!", "none!", "no_row!", "no_element!"])


def test_nothing_is_gathered_from_nothing() -> None:
    nodes = [value("places", [1, 2]), node("Gather", ["x", "places"], ["y"], axis=1)]
    compared(nodes, {"x": np.zeros((0, 4), "float32")}, results=["y"])


def test_nothing_cannot_be_repeated() -> None:
    pad = model_of([value("p", [0, 1]), node("Pad", ["x", "p"], ["y"], mode="edge")], {"x": X[0, 0, 0, :0]}, ["y"])
    with pytest.raises(UnsupportedOpError, match="there is nothing in dimension 0 to be repeated"):
        compile_onnx(pad)


def test_slices_to_the_start() -> None:
    """Slices go backwards along the last dimension. Some ends are outside of it, and two slices are empty."""
    forms = {
        "all": (-1, -(2**62), -1),
        "two": (9, -9, -2),
        "some": (3, 0, -1),
        "none": (1, 3, -1),
        "last": (-2, -4, -1),
        "nothing": (3, 1, 1),
    }
    nodes, names = [], list(forms)
    for name, (start, end, step) in forms.items():
        parts = {"start": [1, start], "end": [2, end], "axes": [0, -1], "step": [1, step]}
        nodes += [value(f"{name} {part}", array) for part, array in parts.items()]
        nodes.append(node("Slice", ["x", *(f"{name} {part}" for part in parts)], [name]))
    compared(nodes, {"x": X}, results=names)


def test_places_where_a_condition_is_true() -> None:
    condition = np.array([True, False, True])
    nodes = [node("Compress", ["x", "condition"], [f"y{axis}"], axis=axis) for axis in (1, -2)]
    nodes.append(node("Compress", ["x", "condition"], ["all"]))
    compared(nodes, {"x": X, "condition": condition}, ["condition"])


def test_sizes_change() -> None:
    """Each mode makes one dimension larger and another one smaller, by factors and to given sizes."""
    modes = [("nearest", "asymmetric"), ("linear", "half_pixel"), ("cubic", "half_pixel")]
    scales, sizes = np.array([1, 1, 0.6, 1.7], "float32"), [2, 3, 7, 2]
    nodes, names = [value("scales", scales), value("sizes", sizes)], []
    for (mode, places), operand in itertools.product(modes, ("scales", "sizes")):
        inputs = ["x", "", operand] if operand == "scales" else ["x", "", "", operand]
        names.append(f"{mode} {operand}")
        nodes.append(node("Resize", inputs, [names[-1]], mode=mode, coordinate_transformation_mode=places))
    compared(nodes, {"x": X}, results=names)


def test_elements_that_are_not_finite_stay_at_their_place() -> None:
    """A linear mode uses the two elements beside a place. If an element is exactly at the place, it uses only that."""
    x = np.array([[1.0, 2.0, np.inf, 3.0, 4.0, np.nan, 5.0, 6.0]], "float32")
    nodes = [value("s", np.array([1, 2], "float32")), node("Resize", ["x", "", "s"], ["nearest"])]
    nodes.append(node("Resize", ["x", "", "s"], ["linear"], mode="linear"))
    compared(nodes, {"x": x}, results=["nearest", "linear"])
    place = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
    exact = compile_onnx(model_of([nodes[0], node("Resize", ["x", "", "s"], ["y"], **place)], {"x": x}, ["y"]))
    got = exact(torch.from_numpy(x)).numpy()[0]
    np.testing.assert_array_equal(got[::2], x[0])  # ONNX Runtime has NaN beside a NaN, and beside an infinite element
    np.testing.assert_array_equal(got[1::2], [1.5, np.inf, np.inf, 3.5, np.nan, np.nan, 5.5, 6])


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_sizes_with_one_factor(policy: str) -> None:
    """The sizes are rounded up in one dimension, and down in another one."""
    nodes = [value("a", [7, 8]), value("b", [3, 3])]
    for sizes, mode in itertools.product("ab", ("nearest", "linear", "cubic")):
        given = {"keep_aspect_ratio_policy": policy, "axes": [2, 3], "mode": mode}
        nodes.append(node("Resize", ["x", "", "", sizes], [f"{sizes} {mode}"], **given))
    compared(nodes, {"x": X}, results=[one.output[0] for one in nodes[2:]], by_reference=True)


def test_a_region_is_resized() -> None:
    """Places outside of the input have a value of their own."""
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0, "axes": [3, 2]}
    region = value("region", np.array([-0.3, 0.2, 0.8, 1.5], "float32"))
    nodes = [value("sizes", [7, 4]), region]
    nodes += [node("Resize", ["x", "region", "", "sizes"], [m], mode=m, **crop) for m in ("nearest", "linear")]
    compared(nodes, {"x": X}, results=["nearest", "linear"], by_reference=True)


def test_other_forms_of_resizing_are_refused() -> None:
    sizes, whole = value("sizes", [2, 3, 7, 2]), X.astype("int32")
    linear = node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")
    with pytest.raises(UnsupportedOpError, match='expected mode "nearest" for integers'):
        compile_onnx(model_of([sizes, linear], {"x": whole}, ["y"]))
    larger = {"keep_aspect_ratio_policy": "not_smaller", "coordinate_transformation_mode": "align_corners"}
    kept = node("Resize", ["x", "", "", "few"], ["y"], axes=[2, 3], mode="linear", **larger)
    with pytest.raises(UnsupportedOpError, match="cannot be combined with a keep_aspect_ratio_policy"):
        compile_onnx(model_of([value("few", [3, 3]), kept], {"x": X}, ["y"]))


def test_blocks_go_to_a_picture() -> None:
    """Places without a block stay zero, and an infinite element goes to its own place only."""
    x = np.random.default_rng(1).standard_normal((2, 12, 20)).astype("float32")
    x[0, 0, 0], x[1, 5, 3] = np.inf, np.nan
    nodes = [value("block", [2, 3]), value("image", [5, 7]), value("wide", [12, 20]), value("padded", [4, 4])]
    nodes.append(node("Col2Im", ["x", "image", "block"], ["plain"]))
    nodes.append(node("Col2Im", ["x", "wide", "block"], ["gaps"], strides=[3, 4]))
    nodes.append(node("Col2Im", ["x", "padded", "block"], ["dilated"], dilations=[2, 1], pads=[1, 1, 1, 2]))
    compared(nodes, {"x": x}, results=["plain", "gaps", "dilated"])

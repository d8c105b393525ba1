"""Places between elements, on them, at the ends and far outside: results are those of ONNX Runtime."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import helper
from onnx_programs import compared, model_of

from tt_torch.driver.onnx import compile_onnx
from tt_torch.errors import UnsupportedOpError

node = helper.make_node
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4, 5)).astype("float32")
ENDS = np.array([[-1, -1], [1, 1], [0, 0], [-0.75, 0.6], [-1.2, 1.1], [7.5, -3.0]], "float32")
PADDINGS = ("zeros", "border", "reflection")


def places(rank: int) -> np.ndarray:
    """Six chosen places, and six random ones."""
    chosen = np.concatenate([ENDS, ENDS[:, :1]], axis=1)[:, :rank]
    rows = np.stack([np.concatenate([chosen, RNG.uniform(-1.5, 1.5, (6, rank))]) for _ in range(2)])
    return rows.reshape(2, 3, *[1] * (rank - 2), 4, rank).astype("float32")


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_places_in_a_picture(mode: str) -> None:
    forms = list(itertools.product(PADDINGS, (0, 1)))
    nodes = [node("GridSample", ["x", "g"], [f"{p} {a}"], mode=mode, padding_mode=p, align_corners=a) for p, a in forms]
    compared(nodes, {"x": X, "g": places(2)})


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_places_in_a_volume(mode: str) -> None:
    nodes = [node("GridSample", ["x", "g"], [p], mode=mode, padding_mode=p) for p in PADDINGS]
    compared(nodes, {"x": X[:, :2, None].repeat(2, 2), "g": places(3)})


def test_other_types_and_elements_that_are_not_finite() -> None:
    """An infinite element next to a place outside of the picture, and one that is not beside it, add nothing."""
    x = X.copy()
    x[0, 0, 0, 0], x[1, 1, 3, 4] = np.inf, np.nan
    whole = RNG.integers(-(2**30), 2**30, X.shape).astype("int32")
    nodes = [node("GridSample", ["x", "g"], ["y"]), node("GridSample", ["i", "g"], ["z"], mode="nearest")]
    compared(nodes, {"x": x, "g": places(2), "i": whole}, by_reference=True)
    linear = model_of([node("GridSample", ["x", "g"], ["y"])], {"x": whole, "g": places(2)}, ["y"])
    with pytest.raises(UnsupportedOpError, match='expected mode "nearest" for integers'):
        compile_onnx(linear)


def test_a_place_that_is_nan_is_outside() -> None:
    g = places(2)
    g[0, 0, 0], g[1, 2, 3, 0] = np.nan, np.nan
    far = np.where(np.isnan(g), np.float32(50), g)
    nodes = [node("GridSample", ["x", grid], [grid + "!"]) for grid in ("g", "far")]
    import torch

    got, same = compile_onnx(model_of(nodes, {"x": X, "g": g, "far": far}, ["g!", "far!"]))(
        *map(torch.from_numpy, (X, g, far))
    )
    assert torch.equal(got, same) and not got[0, :, 0, 0].any()


def test_regions_are_averaged() -> None:
    """Regions are inside of two pictures, over their ends and outside. One has no size, one has its ends exchanged."""
    regions = [[0, 0, 4, 3], [-3, -2, 2, 9], [20, 20, 30, 30], [1, 1, 1, 1], [3, 2, 1, 0], [0.4, 0.6, 3.7, 2.2]]
    inputs = {"x": X, "r": np.array(regions, "float32"), "b": np.array([0, 1, 0, 1, 1, 0])}
    forms = list(itertools.product(("half_pixel", "output_half_pixel"), ((2, 2, 2), (3, 1, 1))))
    nodes = []
    for mode, (high, wide, ratio) in forms:
        given = {"output_height": high, "output_width": wide, "sampling_ratio": ratio, "spatial_scale": 0.9}
        given["coordinate_transformation_mode"] = mode
        nodes.append(node("RoiAlign", ["x", "r", "b"], [f"{mode} {high}"], **given))
    compared(nodes, inputs)
    old = node("RoiAlign", ["x", "r", "b"], ["y"], output_width=2, sampling_ratio=2)
    compared([old], inputs, opset=12)
    # ONNX Runtime takes the largest sum of four terms here, and the reference evaluator the largest term
    largest = [node("RoiAlign", ["x", "r", "b"], [f"{m}"], mode="max", sampling_ratio=2, output_width=3,
                    coordinate_transformation_mode=m) for m in ("half_pixel", "output_half_pixel")]  # fmt: skip
    compared(largest, inputs, by_reference=True)


def test_convolutions_at_moved_places() -> None:
    """There are groups of channels and of moves. One node has a mask and a bias. Some moves go beyond the picture."""
    shapes = {"x": (2, 4, 6, 5), "w": (6, 2, 3, 2), "d": (2, 24, 3, 4), "b": (6,), "m": (2, 12, 3, 4)}
    inputs = {name: RNG.standard_normal(shape).astype("float32") * 2 for name, shape in shapes.items()}
    given = {"group": 2, "offset_group": 2, "strides": [2, 1], "pads": [1, 0, 1, 0], "dilations": [1, 1]}
    nodes = [
        node("DeformConv", ["x", "w", "d"], ["plain"], **given),
        node("DeformConv", ["x", "w", "d", "b", "m"], ["all"], **given),
    ]
    compared(nodes, inputs, by_reference=True)

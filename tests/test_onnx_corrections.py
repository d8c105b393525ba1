"""Nodes that torch-mlir imports as something else: results are those of ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_programs import compared

DTYPES = {"int8": TensorProto.INT8, "int32": TensorProto.INT32, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8}


def test_remainders_of_integers_have_the_sign_of_the_divisor() -> None:
    x, y = (7, -7, 7, -7, 6, -6, 0, 100), (3, 3, -3, -3, 3, -3, 5, 127)
    inputs = {f"{side}{kind}": np.abs(v).astype(kind) if kind[0] == "u" else np.array(v, kind)
              for kind in DTYPES for side, v in (("x", x), ("y", y))}  # fmt: skip
    ends = np.array([2**31 - 2, -(2**31), -(2**31), 2**30]), np.array([2**31 - 1, 7, -7, 2**31 - 1])
    inputs |= {"xends": ends[0].astype("int32"), "yends": ends[1].astype("int32")}
    kinds = [*DTYPES, "ends"]
    nodes = [helper.make_node("Mod", [f"x{kind}", f"y{kind}"], [f"floor {kind}"]) for kind in kinds]
    nodes += [helper.make_node("Mod", [f"x{kind}", f"y{kind}"], [f"trunc {kind}"], fmod=1) for kind in kinds]
    compared(nodes, inputs)


def test_remainders_of_floats_are_exact() -> None:
    """Also where the quotient has more digits than a float."""
    x = np.array([[88060], [-4404.0005], [1e30], [-5.5], [np.inf]], np.float32)
    y = np.array([0.18352607, -0.35286409, 7, np.inf], np.float32)
    halves = {"a": x[[1, 3]].astype("float16"), "b": y.astype("float16")}
    nodes = [helper.make_node("Mod", pair, [f"{pair} rest"], fmod=1) for pair in ("xy", "ab")]
    compared(nodes, {"x": x, "y": y, **halves})


@pytest.mark.parametrize("opset", [13, 21])
def test_a_nan_is_not_equal_to_itself(opset: int) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Neg", ["same"], ["minus"])]
    nodes += [helper.make_node("Equal", ["x", other], [f"is {other}"]) for other in ("x", "same", "minus")]
    compared(nodes, {"x": np.array([1, np.nan, 0, -0.0, np.inf], "float32")}, opset=opset)


def pool(op: str, name: str, kernel: Sequence[int], strides: Sequence[int], **more: object) -> onnx.NodeProto:
    return helper.make_node(op, ["x"], [f"{op} {name}"], kernel_shape=kernel, strides=strides, **more)


KERNELS, STRIDES = ([2, 2], [3, 2]), ([2, 2], [3, 3])
PADS = ([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0])
FORMS = list(itertools.product(KERNELS, STRIDES, PADS, (0, 1)))


def test_maxima_of_windows() -> None:
    nodes = [pool("MaxPool", f"{form}", form[0], form[1], pads=form[2], ceil_mode=form[3]) for form in FORMS]
    for auto, ceil in itertools.product(("SAME_UPPER", "SAME_LOWER", "VALID"), (0, 1)):
        nodes.append(pool("MaxPool", f"{auto} {ceil}", [2, 3], [2, 2], auto_pad=auto, ceil_mode=ceil))
    nodes.append(pool("MaxPool", "dilated", [2, 2], [2, 2], dilations=[2, 2], ceil_mode=1))
    compared(nodes, {"x": np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype("float32")})


@pytest.mark.parametrize("kind", ["float32", "uint8"])
def test_numbers_of_the_largest_elements(kind: str) -> None:
    """They are counted through the whole input, which has several planes, and not through the padding."""
    forms = [
        ([0, 0, 0, 0], {"storage_order": 1}),
        ([2, 1, 0, 1], {"ceil_mode": 1}),
        ([1, 0, 1, 1], {"dilations": [1, 2]}),
    ]
    nodes, names = [], []
    for number, (pads, more) in enumerate(forms):
        names += [f"y{number}", f"i{number}"]
        given = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": pads}
        nodes.append(helper.make_node("MaxPool", ["x"], names[-2:], **given, **more))
    x = 20 * np.random.default_rng(0).standard_normal((2, 3, 6, 5)) + 99
    compared(nodes, {"x": x.astype(kind)}, results=names)


def test_pools_of_powers() -> None:
    nodes = [pool("LpPool", f"{f}", f[0], f[1], pads=f[2], ceil_mode=f[3], p=3) for f in FORMS]
    nodes += [pool("LpPool", auto, [2, 3], [2, 2], auto_pad=auto) for auto in ("SAME_UPPER", "SAME_LOWER", "VALID")]
    nodes += [helper.make_node("GlobalLpPool", [x], [f"{x}{p}"], p=p) for x in ("x", "volume") for p in (1, 3)]
    x = np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype("float32")
    compared(nodes, {"x": x, "volume": x.reshape(1, 2, 7, 3, 2)})


@pytest.mark.parametrize("counted", [0, 1])
def test_averages_of_windows(counted: int) -> None:
    more = {"count_include_pad": counted}
    nodes = [pool("AveragePool", f"{f}", f[0], f[1], pads=f[2], ceil_mode=f[3], **more) for f in FORMS]
    for auto, ceil in itertools.product(("SAME_UPPER", "SAME_LOWER", "VALID"), (0, 1)):
        nodes.append(pool("AveragePool", f"{auto} {ceil}", [2, 3], [2, 2], auto_pad=auto, ceil_mode=ceil, **more))
    compared(nodes, {"x": np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype("float32")})


def test_averages_of_windows_with_gaps() -> None:
    """ONNX Runtime has these windows since opset 19. An infinite element or a NaN changes only windows that read it."""
    x = np.random.default_rng(1).standard_normal((1, 2, 9, 8)).astype("float32")
    x[0, 0, 4, 4], x[0, 1, 0, 0] = np.inf, np.nan
    forms = itertools.product((0, 1), (0, 1), ([1, 2, 0, 1], [0, 0, 0, 0]))
    nodes = [
        pool("AveragePool", f"{f}", [2, 3], [2, 1], dilations=[3, 2], ceil_mode=f[0], count_include_pad=f[1], pads=f[2])
        for f in forms
    ]
    nodes.append(pool("LpPool", "gaps", [2, 2], [1, 1], dilations=[2, 3]))
    compared(nodes, {"x": x})


def test_averages_in_a_volume() -> None:
    nodes = [
        pool("AveragePool", "plain", [2, 3, 2], [1, 2, 2]),
        pool("AveragePool", "padded", [2, 3, 2], [2, 2, 1], pads=[1, 0, 1, 0, 1, 1], ceil_mode=1),
        pool("LpPool", "powers", [2, 2, 2], [1, 1, 2]),
    ]
    compared(nodes, {"x": np.random.default_rng(2).standard_normal((2, 1, 4, 5, 6)).astype("float32")})


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_maxima_of_bytes(kind: str) -> None:
    limits = np.iinfo(kind)
    x = np.random.default_rng(3).integers(limits.min, limits.max, (1, 2, 7, 6), kind, endpoint=True)
    nodes = [
        pool("MaxPool", "plain", [2, 2], [1, 2]),
        pool("MaxPool", "ceil", [3, 3], [2, 2], pads=[1] * 4, ceil_mode=1),
    ]
    compared(nodes, {"x": x})

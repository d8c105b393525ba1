"""Einsum, ConvTranspose, GroupNormalization and 3-d MaxPool in forms that torch-mlir refuses."""

from __future__ import annotations

import itertools
import random

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx_programs import compared, model_of

from tt_torch.driver.onnx import compile_onnx
from tt_torch.onnx_compile import prepare_inference_session

node = helper.make_node
RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def value(name: str, array: np.ndarray) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(array))


def test_einsum() -> None:
    """Diagonals, results that are not written, scalars, ellipses of different lengths, dimensions of size 1."""
    shapes = {
        "s": (),
        "v": (3,),
        "m": (3, 3),
        "n": (3, 4),
        "o": (1, 3),
        "b": (2, 3, 3),
        "c": (2, 3, 3, 3),
        "d": (2, 3, 2),
    }
    equations = [
        ("ii->i", "m"), ("ii", "m"), ("...ii->...i", "b"), ("bii->b", "b"), ("biii->ib", "c"), ("ba", "n"), ("->", "s"),
        (",", "ss"), ("i,->i", "vs"), ("ij,jk", "mn"), ("jij,ik->jk", "dn"), ("...,...", "mv"),
        ("...i,...i", "cv"), ("ij,j->i", "ov"), ("...ij,jk", "bn"), (" i j , j -> i ", "mv"), ("i,ij,j", "vmv"),
    ]  # fmt: skip
    nodes = [node("Einsum", list(names), [f"{i}"], equation=e) for i, (e, names) in enumerate(equations)]
    compared(nodes, {name: floats(*shape) for name, shape in shapes.items()}, by_reference=True)


def test_random_einsum() -> None:
    rng = random.Random(3)
    sizes = {"a": 2, "b": 3, "c": 4, "d": 1}
    nodes, inputs = [], {}
    for i in range(12):
        texts = ["".join(rng.choices("abcd", k=rng.randint(0, 3))) for _ in range(rng.randint(1, 3))]
        letters = sorted(set("".join(texts)))
        result = "->" + "".join(rng.sample(letters, rng.randint(0, len(letters)))) if rng.random() < 0.7 else ""
        for j, text in enumerate(texts):
            inputs[f"x{i}{j}"] = floats(*(sizes[letter] for letter in text))
        names = [f"x{i}{j}" for j in range(len(texts))]
        nodes.append(node("Einsum", names, [f"{','.join(texts)}{result}{i}"], equation=",".join(texts) + result))
    compared(nodes, inputs, by_reference=True)


def test_transposed_convolutions() -> None:
    nodes = [
        node("ConvTranspose", ["x", "w", "bias"], [f"{automatic} {strides}"], auto_pad=automatic, strides=strides)
        for automatic, strides in itertools.product(("SAME_UPPER", "SAME_LOWER"), ([1, 1], [2, 2], [3, 2]))
    ]
    common = {"strides": [3, 2], "dilations": [1, 2]}
    nodes.append(node("ConvTranspose", ["x", "w"], ["more"], output_padding=[2, 1], pads=[1, 0, 1, 3], **common))
    nodes.append(node("ConvTranspose", ["x", "w", "bias"], ["one end"], pads=[0, 0, 0, 2], **common))
    nodes.append(node("ConvTranspose", ["x", "w"], ["sized"], output_shape=[13, 14], **common))
    nodes.append(node("ConvTranspose", ["x", "w"], ["lower"], output_shape=[9, 8], auto_pad="SAME_LOWER", **common))
    compared(nodes, {"x": floats(2, 2, 4, 5), "w": floats(2, 3, 3, 3), "bias": floats(3)})
    one = node("ConvTranspose", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[2], group=2)
    compared([one], {"x": floats(2, 4, 5), "w": floats(4, 3, 3)})


@pytest.mark.parametrize("rank", range(2, 6))
def test_group_normalization(rank: int) -> None:
    x = floats(*[2, 6, 3, 2, 3][:rank]) * 3
    nodes = [value("scale", floats(6)), value("bias", floats(6))]
    for groups in (1, 3):
        nodes.append(node("GroupNormalization", ["x", "scale", "bias"], [f"{groups}"], num_groups=groups, epsilon=0.01))
    compared(nodes, {"x": x}, results=["1", "3"])


def test_means_of_more_elements_than_float16_can_count() -> None:
    x = np.tile(np.float16([-1, 0, 1, 2]), 17_500).reshape(1, 1, 280, 250)
    nodes = [
        node("ReduceMean", ["x"], ["mean"], keepdims=0),
        node("LayerNormalization", ["x", "x"], ["norm"], axis=1),
        node("GlobalAveragePool", ["x"], ["pooled"]),
    ]
    mean, norm, pooled = compile_onnx(model_of(nodes, {"x": x}, ["mean", "norm", "pooled"]))(torch.from_numpy(x))
    assert mean == 0.5 and (pooled == 0.5).all()
    wide = x.astype("float32")
    np.testing.assert_allclose(norm.numpy(), (wide - 0.5) / wide.std() * wide, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    "form",
    [
        {"pads": [1, 0, 1, 0, 1, 1]},
        {"ceil_mode": 1, "strides": [2, 2, 2], "storage_order": 1},
        {"dilations": [1, 2, 1]},
        {"strides": [1, 2, 1], "auto_pad": "SAME_UPPER"},
    ],
)
def test_places_of_maxima_in_three_dimensions(form: dict[str, object]) -> None:
    """The first of equal elements counts. An element of the padding never counts, even if all others are very small."""
    x = np.round(floats(2, 2, 4, 5, 4))
    x[0, 0, :2] = -1e30
    nodes = [node("MaxPool", ["x"], ["y", "places"], kernel_shape=[2, 2, 3], **form)]
    compared([*nodes, node("MaxPool", ["x"], ["alone"], kernel_shape=[2, 2, 3], **form)], {"x": x})


def test_empty_lists_of_dimensions() -> None:
    ops = ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"]
    forms = [(op, no) for op in ops for no in (0, 1)]
    nodes = [node(op, ["x", "axes"], [f"{op}{no}"], noop_with_empty_axes=no) for op, no in forms]
    x = np.abs(floats(2, 3)) + 1
    compared([value("axes", np.zeros(0, "int64")), *nodes], {"x": x}, results=[f"{op}{no}" for op, no in forms])


def test_an_old_format() -> None:
    """In ONNX's format 3, initializers are inputs, too. The bias of this model is one."""
    more = node("ConvTranspose", ["x", "w", "bias"], ["y"], output_padding=[1], strides=[3], pads=[1, 1])
    inputs = {"x": floats(1, 2, 5), "w": floats(2, 3, 3), "bias": floats(3)}
    model = model_of([more], inputs, ["y"], opset=8)
    model.ir_version = 3
    model.graph.initializer.append(onnx.numpy_helper.from_array(inputs["bias"], "bias"))
    (expected,) = prepare_inference_session(model).run(None, {name: inputs[name] for name in "xw"})
    result = compile_onnx(model)(torch.from_numpy(inputs["x"]), torch.from_numpy(inputs["w"]))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)

"""Nodes that are written as plain nodes by their definitions: results are those of ONNX Runtime."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_programs import compared, model_of, runtime_saturates

from tt_torch.driver.onnx import compile_onnx
from tt_torch.errors import UnsupportedOpError

node = helper.make_node
X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")


def value(name: str, array: object) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(array)))


def test_cumulative_products() -> None:
    """ONNX Runtime has no CumProd; ONNX's reference evaluator does."""
    forms = list(itertools.product((1, -2), (0, 1), (0, 1)))
    nodes = [value("1", 1), value("-2", -2)]
    nodes += [node("CumProd", ["x", f"{a}"], [f"y{a}{r}{e}"], reverse=r, exclusive=e) for a, r, e in forms]
    model = model_of(nodes, {"x": X}, names := [f"y{a}{r}{e}" for a, r, e in forms], opset=26)
    expected = ReferenceEvaluator(model).run(names, {"x": X})
    for got, want in zip(compile_onnx(model)(torch.from_numpy(X)), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)


def test_cumulative_sums() -> None:
    """An element that is not finite changes only the sums that have it."""
    x, forms = X.copy(), list(itertools.product((1, -2), (0, 1), (0, 1)))
    x[0, 0, 1, 2], x[1, 1, 2, 0] = np.inf, np.nan
    nodes = [value("1", 1), value("-2", -2), node("CumSum", ["none", "1"], ["no sum"])]
    nodes += [node("CumSum", ["x", f"{a}"], [f"y{a}{r}{e}"], reverse=r, exclusive=e) for a, r, e in forms]
    compared(nodes, {"x": x, "none": X[:, :0]}, results=["no sum", *(f"y{a}{r}{e}" for a, r, e in forms)])


def test_channels_around_a_channel() -> None:
    """Windows of two and four channels have no middle. ONNX Runtime refuses them, and the reference evaluator computes
    as many channels as there are pictures."""
    nodes = [node("LRN", ["x"], [f"y{size}"], size=size, alpha=0.5) for size in (2, 3, 4)]
    compared(nodes, {"x": X.ravel()[:96].reshape(4, 4, 2, 3)}, by_reference=True)


@pytest.mark.parametrize("inverse", [0, 1])
def test_fourier_transforms(inverse: int) -> None:
    """Transforms are longer and shorter than the input, along two dimensions, of real and of complex numbers."""
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


def test_channels_become_blocks() -> None:
    """torch-mlir is wrong in the mode CRD if the result has one channel, as that of a model for super-resolution."""
    nodes = [
        node("DepthToSpace", [x], [f"{x} {mode}"], blocksize=2, mode=mode) for x in "xy" for mode in ("DCR", "CRD")
    ]
    x = np.arange(96, dtype="float32")
    compared(nodes, {"x": x[:48].reshape(2, 4, 2, 3), "y": x.reshape(2, 8, 3, 2)})


def test_products_with_a_factor() -> None:
    forms = [(more, turned) for more in ((), ("z",)) for turned in (0, 1)]
    nodes = [
        node("Gemm", ["x", "y", *more], [f"{more} {turned}"], alpha=0.5, beta=2.0, transA=turned, transB=turned)
        for more, turned in forms
    ]
    compared(nodes, {"x": X[0, 0, :, :4], "y": X[0, 1, :, :4], "z": X[0, 2, :, :4]})
    integers = model_of([node("Gemm", ["i", "i"], ["y"], alpha=0.5)], {"i": np.ones((2, 2), "int32")}, ["y"])
    with pytest.raises(UnsupportedOpError, match=r"Gemm[\s\S]*expected a factor of 1 for integers, got 0\.5"):
        compile_onnx(integers)


def test_norms() -> None:
    x = X.copy()
    x[0, 0] = 0
    nodes = [node("LpNormalization", ["x"], [f"n{p}{axis}"], p=p, axis=axis) for p in (1, 2) for axis in (-1, 1)]
    nodes += [node("LpPool", ["x"], [f"p{p}"], p=p, kernel_shape=[2, 3], pads=[1, 1, 0, 1]) for p in (1, 2, 3)]
    compared(nodes, {"x": x})


def test_the_largest_of_booleans_and_bytes() -> None:
    ops = ("ReduceMax", "ReduceMin")
    nodes = [node(op, ["x", "axes"], [op], keepdims=keep) for keep, op in enumerate(ops)]
    compared([value("axes", [1]), *nodes], {"x": X > 0.5}, results=ops)
    large = np.random.default_rng(4).integers(200, 250, X.shape).astype("uint8")
    compared([value("axes", [1]), *nodes], {"x": large}, results=ops)
    compared([value("axes", [1]), *nodes], {"x": (large - 100).astype("int8")}, results=ops)


def test_the_largest_and_chosen_places() -> None:
    index = np.array([[0, -1, 2], [5, -5, -3]])
    nodes = [node("Hardmax", ["x"], [f"h{axis}"], axis=axis) for axis in (0, 1, -1)]
    nodes += [node("OneHot", ["index", "depth", "values"], [f"o{axis}"], axis=axis) for axis in (0, -1)]
    x = np.round(X)  # with equal largest elements
    values = np.array([-1.5, 2.5], "float32")
    inputs = {"x": x, "index": index, "values": values}
    compared([value("depth", 3), *nodes], inputs, results=["h0", "h1", "h-1", "o0", "o-1"])


def test_places_of_equal_elements() -> None:
    """The lowest places come first, along each dimension."""
    nodes = [node("TopK", ["x", "k"], [f"v{a}{n}", f"i{a}{n}"], axis=a, largest=n) for a in (0, 1) for n in (0, 1)]
    x = np.round(np.random.default_rng(2).standard_normal((40, 50))).astype("float32")
    compared([value("k", [30]), *nodes], {"x": x}, results=[name for one in nodes for name in one.output])


def test_nodes_that_change_nothing() -> None:
    """A Clip without bounds, and a Dropout outside of training, whose mask is true."""
    compared([node("Clip", ["x"], ["same"]), node("Dropout", ["x"], ["kept", "mask"])], {"x": X})


def _scales(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0.01, 0.1, shape).astype("float32")


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_quantized_numbers(kind: str) -> None:
    """A node has one scale, one for each place along an axis, or one for each block. Ties like 0.5 / 1 go to even."""
    rng, limits = np.random.default_rng(1), np.iinfo(kind)
    q = rng.integers(limits.min, limits.max, X.shape, kind, endpoint=True)
    inputs = {
        "x": np.concatenate([X.ravel()[:-6] * 9, [0.5, 1.5, -2.5, 1e6, -1e6, -0.0]]).reshape(X.shape).astype("float32"),
        "q": q, "one": np.array(1, "float32"), "zero": np.array(limits.max // 3, kind),
        "scales": _scales(rng, 3), "zeros": np.array([limits.min, 0, limits.max], kind),
        "blocks": _scales(rng, 2, 3, 2, 5), "block_zeros": rng.integers(0, 9, (2, 3, 2, 5), kind),
    }  # fmt: skip
    forms = [
        ("one", "zero", {}),
        ("scales", "zeros", {"axis": 1}),
        ("blocks", "block_zeros", {"axis": 2, "block_size": 2}),
    ]
    nodes = []
    for scale, zero, given in forms:
        nodes.append(node("QuantizeLinear", ["x", scale, zero], [f"q {scale}"], **given))
        nodes.append(node("DequantizeLinear", ["q", scale, zero], [f"x {scale}"], **given))
    compared(nodes, inputs)


def test_products_of_quantized_numbers() -> None:
    rng = np.random.default_rng(2)
    inputs = {
        "a": rng.integers(0, 256, (2, 4, 32), "uint8"), "b": rng.integers(-128, 128, (32, 5), "int8"),
        "sa": np.array(0.05, "float32"), "za": np.array(113, "uint8"),
        "sb": _scales(rng, 5), "zb": np.zeros(5, "int8"),
        "sy": np.array(3.0, "float32"), "zy": np.array(118, "uint8"),
        "image": rng.integers(0, 256, (1, 2, 6, 5), "uint8"), "kernel": rng.integers(0, 256, (3, 2, 3, 3), "uint8"),
    }  # fmt: skip
    nodes = [
        node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["product"]),
        node("ConvInteger", ["image", "kernel", "za"], ["convolution"], pads=[1, 0, 1, 0]),
    ]
    compared(nodes, inputs, by_reference=True)


@pytest.mark.parametrize(("left", "right"), itertools.product(("uint8", "int8"), repeat=2))
def test_products_of_integers(left: str, right: str) -> None:
    """The operands have either type. Each sum has more elements than float32 adds exactly."""
    most = {"uint8": 255, "int8": -128}
    x = {"a": np.full((2, 3, 300), most[left], left), "b": np.full((300, 4), most[right], right)}
    x |= {"az": np.array(3, left), "bz": np.arange(4).astype(right)}
    nodes = [node("MatMulInteger", ["a", "b"], ["y"]), node("MatMulInteger", ["a", "b", "az", "bz"], ["z"])]
    compared(nodes, x, by_reference=runtime_saturates())


@pytest.mark.parametrize(
    ("channels", "groups", "kernel", "given"),
    [
        (2, 1, (3, 3), {"pads": [1, 0, 2, 1]}),
        (70, 1, (3, 3), {"strides": [2, 1]}),  # 630 products in a sum
        (6, 3, (2,), {"auto_pad": "SAME_UPPER"}),
        (300, 1, (1,), {}),
    ],
)
def test_convolutions_of_quantized_numbers(
    channels: int, groups: int, kernel: tuple[int, ...], given: dict[str, Any]
) -> None:
    """The sums of the extreme numbers are beyond 2^24 if there are more than 258 products."""
    rng, size = np.random.default_rng(channels), (6, 5)[: len(kernel)]
    inputs = {
        "x": rng.choice(np.array([0, 255, 254, 7], "uint8"), (2, channels, *size)),
        "w": rng.choice(np.array([-128, 127, 126], "int8"), (3 * groups, channels // groups, *kernel)),
        "sx": np.array(0.0123, "float32"), "zx": np.array(3, "uint8"),
        "sw": _scales(rng, 3 * groups), "zw": np.full(3 * groups, 1, "int8"),
        "sy": np.array(channels, "float32"), "zy": np.array(118, "uint8"),
        "bias": rng.integers(-(2**20), 2**20, 3 * groups, "int32"),
    }  # fmt: skip
    inputs["one zero"] = np.array(1, "int8")
    quantized = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    nodes = [
        node("ConvInteger", ["x", "w", "zx", "one zero"], ["sums"], group=groups, **given),
        node("QLinearConv", [*quantized, "bias"], ["convolution"], group=groups, **given),
        node("QLinearConv", quantized, ["without bias"], group=groups, **given),
    ]
    if (saturates := runtime_saturates()) and len(kernel) == 1:
        pytest.skip("ONNX Runtime's sums saturate on this processor, and the reference evaluator knows no 1-D kernels")
    compared(nodes, inputs, by_reference=saturates)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", ["RNN", "LSTM", "GRU"])
def test_recurrent_nodes(op: str, direction: str) -> None:
    """Nodes have no optional operands, or a bias, initial states and, for LSTM, peepholes."""
    rng, gates, both = np.random.default_rng(3), {"RNN": 1, "LSTM": 4, "GRU": 3}[op], 1 + (direction == "bidirectional")
    shapes = {
        "x": (5, 2, 3), "w": (both, gates * 4, 3), "r": (both, gates * 4, 4), "b": (both, gates * 8),
        "h": (both, 2, 4), "c": (both, 2, 4), "p": (both, 12),
    }  # fmt: skip
    inputs = {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    full = ["x", "w", "r", "b", "", "h", *(["c", "p"] if op == "LSTM" else [])]
    forms = [(["x", "w", "r"], {}), (full, {"linear_before_reset": 1} if op == "GRU" else {})]
    nodes = [
        node(
            op,
            given,
            [f"y{i}", f"h{i}", *([f"c{i}"] if op == "LSTM" else [])],
            hidden_size=4,
            direction=direction,
            **more,
        )
        for i, (given, more) in enumerate(forms)
    ]
    used = {name: x for name, x in inputs.items() if name in full}
    compared(nodes, used)


def test_other_recurrent_nodes_are_refused() -> None:
    inputs = {"x": X[0], "w": X[:1, 0, :3], "r": np.zeros((1, 3, 3), "float32")}
    clipped = node("RNN", ["x", "w", "r"], ["y"], hidden_size=3, clip=1.0)
    with pytest.raises(UnsupportedOpError, match=r"^onnx\.RNN is not supported"):
        compile_onnx(model_of([clipped], inputs, ["y"]))


def test_casts_and_constants_of_all_integers() -> None:
    """Integers wrap at the width of their type. torch-mlir has no casts to the types from int16 on."""
    kinds = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
    x = np.array([-70000, -200, -1, 0, 1, 100, 40000])
    inputs: dict[str, Any] = {"x": x, "f": np.array([0.0, 1.7, 99.2], "float32"), "b": np.array([True, False])}
    nodes = []
    for kind in kinds:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        nodes += [node("Cast", [name], [f"{name} as {kind}"], to=to) for name in ("f", "b")]
        nodes += [node("Cast", ["x"], [f"x as {kind}"], to=to)] if kind != "uint64" else []
        nodes += [
            value(f"c {kind}", np.array([1, 2, np.iinfo(kind).max], kind)),
            node("Identity", [f"c {kind}"], [f"same {kind}"]),
        ]
        nodes += [node("CastLike", ["f", f"c {kind}"], [f"f like {kind}"])]
    compared(nodes, inputs)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_powers_of_integers(kind: str) -> None:
    """Floats of the device have 24 bits. Exponents are known, or inputs, also negative and large ones."""
    x, exponents = np.array([29, -31, 3, 1, -1, 0, 7], kind), [0, 1, 2, 3, 5, 6]
    nodes = [value(f"e{e}", np.array(e, kind)) for e in exponents] + [value("float", np.float32(5))]
    nodes += [node("Pow", ["x", f"e{e}"], [f"x to {e}"]) for e in exponents]
    nodes += [node("Pow", ["x", "float"], ["x to float"]), node("Pow", ["x", "e"], ["x to e"])]
    inputs = {"x": x, "e": np.array([5, 5, 17, 77, 77, 40, 0], kind)}
    compared(nodes, inputs, results=[*(f"x to {e}" for e in exponents[:-1]), "x to float", "x to e"])
    inverse = {"x": x[[0, 1, 3, 4]], "e": np.array([-2, -1, -3, -3], kind)}
    compared([node("Pow", ["x", "e"], ["y"])], inverse)


def test_integers_come_nearer_to_zero() -> None:
    x = {"x": np.array([-4, -1, 0, 1, 2, 7]), "u": np.array([0, 1, 2, 200], np.uint8)}
    compared([node("Shrink", [name], [f"{name} out"], lambd=1.5, bias=0.5) for name in x], x)


def test_results_without_elements() -> None:
    """And a diagonal beside the matrix, and a part beside one without elements."""
    nodes = [value("sizes", [0, 2]), node("Tile", ["x", "sizes"], ["y"]), node("EyeLike", ["x"], ["z"], k=-2)]
    nodes.append(node("Split", ["x", "sizes"], ["none", "left"], axis=1))
    compared(nodes, {"x": X[0, :1, :2, 0]}, results=["y", "z", "none", "left"])


def test_slices_that_begin_before_the_first_element() -> None:
    """With a negative step, they begin at this element. One is of a constant, and one has no steps."""
    begin = [value("first", [-9, 1]), value("end", [-9, -9]), value("dims", [1, 0]), value("steps", [-1, -1])]
    nodes = [node("Slice", ["x", "first", "end", "dims", "steps"], ["y"]), node("Slice", ["x", "first", "end"], ["w"])]
    nodes += [value("c", np.arange(12).reshape(3, 4)), node("Slice", ["c", "first", "end", "dims", "steps"], ["z"])]
    compared([*begin, *nodes], {"x": X[0, :3, :4, 0]}, results=["y", "w", "z"])


def test_softplus_of_a_constant() -> None:
    compared([value("c", np.float32([-30, 0, 1, 100])), node("Softplus", ["c"], ["y"])], {}, results=["y"])


def test_signs_of_unsigned_integers() -> None:
    compared([node("Sign", ["x"], ["y"])], {"x": np.array([0, 5, 2**63], np.uint64)})


def test_pieces_of_signals() -> None:
    """ONNX Runtime has no transform of a complex signal with a window."""
    signals = {"real": X.reshape(2, 60, 1), "complex": X.reshape(2, 30, 2), "window": np.hanning(16).astype("float32")}
    nodes, names = [value("7", 7), value("16", 16), value("5", 5)], []
    for signal, onesided, given in itertools.product(("real", "complex"), (1, 0), ("window", "16", "5")):
        if signal == "real" or not onesided:
            operands = ["window"] if given == "window" else ["", given]
            names.append(f"{signal} {onesided} {given}")
            nodes.append(node("STFT", [signal, "7", *operands], [names[-1]], names[-1], onesided=onesided))
    model = model_of(nodes, signals, names, opset=17)
    results = compile_onnx(model)(*map(torch.from_numpy, signals.values()))
    for got, want in zip(results, ReferenceEvaluator(model).run(names, signals), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)


def test_bits_of_numbers() -> None:
    types = onnx.TensorProto
    kept = {"f": X[0, 0], "i": np.array([-1, 1 << 30, 5], "int32"), "b": np.array([1, 0, 1], bool)}
    kept |= {"d": X[0, 0].astype("float64"), "j": np.array([-1, 1 << 62, 5])}
    forms = [("d", types.INT64), ("d", types.UINT64), ("j", types.DOUBLE), ("j", types.UINT64)]
    forms += [("f", types.INT32), ("f", types.UINT32), ("i", types.FLOAT), ("i", types.UINT32), ("b", types.UINT8)]
    nodes = [node("BitCast", [x], [f"y{i}"], to=to) for i, (x, to) in enumerate(forms)]
    model = model_of(nodes, kept, names := [f"y{i}" for i in range(len(forms))], opset=26)
    results = compile_onnx(model)(*map(torch.from_numpy, kept.values()))
    for got, want in zip(results, ReferenceEvaluator(model).run(names, kept), strict=True):
        assert got.numpy().dtype == want.dtype and got.numpy().tobytes() == want.tobytes()


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_determinants(size: int) -> None:
    """Among them are those of a matrix with zeros only, with two equal rows, and with zeros where pivots would be."""
    x = np.random.default_rng(size).standard_normal((2, 3, size, size)).astype("float32")
    x[0, 0], x[0, 1, 0], x[1, 0] = 0, x[0, 1, -1], np.eye(size)[::-1]
    nodes = [node("Det", ["x"], ["y"]), node("Det", ["one"], ["z"])]
    inputs = {"x": x, "one": x[1, 1]}
    model = model_of(nodes, inputs, ["y", "z"])
    expected = ReferenceEvaluator(model).run(None, inputs)
    for got, want in zip(compile_onnx(model)(*map(torch.from_numpy, inputs.values())), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)


def test_larger_determinants_are_refused() -> None:
    with pytest.raises(UnsupportedOpError, match=r"onnx\.Det .*\n.*\n.*at most 16 rows"):
        compile_onnx(model_of([node("Det", ["x"], ["y"])], {"x": np.zeros((17, 17), "float32")}, ["y"]))


@pytest.mark.parametrize("sizes", [(7,), (3, 4), (2, 3, 2)])
def test_elements_return_to_their_windows(sizes: tuple[int, ...]) -> None:
    """Without an output_shape, and with a larger one."""
    rng, given = np.random.default_rng(0), {"kernel_shape": [3] * len(sizes), "strides": [2] * len(sizes)}
    spread = [2 * n + 1 for n in sizes]
    x = rng.standard_normal((2, 3, *sizes)).astype("float32")
    numbers = rng.permutation(6 * int(np.prod(spread)))[: x.size].reshape(x.shape)
    nodes = [node("MaxUnpool", ["x", "i", *more], ["y" + "".join(more)], **given) for more in ((), ("s",))]
    inputs = {"x": x, "i": numbers, "s": np.array([2, 3, *(n + 2 for n in spread)])}
    compared(nodes, inputs, constants=["s"], by_reference=True)


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_features_of_classical_machine_learning(kind: str) -> None:
    domain, x = "ai.onnx.ml", (X * 3).astype(kind)
    nodes = [node("Binarizer", ["x"], ["above"], threshold=0.5, domain=domain)]
    nodes += [node("ArrayFeatureExtractor", [name, "i"], [f"of {name}"], domain=domain) for name in ("x", "row")]
    compared(nodes, {"x": x, "row": x[0, 0, 0], "i": np.array([[4, 0, 0]])}, by_reference=True)


@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize(
    ("op", "mode"), [("Momentum", "standard"), ("Momentum", "nesterov"), ("Adagrad", ""), ("Adam", "")]
)
def test_optimizers(op: str, mode: str, step: int) -> None:
    """Two weights at once, with all attributes."""
    kept, rng = 2 if op == "Adam" else 1, np.random.default_rng(step)
    names = [f"{part}{i}" for part in range(2 + kept) for i in (0, 1)]
    inputs = {"rate": np.array(0.1, "float32"), "step": np.array(step)}
    inputs |= {name: np.abs(rng.standard_normal((2, 3 + int(name[1])))).astype("float32") for name in names}
    given = {"norm_coefficient": 0.3, **({"mode": mode} if mode else {"epsilon": 0.01})}
    given |= {"alpha": 0.8, "beta": 0.7} if op != "Adagrad" else {"decay_factor": 0.2}
    given |= {"norm_coefficient_post": 0.1} if op == "Adam" else {}
    results = [f"new {name}" for name in names if not name.startswith("1")]
    compared([node(op, [*inputs], results, domain="ai.onnx.preview.training", **given)], inputs, by_reference=True)

"""ONNX models with nodes that the host computes, compared with ONNX Runtime and ONNX's reference evaluator."""

from __future__ import annotations

import random
import warnings
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto
from onnx.helper import make_graph, make_node, make_tensor_value_info
from onnx.numpy_helper import from_array
from onnx_programs import compared, model_of

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.host_onnx import onnx_model
from tt_torch.driver.onnx import compile_onnx
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.driver.stablehlo import in_a_list
from tt_torch.errors import KernelError, UnsupportedOpError
from tt_torch.onnx_compile import prepare_inference_session

SILENT = pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
RNG = np.random.default_rng(0)


def constant(name: str, value: object) -> onnx.NodeProto:
    return make_node("Constant", [], [name], value=from_array(np.asarray(value), name))


DETECTOR = [
    make_node("Sigmoid", ["raw"], ["scores"]),
    make_node("Relu", ["corners"], ["boxes"]),
    *(constant(*each) for each in (("most", [5]), ("iou", np.float32([0.5])), ("least", np.float32([0.4])))),
    make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"], "nms"),
    *(constant(*each) for each in (("2", 2), ("0", [0]))),
    make_node("Gather", ["chosen", "2"], ["places"], axis=1),
    make_node("Squeeze", ["boxes", "0"], ["flat"]),
    make_node("Gather", ["flat", "places"], ["found"]),
    make_node("ReduceSum", ["found", "0"], ["total"], keepdims=0),
    make_node("Sin", ["total"], ["sine"]),
]


def detector() -> onnx.ModelProto:
    inputs = {"raw": np.zeros((1, 2, 30), np.float32), "corners": np.zeros((1, 30, 4), np.float32)}
    return model_of(DETECTOR, inputs, ["chosen", "found", "sine"])


def test_a_detector_returns_as_many_boxes_as_it_finds(tmp_path: Path) -> None:
    """Also after it was saved. What reads the boxes is for the host, what reads their sum is not."""
    model = detector()
    with pytest.warns(
        HostFallbackWarning, match=r"nms.*NonMaxSuppression: values decide.*with Gather, ReduceSum, which"
    ):
        compiled = compile_onnx(model)
    compiled.save(tmp_path / "detector.ttpkg")
    loaded, session = tt_torch.load(tmp_path / "detector.ttpkg"), prepare_inference_session(model)
    counts = set()
    for shift in (-20.0, -1.0, 0.0, 2.0):
        scores = RNG.standard_normal((1, 2, 30)).astype(np.float32) + np.float32(shift)
        boxes = RNG.random((1, 30, 4)).astype(np.float32)
        expected = session.run(None, {"raw": scores, "corners": boxes})
        for way in (compiled, loaded):
            for got, want in zip(way(torch.tensor(scores), torch.tensor(boxes)), expected, strict=True):
                torch.testing.assert_close(got, torch.tensor(want), rtol=1e-4, atol=1e-5)
        counts.add(len(expected[0]))
    assert 0 in counts and len(counts) > 1


def test_without_a_host_it_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOpError, match="NonMaxSuppression: values decide the sizes of its results"):
        compile_onnx(detector(), CompilerConfig(fallback="error"))


@SILENT
@pytest.mark.parametrize("kind", ["float32", "float16", "int64", "uint8", "bool"])
def test_elements_that_are_not_zero(kind: str) -> None:
    x = RNG.integers(0, 3, (4, 5)).astype(kind)
    nodes = [
        make_node("NonZero", ["x"], ["places"]),
        make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        make_node("GatherND", ["x", "rows"], ["found"]),
        make_node("Shape", ["found"], ["count"]),
    ]
    compared(nodes, {"x": x})


@SILENT
def test_64_bit_integers_of_the_host_stay_exact() -> None:
    """One of them is an input, which nothing computes on the device."""
    x = np.array([2**40, 3, 2**40, -(2**60)])
    nodes = [make_node("Unique", ["x"], ["y", "first", "back", "counts"]), make_node("Add", ["x", "x"], ["sum"])]
    compared(nodes, {"x": x}, results=["y", "first", "back", "counts", "sum"])


@SILENT
def test_a_condition_chooses_elements() -> None:
    nodes = [
        constant("limit", np.float32(0)),
        make_node("Greater", ["x", "limit"], ["condition"]),
        make_node("Compress", ["x", "condition"], ["y"], axis=0),
    ]
    compared(nodes, {"x": RNG.standard_normal(9).astype(np.float32)}, results=["y"])


@SILENT
def test_a_loop_with_results_of_open_sizes_is_for_the_host() -> None:
    """Its body captures a value, and its number of steps is the number of elements that were found."""
    body = make_graph(
        [make_node("Gather", ["places", "i"], ["row"], axis=1), make_node("Identity", ["go"], ["on"])],
        "body",
        [make_tensor_value_info("i", TensorProto.INT64, []), make_tensor_value_info("go", TensorProto.BOOL, [])],
        [make_tensor_value_info("on", TensorProto.BOOL, []), make_tensor_value_info("row", TensorProto.INT64, [2])],
    )
    nodes = [
        make_node("Sign", ["x"], ["signs"]),
        make_node("NonZero", ["signs"], ["places"]),
        make_node("Shape", ["places"], ["sizes"]),
        constant("1", 1),
        make_node("Gather", ["sizes", "1"], ["count"]),
        constant("true", True),
        make_node("Loop", ["count", "true"], ["rows"], body=body),
    ]
    compared(nodes, {"x": RNG.integers(-1, 2, (3, 4)).astype(np.float32)}, results=["rows"])


@SILENT
def test_the_mask_of_a_seed() -> None:
    """ONNX's reference evaluator has the numbers of the seed. The rest is for the device."""
    nodes = [
        *(constant(*each) for each in (("ratio", np.float32(0.5)), ("training", True))),
        make_node("Dropout", ["x", "ratio", "training"], ["kept", "mask"], seed=7),
        make_node("Exp", ["kept"], ["y"]),
    ]
    compared(nodes, {"x": RNG.standard_normal((3, 8)).astype(np.float32)}, results=["mask", "y"], by_reference=True)


@SILENT
def test_ops_that_the_device_lacks() -> None:
    """Their results have known sizes, so that the device reads them."""
    given = {"pool_int64s": [2, 3, 5, 4], "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "mode": "TF"}
    given |= {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0}
    nodes = [
        make_node("TfIdfVectorizer", ["words"], ["counts"], **given),
        make_node("Exp", ["counts"], ["y"]),
        make_node("OneHotEncoder", ["words"], ["which"], domain="ai.onnx.ml", cats_int64s=[2, 3, 9]),
        make_node("Cos", ["which"], ["z"]),
    ]
    compared(nodes, {"words": np.array([2, 3, 2, 9])}, results=["y", "z"], opset=19)


@pytest.mark.parametrize(
    "place", ["initializer", "sparse initializer", "node", "sparse node", "inner graph", "function"]
)
def test_a_package_may_not_read_files(place: str) -> None:
    """The model of a part comes from the package. Its values cannot lie elsewhere."""
    value = from_array(np.zeros(3, np.float32), "w")
    value.data_location = TensorProto.EXTERNAL
    value.external_data.add(key="location", value="weights")
    sparse = onnx.SparseTensorProto(values=value, dims=[3])
    constant = make_node("Constant", [], ["y"], **({"sparse_value": sparse} if "sparse" in place else {"value": value}))
    inner = make_node("If", ["c"], ["y"], then_branch=make_graph([constant], "then", [], []))
    graph = make_graph([{"node": constant, "sparse node": constant}.get(place, inner)], "part", [], [])
    if "initializer" in place or place == "function":
        graph = make_graph([make_node("Identity", ["w"], ["y"])], "part", [], [])
    if place == "initializer":
        graph.initializer.append(value)
    elif place == "sparse initializer":
        graph.sparse_initializer.append(sparse)
    model = onnx.helper.make_model(graph)
    if place == "function":
        model.functions.append(onnx.helper.make_function("own", "F", [], ["y"], [constant], []))
    text = b64encode(model.SerializeToString()).decode()
    for by_reference in (False, True):
        with pytest.raises(RuntimeError, match="a value lies in another file"):
            onnx_model(model=text, by_reference=by_reference)


@SILENT
def test_a_damaged_part_is_an_error_of_ours(tmp_path: Path) -> None:
    compile_onnx(detector()).save(tmp_path / "x.ttpkg")
    model = tt_torch.load(tmp_path / "x.ttpkg")
    step = next(step for step in model._package.manifests[0].flow.steps if hasattr(step, "op"))  # type: ignore[union-attr]
    step.options["model"] = b64encode(b"no model").decode()
    with pytest.raises(KernelError, match=r"onnx_model at .*nms"):
        model(torch.zeros(1, 2, 30), torch.zeros(1, 30, 4))


class Drawn:
    """A random model: values of known sizes and values of open sizes, which become each other."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.fixed = ["a", "b"]  # matrices with 3 rows of 4 elements
        self.open = list[str]()  # matrices with an open number of rows of 4 elements
        for _ in range(self.draw.randint(4, 12)):
            self.draw.choice([self.plain, self.select, self.shrink, self.of_open, self.of_open])()

    def add(self, op: str, *operands: str, count: int = 1, **attributes: object) -> str:
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(make_node(op, operands, names, **attributes))
        return names[-1]

    def constant(self, value: object) -> str:
        self.nodes.append(constant(f"c{len(self.nodes)}", value))
        return str(self.nodes[-1].output[0])

    def plain(self) -> None:
        x, y = self.draw.choice(self.fixed), self.draw.choice(self.fixed)
        self.fixed.append(self.draw.choice([lambda: self.add("Add", x, y), lambda: self.add("Sin", x)])())

    def select(self) -> None:
        """Rows of a matrix, as many as values decide."""
        x = self.draw.choice(self.fixed)
        ways: list[Callable[[str], str]] = [self._compressed, self._not_zero, self._unique]
        self.open.append(self.draw.choice(ways)(x))

    def _compressed(self, x: str) -> str:
        total = self.add("ReduceSum", x, self.constant([1]), keepdims=0)
        return self.add("Compress", x, self.add("Greater", total, self.constant(np.float32(0))), axis=0)

    def _not_zero(self, x: str) -> str:
        places = self.add("NonZero", self.add("Relu", self.add("Round", x)))
        rows = self.add("Gather", places, self.constant(0))
        return self.add("Gather", x, rows)

    def _unique(self, x: str) -> str:
        return self.add("Unique", self.add("Round", x), axis=0)

    def of_open(self) -> None:
        if not self.open:
            return self.select()
        x, y = self.draw.choice(self.open), self.draw.choice(self.open)
        ways: list[Callable[[], str]] = [
            lambda: self.add("Concat", x, y, axis=0),
            lambda: self.add("Cos", x),
            lambda: self.add("Slice", x, self.constant([0]), self.constant([2])),
            lambda: self.add("Mul", x, self.add("Gather", self.draw.choice(self.fixed), self.constant([1]))),
            lambda: self.add("Reshape", self.add("Transpose", x), self.add("Shape", x), allowzero=1),
        ]
        self.open.append(self.draw.choice(ways)())

    def shrink(self) -> None:
        """A matrix of known sizes from rows of an open number."""
        if not self.open:
            return self.select()
        x, y = self.draw.choice(self.open), self.draw.choice(self.fixed)
        rows = self.add("Cast", self.add("Gather", self.add("Shape", x), self.constant(0)), to=1)
        total = self.add("ReduceSum", x, self.constant([0]))
        ways = [lambda: self.add("Add", y, total), lambda: self.add("Mul", y, rows)]
        self.fixed.append(self.draw.choice(ways)())


def check_drawn(seed: int) -> None:
    drawn = Drawn(seed)
    rng = np.random.default_rng(seed)
    results = [*dict.fromkeys([drawn.fixed[-1], *drawn.open[-2:]])]
    shapes = {"a": np.zeros((3, 4), np.float32), "b": np.zeros((3, 4), np.float32)}
    model = model_of([make_node("Identity", [x], [f"{x}_out"]) for x in results], shapes, [])
    model = model_of([*drawn.nodes, *model.graph.node], shapes, [f"{x}_out" for x in results])
    compiled, session = compile_onnx(model), prepare_inference_session(model)
    for _ in range(3):
        given = {name: (2 * rng.standard_normal((3, 4))).astype(np.float32) for name in shapes}
        expected = session.run(None, given)
        got = in_a_list(compiled(*map(torch.tensor, given.values())))
        for one, want in zip(got, expected, strict=True):
            torch.testing.assert_close(one, torch.tensor(want), rtol=1e-3, atol=1e-3, msg=lambda m: f"seed {seed}: {m}")


@pytest.mark.parametrize("seed", range(6))
def test_random_models(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HostFallbackWarning)
        check_drawn(seed)

"""ONNX models with functions, branches, loops and computed shapes: these are gone before torch-mlir sees the model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_programs import compared, model_of

from tt_torch.driver.onnx import compile_onnx
from tt_torch.errors import CompileError, UnsupportedOpError
from tt_torch.mlir import onnx_scans
from tt_torch.mlir.onnx import _prepared, _weights
from tt_torch.mlir.onnx_given import Given
from tt_torch.mlir.onnx_preparing import deciding_inputs, prepared
from tt_torch.onnx_compile import prepare_inference_session

node = helper.make_node
X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
ANY = helper.make_empty_tensor_value_info


def graph_of(nodes: list[onnx.NodeProto], inputs: list[str], outputs: list[str]) -> onnx.GraphProto:
    kinds = {"i": (TensorProto.INT64, [])} | dict.fromkeys(("going", "more", "on"), (TensorProto.BOOL, []))
    values = [helper.make_tensor_value_info(n, *kinds.get(n, (TensorProto.FLOAT, [3, 4]))) for n in inputs]
    results = [helper.make_tensor_value_info(n, *kinds.get(n, (TensorProto.FLOAT, None))) for n in outputs]
    return helper.make_graph(nodes, "body", values, results)


def value(name: str, array: object) -> onnx.NodeProto:
    return node("Constant", [], [name], value=numpy_helper.from_array(np.array(array)))


def test_operands_that_decide_shapes_are_given_as_constants() -> None:
    nodes = [
        node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "which"], ["size"]),
        node("Concat", ["size", "rest"], ["to"], axis=0), node("Reshape", ["x", "to"], ["r"]),
        node("CumSum", ["r", "axis"], ["c"], reverse=1), node("Range", ["a", "b", "d"], ["range"]),
        node("ReduceMax", ["x", "axes"], ["max"], keepdims=0), node("Neg", ["n"], ["minus"]),
    ]  # fmt: skip
    integers = {"which": [1], "rest": [-1], "axis": 1, "a": 7, "b": -2, "d": -3, "axes": [0, -1]}
    inputs = {"x": X, "n": np.array([5])} | {name: np.array(number) for name, number in integers.items()}
    results = ["c", "range", "max", "minus"]
    model = model_of(nodes, inputs, results)
    assert deciding_inputs(model) == list(integers)  # not x, of which only the shape is read, and not n
    compared(nodes, inputs, list(integers), results)
    with pytest.raises(UnsupportedOpError, match="the input 'which' decides a shape, an axis or a branch; give its"):
        compile_onnx(model)
    with pytest.raises(CompileError, match="no input 'where'; its inputs are x, n, which"):
        compile_onnx(model, constants={"where": torch.tensor(1)})


@pytest.mark.parametrize("rank", [2, 3])
def test_a_branch_that_a_shape_decides(rank: int) -> None:
    branches = {"then_branch": graph_of([node("Exp", ["x"], ["one"])], [], ["one"]),
                "else_branch": graph_of([node("Neg", ["x"], ["one"])], [], ["one"])}  # fmt: skip
    nodes = [node("Shape", ["x"], ["s"]), node("Size", ["s"], ["rank"]), value("three", 3),
             node("Equal", ["rank", "three"], ["is"]), node("If", ["is"], ["y"], **branches)]  # fmt: skip
    compared(nodes, {"x": X if rank == 3 else X[0]}, results=["y"])


@pytest.mark.parametrize(("count", "going"), [(3, True), (1, True), (0, True), (3, False)])
def test_loops_are_unrolled(count: int, going: bool) -> None:
    """The inner loop reads a value of the outer loop, and both loops use some of the same names."""
    inner = graph_of([node("Add", ["v", "k"], ["w"]), node("Identity", ["going"], ["more"])], ["i", "going", "v"],
                     ["more", "w"])  # fmt: skip
    body = [
        node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), node("Mul", ["f", "x"], ["k"]),
        value("two", 2), node("Loop", ["two", "", "s"], ["w2"], body=inner),
        node("Identity", ["going"], ["on"]), node("ReduceMean", ["w2"], ["mean"], keepdims=0),
    ]  # fmt: skip
    outer = graph_of(body, ["i", "going", "s"], ["on", "w2"] + ["mean"] * bool(count and going))
    outputs = ["y"] + ["means"] * bool(count and going)
    nodes = [value("n", count), value("c", going), node("Loop", ["n", "c", "x"], outputs, body=outer)]
    compared(nodes, {"x": X[0]}, results=outputs)


def test_a_loop_without_a_limit_ends_by_its_condition() -> None:
    body = graph_of([value("three", 3), node("Less", ["i", "three"], ["on"]), node("Add", ["v", "v"], ["w"])],
                    ["i", "going", "v"], ["on", "w"])  # fmt: skip
    compared([value("c", True), node("Loop", ["", "c", "x"], ["y"], body=body)], {"x": X[0]}, results=["y"])


def test_a_loop_whose_end_is_not_known_is_refused() -> None:
    body = graph_of([node("ReduceSum", ["v"], ["t"], keepdims=0), node("Cast", ["t"], ["on"], to=TensorProto.BOOL),
                     node("Neg", ["v"], ["w"])], ["i", "going", "v"], ["on", "w", "t"])  # fmt: skip
    nodes = [value("n", 3), value("c", True), node("Loop", ["n", "c", "x"], ["y", "all"], body=body)]
    with pytest.raises(UnsupportedOpError, match=r"^onnx\.Loop is not[\s\S]*its number of iterations must be known"):
        compile_onnx(model_of(nodes, {"x": X[0]}, ["y"]))


def scanning(**more: object) -> onnx.NodeProto:
    """Two states and two scanned values; the body also reads a value from outside of it."""
    inner = [
        node("Add", ["a", "u"], ["sum"]), node("Mul", ["b", "v"], ["part"]), node("Sub", ["part", "out"], ["left"]),
        node("Add", ["sum", "left"], ["row"]), node("Identity", ["u"], ["copy"]),
    ]  # fmt: skip
    body = graph_of(inner, ["a", "b", "u", "v"], ["sum", "left", "row", "copy"])
    return node("Scan", ["s", "t", "x", "y"], ["s2", "t2", "rows", "same"], body=body, num_scan_inputs=2, **more)


@pytest.mark.parametrize("turned", [False, True])
def test_scans_are_unrolled(turned: bool) -> None:
    """One scan is along other dimensions, and has one value and one result in the other direction."""
    rng = np.random.default_rng(4)
    more = {
        "scan_input_axes": [1, -1], "scan_input_directions": [0, 1],
        "scan_output_axes": [1, -1], "scan_output_directions": [1, 0],
    }  # fmt: skip
    inputs = {"x": X, "y": X[::-1].copy()}
    if turned:
        inputs = {"x": np.moveaxis(X, 0, 1).copy(), "y": np.moveaxis(X, 0, 2).copy()}
    inputs |= {name: rng.standard_normal((3, 4)).astype("float32") for name in ("s", "t", "out")}
    compared([scanning(**(more if turned else {}))], inputs)


def test_results_that_nobody_wants_may_be_left_out() -> None:
    """Two scans have no names for their first results. ONNX Runtime refuses these, so it runs a scan with all names."""
    scans = [scanning(), scanning()]
    for number, scan in enumerate(scans):
        scan.output[:] = ["", "", f"rows{number}", ""]
    inputs = {"x": X, "y": X[::-1].copy(), "s": X[0], "t": X[1], "out": X[1]}
    (expected,) = prepare_inference_session(model_of([scanning()], inputs, ["rows"])).run(None, inputs)
    for got in compile_onnx(model_of(scans, inputs, ["rows0", "rows1"]))(*map(torch.from_numpy, inputs.values())):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("lengths", "most", "refused"),
    [("", 50, ""), ("n", 50, "cannot be converted to opset 15"), ("", 49, "changes its inputs")],
)
def test_scans_of_opset_8_have_a_batch(monkeypatch: pytest.MonkeyPatch, lengths: str, most: int, refused: str) -> None:
    """Each of two members has its own state, and one of the scanned values is read backwards. ONNX's converter would
    take the first row of the batch away, so a scan that stays is refused."""
    inner = [value("two", np.float32(2)), node("Mul", ["u", "two"], ["v2"]), node("Sub", ["a", "v2"], ["left"]),
             node("Add", ["left", "v"], ["row"]), node("Add", ["row", "out"], ["sum"])]  # fmt: skip
    body = graph_of(inner, ["a", "u", "v"], ["sum", "row"])
    old = node("Scan", [lengths, "s", "x", "y"], ["s2", "rows"], body=body, num_scan_inputs=2, directions=[0, 1])
    x, y, s = np.random.default_rng(5).standard_normal((3, 2, 5, 3, 4)).astype("float32")
    inputs = {"s": s[:, 0], "x": x, "y": y, "out": X[0]} | ({"n": np.array([5, 5])} if lengths else {})
    monkeypatch.setattr(onnx_scans, "MOST_NODES", most)
    if not refused:
        return compared([old], inputs, opset=8)
    with pytest.raises(CompileError, match=refused):
        compile_onnx(model_of([old], inputs, ["s2", "rows"], opset=8))


def test_functions_of_the_model_and_of_onnx_are_expanded() -> None:
    own = helper.make_function("own", "twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])],
                               [helper.make_opsetid("", 21)])  # fmt: skip
    nodes = [node("twice", ["x"], ["y"], domain="own"), node("SoftmaxCrossEntropyLoss", ["y", "t"], ["loss"])]
    targets = torch.tensor([[1, 0, 2, 1], [0, 0, 1, 2]])
    model = model_of(nodes, {"x": X, "t": targets.numpy()}, ["loss"], functions=[own])
    loss = compile_onnx(model)(torch.from_numpy(X), targets)
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(torch.from_numpy(2 * X), targets))
    assert {one.op_type for one in prepared(model, {})[0].graph.node}.isdisjoint({"twice", "SoftmaxCrossEntropyLoss"})


def test_an_op_whose_operand_is_left_out_is_expanded() -> None:
    """Attention leaves out the mask, which comes before the past keys. FlexAttention has a graph of its own."""
    score = graph_of([node("Tanh", ["s"], ["t"])], [], ["t"])
    score.input.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, []))
    x = np.random.default_rng(1).standard_normal((4, 1, 2, 3, 4)).astype("float32")
    nodes = [
        node("Attention", ["q", "k", "v", "", "p", "p"], ["y"]),
        node("FlexAttention", ["q", "k", "v"], ["z"], domain="ai.onnx.preview", score_mod=score),
    ]
    compared(nodes, dict(zip("qkvp", x, strict=True)), opset=24, by_reference=True)


def test_an_op_with_an_initializer_or_a_default_is_expanded() -> None:
    nodes = [node("RMSNormalization", ["x", "scale"], ["y"]), node("Swish", ["x"], ["z"])]
    model = model_of(nodes, {"x": X}, ["y", "z"], opset=24)
    model.graph.initializer.append(numpy_helper.from_array(X[0, 0], "scale"))
    expected = ReferenceEvaluator(model).run(None, {"x": X})
    for got, want in zip(compile_onnx(model)(torch.from_numpy(X)), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)


def test_weights_and_large_values_are_no_constants() -> None:
    nodes = [node("Mul", ["w", "w"], ["y"]), value("n", [1 << 20]), node("ConstantOfShape", ["n"], ["large"])]
    model = model_of(nodes, {}, ["y", "large"])
    model.graph.initializer.append(numpy_helper.from_array(X[0], "w"))
    before = model.SerializeToString()
    weights = _weights(model.graph)
    copy, *_ = _prepared(model, weights, Given({}, {}, {}))
    kept = [one.op_type for one in copy.graph.node]
    assert model.SerializeToString() == before and list(weights) == ["w"]
    assert sorted(kept) == ["Constant", "ConstantOfShape", "Mul"]


def test_a_weight_is_no_constant_that_a_user_gives() -> None:
    model = model_of([node("Add", ["x", "w"], ["y"])], {"x": X, "w": X[0]}, ["y"])
    model.graph.initializer.append(numpy_helper.from_array(X[0], "w"))
    with pytest.raises(CompileError, match=r"has no input 'w'; its inputs are x$"):
        compile_onnx(model, constants={"w": torch.from_numpy(X[0])})


def test_an_old_model_is_upgraded() -> None:
    """The Softmax and the Hardmax of an old opset are over all dimensions from `axis` on."""
    compared([node("Softmax", ["x"], ["y"], axis=1), node("Hardmax", ["x"], ["z"])], {"x": X}, opset=11)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sizes_of_an_old_model(mode: str) -> None:
    """One dimension becomes larger and another one smaller. Upsample only makes them larger."""
    for op, opset, factors in (("Upsample", 9, [1, 1, 1.5, 2.6]), ("Resize", 10, [1, 1, 0.6, 1.3])):
        factor = numpy_helper.from_array(np.array(factors, "float32"))
        nodes = [node("Constant", [], ["s"], value=factor), node(op, ["x", "s"], ["y"], mode=mode)]
        compared(nodes, {"x": X[None]}, results=["y"], opset=opset)


def test_slopes_of_an_old_model() -> None:
    """The slopes are along dimension 1, even if the last dimension has the same size."""
    x, slopes = X[..., :3], np.array([0.5, 2, -1], "float32")
    model = model_of([node("PRelu", ["x", "s"], ["y"])], {"x": x, "s": slopes}, ["y"], opset=6)
    got = compile_onnx(model)(torch.from_numpy(x), torch.from_numpy(slopes))
    torch.testing.assert_close(got, torch.from_numpy(np.where(x < 0, x * slopes[:, None], x)))


def test_models_that_are_not_valid_are_compile_errors() -> None:
    bad = model_of([node("Relu", ["x"], ["y"])], {"x": X}, ["y"])
    bad.graph.node[0].input[0] = "nothing"
    with pytest.raises(
        CompileError, match="the ONNX model is not valid: Nodes in a graph must be topologically sorted"
    ):
        compile_onnx(bad)
    outside = [value("i", [9]), node("Shape", ["x"], ["s"]), node("Gather", ["s", "i"], ["y"])]
    with pytest.raises(UnsupportedOpError, match="reference evaluator cannot compute it: index 9 is out of bounds"):
        compile_onnx(model_of(outside, {"x": X}, ["y"]))
    wrong = model_of([node("MeanVarianceNormalization", ["x"], ["y"])], {"x": X}, ["y"])  # over dimensions 0, 2 and 3
    with pytest.raises(CompileError, match=r"torch-mlir cannot read the ONNX model: .*axis must be in"):
        compile_onnx(wrong)
    texts = model_of([node("Identity", ["x"], ["y"])], {"x": X}, ["y"])
    texts.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    with pytest.raises(CompileError, match="'x' of the ONNX model has the type string, which the device does not have"):
        compile_onnx(texts)


def test_a_triangle_of_nothing() -> None:
    """torch-mlir compares rows and columns, which are numbered from an empty range."""
    compared([value("k", 1), node("Trilu", ["x", "k"], ["y"])], {"x": np.zeros((0, 5), "int64")}, results=["y"])


def test_a_model_without_nodes_of_the_main_domain() -> None:
    x = np.array([[1, -2, 3]], "float32")
    model = model_of([helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml")], {"x": x}, ["y"])
    del model.opset_import[0]
    assert compile_onnx(model)(torch.from_numpy(x)).tolist() == [[1, 0, 1]]

"""ONNX models: on the device against ONNX Runtime, op by op, below the depth EXECUTE, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import tt_torch
from tt_torch.config import CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.onnx import identifiers
from tt_torch.errors import CompileError, InexactError, InputDtypeError, InputShapeError, UnsupportedOpError
from tt_torch.mlir.functions import main
from tt_torch.mlir.onnx import onnx_to_stablehlo
from tt_torch.onnx_compile import compile_onnx, prepare_inference_session, run_model_proto, torch_input_to_onnx
from tt_torch.tools.verify import verify_module

F32, I64, I32, BOOL, BF16 = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.BFLOAT16,
)  # fmt: skip
Shaped = tuple[str, int, Sequence[int | str]]  # name, element type, shape


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Shaped],
    outputs: Sequence[Shaped],
    weights: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    values = [[helper.make_tensor_value_info(*value) for value in side] for side in (inputs, outputs)]
    initializers = [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", *values, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.checker.check_model(made)
    return made


def one(
    op: str, shapes: Sequence[Sequence[int]], result: Shaped, kind: int = F32, **attributes: object
) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(shapes))]
    node = helper.make_node(op, names, [result[0]], **attributes)
    return model([node], [(name, kind, shape) for name, shape in zip(names, shapes, strict=True)], [result])


def mlp() -> onnx.ModelProto:
    """A layer whose weight is an argument of the program, and whose bias is a constant."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((3, 4), np.float32), "b": rng.standard_normal(4, np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["s"]),
        helper.make_node("Softmax", ["s"], ["o"]),
        helper.make_node("ArgMax", ["o"], ["i"], axis=1, keepdims=0),
    ]
    return model(nodes, [("x", F32, [2, 3])], [("o", F32, [2, 4]), ("i", I64, [2])], weights)


def convnet() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {
        "filter": rng.standard_normal((8, 3, 3, 3), np.float32) / 5,
        "scale": rng.uniform(0.5, 1.5, 8).astype(np.float32),
        "bias": rng.standard_normal(8, np.float32),
        "mean": rng.standard_normal(8, np.float32),
        "var": rng.uniform(0.5, 1.5, 8).astype(np.float32),
        "shape": np.array([2, -1]),
        "last": rng.standard_normal((5, 32), np.float32) / 5,
    }
    nodes = [
        helper.make_node("Conv", ["x", "filter"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "last"], ["o"], transB=1),
    ]
    return model(nodes, [("x", F32, [2, 3, 8, 8])], [("o", F32, [2, 5])], weights)


MODELS = {
    "abs": lambda: one("Abs", [[2, 3]], ("o", F32, [2, 3])),
    "add": lambda: one("Add", [[256, 256], [256, 256]], ("o", F32, [256, 256])),
    "concat": lambda: one("Concat", [[32, 32, 32], [32, 32, 64]], ("o", F32, [32, 32, 96]), axis=2),
    "div": lambda: one("Div", [[2, 2], [2, 2]], ("o", F32, [2, 2])),
    "exp": lambda: one("Exp", [[2, 2]], ("o", F32, [2, 2])),
    "matmul": lambda: one("MatMul", [[4, 32, 16], [16, 8]], ("o", F32, [4, 32, 8])),
    "gelu": lambda: one("Gelu", [[4, 8]], ("o", F32, [4, 8])),
    "layer norm": lambda: one("LayerNormalization", [[4, 8], [8], [8]], ("o", F32, [4, 8])),
    "transpose": lambda: one("Transpose", [[2, 3, 4]], ("o", F32, [4, 2, 3]), perm=[2, 0, 1]),
    "greater": lambda: one("Greater", [[4, 8], [4, 8]], ("o", BOOL, [4, 8])),
    "integers": lambda: one("Mul", [[4, 8], [8]], ("o", I64, [4, 8]), I64),
    "int32": lambda: one("Sub", [[4, 8], [8]], ("o", I32, [4, 8]), I32),
    "layer": mlp,
    "convolutions": convnet,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_device_computes_what_onnx_runtime_does(make):
    pccs, *_ = verify_module(make(), required_pcc=0.9999, required_atol=1e-3)
    assert pccs


W22 = np.array([[0.5, 2], [3, -1]], np.float32)
RELU = helper.make_node("Relu", ["x"], ["y"])
PRODUCT = helper.make_node("MatMul", ["x", "w"], ["y"])
X, Y = ("x", F32, [2, 2]), ("y", F32, [2, 2])
ODD = {
    "an input that is an output": lambda: model([RELU], [X], [Y, X]),
    "a weight that is an output": lambda: model([RELU], [X], [Y, ("w", F32, [2, 2])], {"w": W22}),
    "an input that nothing reads": lambda: model([RELU], [X, ("u", F32, [4])], [Y]),
    "a weight that nothing reads": lambda: model([RELU], [X], [Y], {"w": W22}),
    "a weight that is listed as an input": lambda: model([PRODUCT], [X, ("w", F32, [2, 2])], [Y], {"w": W22}),
    "a weight that is read twice": lambda: model(
        [PRODUCT, helper.make_node("MatMul", ["w", "y"], ["z"])], [X], [("z", F32, [2, 2])], {"w": W22}
    ),
    "scalars": lambda: one("Add", [[], []], ("o", F32, [])),
    "no inputs": lambda: model([helper.make_node("Add", ["w", "w"], ["y"])], [], [Y], {"w": W22}),
    "names that are no identifiers": lambda: model(
        [helper.make_node("Relu", ["in put:0"], ['o"ut/1'], name='a "b"/c:d')],
        [("in put:0", F32, [2])],
        [('o"ut/1', F32, [2])],
    ),
    "float16": lambda: model(
        [PRODUCT], [("x", TensorProto.FLOAT16, [2, 2])], [("y", TensorProto.FLOAT16, [2, 2])], {"w": W22.astype("f2")}
    ),
    "float64": lambda: model(
        [PRODUCT], [("x", TensorProto.DOUBLE, [2, 2])], [("y", TensorProto.DOUBLE, [2, 2])], {"w": W22.astype("f8")}
    ),
    "indices": lambda: model(
        [helper.make_node("Gather", ["w", "x"], ["y"])], [("x", I64, [5])], [("y", F32, [5, 4])],
        {"w": np.arange(4000, dtype=np.float32).reshape(1000, 4)},
    ),
    "a shape that is computed": lambda: model(
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Slice", ["s", "from", "to"], ["first"]),
            helper.make_node("Concat", ["first", "rest"], ["shape"], axis=0),
            helper.make_node("Reshape", ["x", "shape"], ["y"]),
        ],
        [("x", F32, [2, 3, 4])], [("y", F32, [2, 12])],
        {"from": np.array([0]), "to": np.array([1]), "rest": np.array([-1])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_an_odd_model(make):
    pccs, *_ = verify_module(make(), required_pcc=0.9999, required_atol=1e-3)
    assert pccs


def test_division_by_zero():
    made = one("Div", [[8], [8]], ("o", F32, [8]))
    values = [torch.tensor([1.0, -2, 3, 0, 5, 6, -7, 18]), torch.tensor([1.0, 0, 3, 0, -9, 10, -7, 12])]
    verify_module(made, values)


@pytest.mark.parametrize("batch", [1, 5])
def test_given_inputs_have_the_sizes_of_open_dimensions(batch):
    made = model([helper.make_node("MatMul", ["x", "y"], ["z"])], [("x", F32, ["n", 3]), ("y", F32, [3, "m"])], [])
    made.graph.output.extend([helper.make_tensor_value_info("z", F32, ["n", "m"])])
    pccs, *_ = verify_module(made, [torch.randn(batch, 3), torch.randn(3, 2 * batch)], required_atol=1e-3)
    assert pccs
    program = compile_onnx(made, shapes={"x": (batch, 3), "y": (3, 4)})
    assert program.inputs["x"][0] == (batch, 3)
    for inputs in ([torch.randn(2, 3)], [torch.randn(2, 4), torch.randn(3, 4)]):
        with pytest.raises((ValueError, CompileError), match=r"takes 2 inputs|has the shape"):
            verify_module(made, inputs)
    with pytest.raises(CompileError, match="dimension 0 of the ONNX input 'x' is 'n'"):
        verify_module(made)


def test_types_and_shapes_of_results_are_those_of_the_model():
    program = compile_onnx(mlp())
    assert program.inputs == {"x": ((2, 3), torch.float32)}
    probabilities, best = program(torch.randn(2, 3))
    assert (probabilities.dtype, best.dtype, best.shape) == (torch.float32, torch.int64, (2,))


def test_inputs_are_given_in_order_or_by_name():
    program = compile_onnx(one("Sub", [[4], [4]], ("o", F32, [4])))
    x, y = torch.randn(4), torch.randn(4)
    for results in (program(x, y), program(x, x1=y), program(x1=y, x0=x)):
        torch.testing.assert_close(results, [x - y])
    for arguments, names in (((x,), {}), ((x, y, x), {}), ((x, y), {"x1": y}), ((x,), {"x2": y})):
        with pytest.raises(TypeError, match="the inputs of this model are x0, x1"):
            program(*arguments, **names)
    with pytest.raises(InputShapeError):
        program(x, torch.randn(5))


def test_matrices_are_arguments_and_small_initializers_are_constants():
    module, weights = onnx_to_stablehlo(convnet(), CompilerConfig())
    assert {name: tuple(w.shape) for name, w in weights.items()} == {"filter": (8, 3, 3, 3), "last": (5, 32)}
    roles = [str(role["ttcore.argument_type"]) for role in main(module).attributes["arg_attrs"]]
    assert roles == ['"input"', '"parameter"', '"parameter"']


def test_large_constants_are_weights():
    """PaddlePaddle exports its weights as nodes. One of them is a result, too, and another one is read twice."""
    rng = np.random.default_rng(0)
    values = {"w": rng.standard_normal((3, 4), np.float32), "v": rng.standard_normal((4, 4), np.float32)}
    values["b"] = rng.standard_normal(4, np.float32)
    constants = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(x)) for n, x in values.items()]
    nodes = [*constants, helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["s"])]
    nodes += [helper.make_node("MatMul", ["s", "v"], ["t"]), helper.make_node("MatMul", ["t", "v"], ["y"])]
    made = model(nodes, [("x", F32, [2, 3])], [("y", F32, [2, 4]), ("w", F32, [3, 4])])
    compiled, x = tt_torch.compile_onnx(made), torch.randn(2, 3)
    for got, expected in zip(compiled(x), run_model_proto(made, x), strict=True):
        torch.testing.assert_close(got, torch.from_numpy(expected))
    assert sorted(compiled.state_dict()) == ["v", "w"]
    compiled.load_state_dict({"w": torch.zeros(3, 4), "v": torch.eye(4)})
    torch.testing.assert_close(compiled(x)[0], torch.from_numpy(values["b"]).expand(2, 4))


def test_the_model_is_not_changed():
    made = convnet()
    before = made.SerializeToString()
    compile_onnx(made)
    assert made.SerializeToString() == before


def test_a_wrong_result_is_an_assertion_error():
    wrong = torch.full((2, 3), float("nan"))
    with pytest.raises(AssertionError, match="Outputs differ"):
        verify_module(mlp(), [wrong], required_pcc=1.1)
    with pytest.raises(AssertionError, match="has its own input shapes"):
        verify_module(mlp(), input_shapes=[(2, 3)])


def of_another_domain(node: onnx.NodeProto) -> onnx.ModelProto:
    """A model of one node, which does not say an opset of ONNX itself."""
    values = [helper.make_tensor_value_info(name, F32, [2]) for name in ("x", "o")]
    graph = helper.make_graph([node], "g", *([v] for v in values))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, 1)])


def test_an_op_without_a_form_is_named():
    gradient = helper.make_node("Gradient", ["x"], ["o"], domain="ai.onnx.preview.training", xs=["x"], y="x")
    with pytest.raises(UnsupportedOpError, match=r"^onnx\.Gradient is not supported") as caught:
        compile_onnx(of_another_domain(gradient))
    assert caught.value.location == 'loc("Gradient_0: onnx.Gradient")'
    with pytest.raises(CompileError, match=r"^'x0' of the ONNX model has the type string, which the device does not"):
        compile_onnx(one("StringNormalizer", [[3]], ("o", TensorProto.STRING, [3]), TensorProto.STRING))
    scaler = helper.make_node("Scaler", ["x"], ["o"], domain="ai.onnx.ml")
    with pytest.raises(UnsupportedOpError, match=r"^onnx\.Scaler is not supported"):
        compile_onnx(of_another_domain(scaler))


def test_open_dimensions_are_named():
    made = model([helper.make_node("Relu", ["x"], ["o"])], [("x", F32, ["batch", 3])], [("o", F32, ["batch", 3])])
    with pytest.raises(CompileError, match="dimension 0 of the ONNX input 'x' is 'batch'"):
        compile_onnx(made)


def test_integers_beyond_32_bits():
    program = compile_onnx(MODELS["integers"]())
    ones, large = torch.ones(8, dtype=torch.int64), torch.full((4, 8), 2**31)
    with pytest.warns(ExactnessWarning, match=r"x0 \(torch.int64\) has values in"):
        (result,) = program(large, ones)
    assert torch.equal(result, large)
    with pytest.raises(InexactError, match=r"x0 \(torch.int64\) has values in"):
        compile_onnx(MODELS["integers"](), CompilerConfig(fallback="error"))(large, ones)
    (result,) = program(torch.full((4, 8), 2**31 - 1), ones)
    assert torch.equal(result, torch.full((4, 8), 2**31 - 1))
    (result,) = program(torch.full((4, 8), -(2**31)), ones)
    assert torch.equal(result, torch.full((4, 8), -(2**31)))


@pytest.mark.parametrize("depth", [CompileDepth.COMPILE_OP_BY_OP, CompileDepth.EXECUTE_OP_BY_OP])
def test_op_by_op(tmp_path: Path, depth: CompileDepth):
    config = CompilerConfig(compile_depth=depth, op_by_op_backend=OpByOpBackend.STABLEHLO)
    config.results_path, config.model_name, config.jobs = str(tmp_path), "mlp", 1
    program = compile_onnx(mlp(), config)
    x = torch.randn(2, 3)
    results = program(x)
    torch.testing.assert_close(results, [torch.from_numpy(v) for v in run_model_proto(mlp(), x)])
    (file,) = tmp_path.iterdir()
    ops = json.loads(file.read_bytes())["ops"].values()
    executed = depth == CompileDepth.EXECUTE_OP_BY_OP  # among others the reduction of ArgMax, with positions
    assert {op["compilation_status"] for op in ops} == {7 if executed else 6}
    assert {op["framework_op_name"] for op in ops} >= {"stablehlo.dot", "chlo.broadcast_add"}
    # On some processors, rounding leaves a correlation 1e-15 below 1.
    assert {round(op["pcc"], 12) if executed else op["pcc"] for op in ops} == {1.0 if executed else None}
    written = file.stat().st_mtime_ns
    program(x)
    assert file.stat().st_mtime_ns == written


@pytest.mark.parametrize("depth", [CompileDepth.STABLEHLO, CompileDepth.TTNN_IR])
def test_below_execute_onnx_runtime_computes(depth: CompileDepth, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tt_torch.onnx_compile.compile_to_model", None)
    program = compile_onnx(mlp(), CompilerConfig(compile_depth=depth))
    x = torch.randn(2, 3)
    torch.testing.assert_close(program(x), [torch.from_numpy(v) for v in run_model_proto(mlp(), x)])


def test_inputs_of_a_session():
    session = prepare_inference_session(one("Sub", [[4], [4]], ("o", F32, [4])))
    x, y = torch.randn(4), torch.randn(4, dtype=torch.bfloat16)
    for given in ([x, y], (x, y), {"x1": y, "x0": x}, {"a": x, "b": y}):
        feed = torch_input_to_onnx(session, given)
        assert np.array_equal(feed["x0"], x.numpy()) and np.array_equal(feed["x1"], y.float().numpy())
    with pytest.raises(ValueError, match=r"takes 2 inputs \(x0, x1\), not 1"):
        torch_input_to_onnx(session, x)
    for given in ({"x1": x, "b": y}, {"x0": x}, {"x0": x, "x1": y, "x2": x}):
        with pytest.raises(ValueError, match=r"takes inputs named x0, x1, not x\d"):
            torch_input_to_onnx(session, given)


def test_compiled_models_have_weights_by_name(tmp_path: Path):
    onnx.save(convnet(), tmp_path / "net.onnx")
    compiled = tt_torch.compile_onnx(tmp_path / "net.onnx")
    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(compiled(x), torch.from_numpy(run_model_proto(convnet(), x)[0]), rtol=1e-4, atol=1e-4)
    assert sorted(compiled.state_dict()) == ["filter", "last"]
    compiled.save(tmp_path / "net.ttpkg", weights=False)
    loaded = tt_torch.load(tmp_path / "net.ttpkg")
    loaded.load_state_dict({name: torch.zeros_like(weight) for name, weight in compiled.state_dict().items()})
    assert torch.equal(loaded(x), torch.zeros(2, 5))


def test_inputs_of_compiled_models_have_names():
    """Names that are not identifiers are changed, and still differ from all other names."""
    assert identifiers(["in put:0", "in_put_0", "1", "class", "é", "x"]) == [
        "in_put_0_",
        "in_put_0",
        "_1",
        "_class",
        "_",
        "x",
    ]
    kinds = [("a.b", F32, [2]), ("a_b", F32, [2])]
    node = helper.make_node("Sub", ["a.b", "a_b"], ["o"])
    compiled = tt_torch.compile_onnx(model([node], kinds, [("o", F32, [2]), ("a.b", F32, [2])]))
    x, y = torch.randn(2), torch.randn(2)
    difference, same = compiled(a_b=y, a_b_=x)
    assert torch.equal(difference, x - y) and torch.equal(same, x)
    with pytest.raises(InputDtypeError, match=r"a_b has the dtype torch\.float64"):
        compiled(x, y.double())

"""Open dimensions of ONNX models get their sizes by the argument `shapes`, and results from the nodes before them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from typer.testing import CliRunner

import tt_torch
from tt_torch.errors import CompileError, InputShapeError, UnsupportedOpError
from tt_torch.mlir import onnx_given
from tt_torch.onnx_compile import prepare_inference_session
from tt_torch.tools.cli import app

Dimension = int | str | None


def added(*shapes: Sequence[Dimension] | None) -> onnx.ModelProto:
    """A model that adds its inputs `x0`, `x1` and so on, which have these shapes. None is a shape that is not known."""
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, shapes, strict=True)
    ]
    node = helper.make_node("Sum", names, ["y"], name="sum")
    graph = helper.make_graph([node], "graph", inputs, [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (added(["batch", 3], [3]), {"x0": (2, 3)}),
        (added(["batch", None], ["batch", "width"]), {"x0": (2, 3), "x1": (2, 3)}),
        (added(["n", 3], ["n", 3], ["n", 1]), {"x1": (2, 3)}),  # the name binds the dimensions of the others
        (added([-1, 3]), {"x0": [2, 3]}),
        (added(["?", "?"], [3]), {"x0": (2, 3)}),  # exporters write this for a size without a name
        (added(None, [3]), {"x0": (2, 3)}),
        (added([2, 3]), {"x0": torch.Size([2, 3])}),
        (added(["n"]), {"x0": (0,)}),
        (added([]), {"x0": ()}),
    ],
)
def test_open_dimensions_are_given(model: onnx.ModelProto, shapes: dict[str, Sequence[int]]) -> None:
    before = model.SerializeToString()
    compiled = tt_torch.compile_onnx(model, shapes=shapes)
    inputs = [torch.randn(form.shape) for form in compiled.tensor_forms.values()]
    for value, name in zip(inputs, ("x0", "x1", "x2"), strict=False):
        assert tuple(value.shape) == tuple(shapes.get(name, value.shape))
    torch.testing.assert_close(compiled(*inputs), sum(inputs))
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("model", "shapes", "message"),
    [
        (added(["batch", 3]), {}, r"'x0' is 'batch'; give its shape, as in `shapes=\{'x0': \(2, 3\)\}`"),
        (added(["batch", 3]), {}, "or `tt-torch compile --shape 'x0=2,3'`"),
        (added([2, None]), {}, "dimension 1 of the ONNX input 'x0' is unknown"),
        (added([-1]), {}, "dimension 0 of the ONNX input 'x0' is unknown"),
        (added(None), {}, "the ONNX input 'x0' has no shape in the model"),
        (added(["n"], ["m"]), {"x0": (2,)}, "dimension 0 of the ONNX input 'x1' is 'm'"),
        (added([2]), {"z": (2,)}, "`shapes` has 'z', but the inputs without a value are x0"),
        (added(["n", 3]), {"x0": (2, 4)}, r"'x0' has the shape \['n', 3\]; `shapes` gives \(2, 4\)"),
        (added(["n", 3]), {"x0": (2,)}, r"'x0' has the shape \['n', 3\]; `shapes` gives \(2,\)"),
        (added([None]), {"x0": (-1,)}, r"'x0' has the shape \[\?\]; `shapes` gives \(-1,\)"),
        (added(["n", "n"]), {"x0": (2, 3)}, r"where 'n' is 2; `shapes` gives \(2, 3\)"),
        (added(["n"], ["n"]), {"x0": (2,), "x1": (3,)}, r"'x1' has the shape \['n'\], where 'n' is 2"),
    ],
)
def test_what_stays_open_or_contradicts_is_named(model: onnx.ModelProto, shapes: dict, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        tt_torch.compile_onnx(model, shapes=shapes)


@pytest.mark.parametrize(
    ("sizes", "value", "message"),
    [
        ([2, None], torch.ones(3, 1), r"'x0' has the shape \[2, \?\]; `constants` gives \(3, 1\)"),
        (["n"], torch.ones(1, 2), r"'x0' has the shape \['n'\]; `constants` gives \(1, 2\)"),
        ([2], torch.ones(2, dtype=torch.int64), "'x0' has the type float32; `constants` gives int64"),
    ],
)
def test_a_constant_of_another_form_is_refused(sizes: Sequence[Dimension], value: torch.Tensor, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        tt_torch.compile_onnx(added(sizes, [2]), constants={"x0": value})


def test_values_in_another_file(tmp_path: Path) -> None:
    """A path finds the file. A model without these values is refused with the reason."""
    model = added([2])
    model.graph.node[0].input.append("w")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2], "float32"), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    torch.testing.assert_close(tt_torch.compile_onnx(tmp_path / "m.onnx")(torch.ones(2)), torch.tensor([2.0, 3.0]))
    with pytest.raises(CompileError, match=r"the value 'w' lies in the file 'm\.data'; give the path"):
        tt_torch.compile_onnx(model)


@pytest.mark.parametrize("dims", [(2,), (2, 2)])  # a constant of the program, and a weight
@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("raw_data", b"abc", "buffer size must be"),
        ("raw_data", b"abcd", r"cannot reshape array of size 1 into shape \(2,"),
        ("dims", [-1, 2], r"its shape is \(-1, 2\)"),
        ("data_type", 99, "no data type has the number 99"),
    ],
)
@pytest.mark.parametrize("of_node", [False, True])
def test_values_that_cannot_be_read(
    dims: tuple[int, ...], field: str, given: object, message: str, of_node: bool
) -> None:
    value = onnx.numpy_helper.from_array(np.ones(dims, "float32"), "w")
    value.ClearField(field)
    value.MergeFrom(onnx.TensorProto(**{field: given}))
    model = added([2])
    model.graph.node[0].input.append("w")
    if of_node:
        value.ClearField("name")
        model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=value))
    else:
        model.graph.initializer.append(value)
    with pytest.raises(CompileError, match=f"the value 'w' of the ONNX model cannot be read: {message}"):
        tt_torch.compile_onnx(model)


def test_objects_of_a_wrong_kind() -> None:
    with pytest.raises(CompileError, match=r"expected an onnx\.ModelProto or the path .* of the type bytes"):
        tt_torch.compile_onnx(added([2]).SerializeToString())  # type: ignore[arg-type]
    wrong: list[tuple[dict[str, object], str]] = [
        ({"constants": [1]}, "`constants` must be a dict"),
        (
            {"constants": {"x0": 3.5}},
            "`constants` must have tensors with values; for 'x0' it has an object of the type float",
        ),
        ({"constants": {"x0": torch.ones(2, device="meta")}}, "for 'x0' it has a meta tensor"),
        ({"shapes": {"x0": 2}}, "`shapes` must have tuples of integers; for 'x0' it has 2"),
        ({"shapes": {"x0": ("n",)}}, r"for 'x0' it has \('n',\)"),
    ]
    for options, message in wrong:
        with pytest.raises(CompileError, match=message):
            tt_torch.compile_onnx(added([2]), **options)  # type: ignore[arg-type]
    compiled = tt_torch.compile_onnx(added([2], [2]), constants={"x0": torch.nn.Parameter(torch.ones(2))})
    assert compiled(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("declared", [[6], ["a", "b"], [1, 6], [7, 7], None])
def test_a_wrong_shape_of_a_result_is_not_believed(declared: Sequence[Dimension] | None) -> None:
    """The shape follows from the nodes. torch-mlir would take the declared shape of the result."""
    model = added([2, 3], [3])
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, declared))
    model.graph.node.append(helper.make_node("Transpose", ["y"], ["z"]))
    x, y = torch.randn(2, 3), torch.randn(3)
    torch.testing.assert_close(tt_torch.compile_onnx(model)(x, y), (x + y).T)


def test_a_node_that_onnx_does_not_define_is_named() -> None:
    """The error does not name the next node, whose operand has no type."""
    model = added([2, 3])
    model.opset_import.append(helper.make_opsetid("com.maker", 1))
    model.graph.node.insert(0, helper.make_node("Strange", ["x0"], ["s"], domain="com.maker", name="odd"))
    model.graph.node[1].input[:] = ["s"]
    with pytest.raises(
        UnsupportedOpError, match=r"(?s)^onnx\.Strange is not supported.*'odd'.*extension of 'com\.maker'"
    ):
        tt_torch.compile_onnx(model)


def test_the_command_takes_shapes(tmp_path: Path) -> None:
    onnx.save(added(["n", 3], ["n", "m"]), tmp_path / "sum.onnx")
    command = ["compile", str(tmp_path / "sum.onnx"), "-o", str(tmp_path / "sum.ttpkg")]
    result = CliRunner().invoke(app, [*command, "--shape", "x0=2,3", "--shape", "x1=2,1"])
    assert result.exit_code == 0, result.output
    x, y = torch.randn(2, 3), torch.randn(2, 1)
    torch.testing.assert_close(tt_torch.load(tmp_path / "sum.ttpkg")(x, y), x + y)
    for word, message in (
        ("x0=2,3", "dimension 1 of the ONNX input 'x1' is 'm'"),
        ("x0=2,x", "'x0=2,x' is no NAME=SIZE,SIZE,..."),
        ("x0=2,,3", "'x0=2,,3' is no NAME=SIZE,SIZE,..."),
        ("2,3", "'2,3' is no NAME=SIZE,SIZE,..."),
    ):
        result = CliRunner().invoke(app, [*command, "--shape", word])
        assert result.exit_code and message in result.stderr, result.output
    (tmp_path / "net.mlir").write_text("")
    result = CliRunner().invoke(app, ["compile", str(tmp_path / "net.mlir"), "--shape", "x=2"])
    assert result.exit_code == 2 and "only ONNX models" in result.stderr


def net(rows: Dimension, columns: Dimension) -> onnx.ModelProto:
    """A product with a weight, an input of which no size is open, and a sum over columns of open number."""
    nodes = [
        helper.make_node("MatMul", ["in put:0", "w"], ["m"]), helper.make_node("Add", ["m", "bias"], ["s"]),
        helper.make_node("Concat", ["s", "more"], ["both"], axis=1), helper.make_node("Softmax", ["both"], ["y"]),
    ]  # fmt: skip
    shapes = {"in put:0": [rows, 4], "bias": [3], "more": [rows, columns]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    w = onnx.numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 3)).astype("float32"), "w")
    graph = helper.make_graph(nodes, "net", inputs, [helper.make_empty_tensor_value_info("y")], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_a_program_for_each_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs share the weight, which is checked once. A package has all of them. Another size is an error."""
    model, checked = net("batch", "columns"), list[str]()
    monkeypatch.setattr(onnx_given, "_check_value", lambda name, value: checked.append(name))
    compiled = tt_torch.compile_onnx(model, sizes={"batch": (4, 1), "columns": [2, 5]})
    assert len(checked) == len(set(checked)) > 0
    compiled.save(tmp_path / "net.ttpkg")
    session = prepare_inference_session(model)
    for run in (compiled, tt_torch.load(tmp_path / "net.ttpkg")):
        for rows, columns in ((1, 2), (4, 2), (4, 5)):
            given = [torch.randn(rows, 4), torch.randn(3), torch.randn(rows, columns)]
            names = ("in put:0", "bias", "more")
            (expected,) = session.run(None, {name: x.numpy() for name, x in zip(names, given, strict=True)})
            torch.testing.assert_close(run(*given), torch.from_numpy(expected))
    assert sorted(compiled.state_dict()) == ["w"]
    compiled.load_state_dict({"w": torch.zeros(4, 3)})
    torch.testing.assert_close(compiled(torch.ones(1, 4), torch.zeros(3), torch.zeros(1, 2)), torch.full((1, 5), 0.2))
    with pytest.raises(InputShapeError, match=r"in_put_0 has the size 2 in dimension 0.*batch in 1, 4"):
        compiled(torch.ones(2, 4), torch.zeros(3), torch.zeros(2, 2))
    with pytest.raises(InputShapeError, match="more has the size 4 in dimension 0, but batch is 1 there"):
        compiled(torch.ones(1, 4), torch.zeros(3), torch.zeros(4, 2))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"rows": [1]}, "`sizes` has 'rows', but the open dimensions with a name are batch"),
        ({"batch": [1, 0]}, "`sizes` must have positive integers; for 'batch' it has"),
        ({"batch": 3}, "`sizes` must have lists of sizes; for 'batch' it has 3"),
        ({"batch": range(1, 40)}, "`sizes` asks for 39 programs; at most 32"),
        ([1], "`sizes` must be a dict"),
        ({"batch": [1, 2]}, "dimension 1 of the ONNX input 'more' is unknown; give its shape"),
    ],
)
def test_wrong_sizes(sizes: object, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        tt_torch.compile_onnx(net("batch", None), sizes=sizes)  # type: ignore[arg-type]


def test_sizes_and_shapes() -> None:
    """A dimension without a name gets its size by `shapes`, which must not contradict `sizes`."""
    with pytest.raises(CompileError, match="'batch' is 1; `shapes` gives"):
        tt_torch.compile_onnx(net("batch", None), sizes={"batch": [1, 2]}, shapes={"more": (2, 3)})

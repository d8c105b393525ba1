"""Loops and branches of ONNX models that depend on values: ONNX Runtime's results, in packages, too."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx_programs import compared, model_of

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.onnx import compile_onnx
from tt_torch.errors import InexactError, UnsupportedOpError

node, typed = helper.make_node, helper.make_tensor_value_info
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Carried = tuple[str, int, Sequence[int]]
X = np.array([1.5, -2.0, 0.5], "float32")


def value(name: str, array: object) -> onnx.NodeProto:
    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array)))


def body(nodes: Sequence[onnx.NodeProto], *carried: Carried, going: str = "going", suffix: str = "") -> onnx.GraphProto:
    """A body that takes the step `i`, `going` and the carried values, and gives `on` and, for `a`, `new a`."""
    inputs = [typed("i", I64, []), typed("going", BOOL, []), *(typed(*each) for each in carried)]
    results = [typed("on", BOOL, []), *(typed(f"new {name}", kind, shape) for name, kind, shape in carried)]
    nodes = [*nodes, node("Identity", [going], ["on"])]
    graph = helper.make_graph(nodes, "body", inputs, results)
    own = {v.name for v in (*inputs, *results)} | {name for one in nodes for name in one.output}
    for each in (*graph.input, *graph.output):
        each.name += suffix
    for one in graph.node:
        for names in (one.input, one.output):
            names[:] = [name + suffix if name in own else name for name in names]
    return graph


@pytest.mark.parametrize("steps", [0, 1, 3, 40])
def test_a_limit_and_a_condition(steps: int) -> None:
    """The loop doubles as long as the sum is below 100."""
    nodes = [value("limit", np.float32(100)), node("Add", ["a", "a"], ["new a"])]
    nodes += [node("ReduceSum", ["new a"], ["sum"], keepdims=0), node("Less", ["sum", "limit"], ["below"])]
    doubling = body(nodes, ("a", F32, [3]), going="below")
    inputs = {"m": np.array([steps]), "go": np.array(True), "x": X}
    compared([node("Loop", ["m", "go", "x"], ["y"], body=doubling)], inputs)
    compared([node("Loop", ["m", "go", "x"], ["y"], body=doubling)], inputs | {"go": np.array(False)})
    compared([node("Loop", ["", "", "x"], ["y"], body=doubling)], {"x": np.abs(X)})


def random_body(rng: random.Random, depth: int) -> onnx.GraphProto:
    """A few nodes on two carried values, the step, and values from outside. Some are loops again."""
    nodes, names = [node("Cast", ["i"], ["float i"], to=F32)], ["a", "b", "float i", "x", "w"]
    for k in range(rng.randint(1, 4)):
        op, name = rng.choice(["Add", "Sub", "Max", "Tanh", "MatMul", "Loop" if depth else "Neg"]), f"v{k}"
        if op == "Loop":
            inner = node(op, ["i", "", *rng.sample("ab", 2)], [name, f"other {name}"], body=random_body(rng, depth - 1))
            nodes.append(inner)
        elif op == "MatMul":
            nodes.append(node(op, [rng.choice("ab"), "w"], [name]))
        else:
            nodes.append(node(op, rng.choices(names, k=1 if op in ("Tanh", "Neg") else 2), [name]))
        names = [name] if op == "MatMul" else [name, *names]
        names += ["a", "b"]
    ends = [node("Tanh", [names[0]], ["t"]), node("Add", ["t", "x"], ["new a"]), node("Sub", ["b", "t"], ["c"])]
    ends.append(node("Sin", ["c"], ["new b"]))
    return body([*nodes, *ends], ("a", F32, [3, 3]), ("b", F32, [3, 3]), suffix=f"/{depth}")


@pytest.mark.parametrize("seed", range(6))
def test_random_loops(seed: int) -> None:
    """Loops in loops, which read values and weights from outside."""
    rng = random.Random(seed)
    w = np.random.default_rng(seed).standard_normal((3, 3)).astype("float32")
    nodes = [value("w", w / 2), node("Sin", ["x"], ["s"])]
    nodes += [node("Loop", ["m", "", "x", "s"], ["y", "z"], body=random_body(rng, 2)), node("Cos", ["y"], ["r"])]
    for steps in (0, 4):
        compared(nodes, {"m": np.array(steps), "x": w}, results=["y", "z", "r", "s"])


def test_a_package_has_the_loop(tmp_path: Path) -> None:
    """And its second form, for the call in which a node inside of it leaves 32 bits."""
    loop = node(
        "Loop", ["m", "", "x"], ["y"], body=body([node("Mul", ["a", "x"], ["new a"], "power")], ("a", I64, [2]))
    )
    compile_onnx(model_of([loop], {"m": np.array(1), "x": np.array([1, 2])}, ["y"])).save(tmp_path / "loop.ttpkg")
    loaded = tt_torch.load(tmp_path / "loop.ttpkg")
    assert loaded(torch.tensor(5), torch.tensor([9, -2])).tolist() == [9**6, 64]
    assert loaded(torch.tensor(9), torch.tensor([9, -2])).tolist() == [9**10, 1024]


def test_what_changes_is_refused() -> None:
    growing = body([node("Concat", ["a", "a"], ["new a"], axis=0)], ("a", F32, []))
    growing.input[2].type.tensor_type.shape.dim.add(dim_param="n")
    growing.output[1].type.tensor_type.shape.dim.add(dim_param="m")
    loop = node("Loop", ["m", "", "x"], ["y"], body=growing)
    with pytest.raises(
        UnsupportedOpError, match=r"Loop[\s\S]*makes tensor<6xf32> of tensor<3xf32>; the carried values"
    ):
        compile_onnx(model_of([loop], {"m": np.array(1), "x": X}, ["y"]))


def branch(nodes: Sequence[onnx.NodeProto], *results: Carried) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [typed(*each) for each in results])


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [[True], [False]])
def test_branches(outer: bool, inner: list[bool]) -> None:
    """One branch has branches of its own, and the other one has a loop that would not end in time if it ran. The
    branches give the same names."""
    result = ("q", F32, [3])
    then = branch([node("Add", ["x", "s"], ["q"])], result)
    choosing = branch(
        [node("If", ["d"], ["q"], then_branch=then, else_branch=branch([node("Neg", ["x"], ["q"])], result))], result
    )
    steps = body([node("Sub", ["a", "s"], ["new a"])], ("a", F32, [3]))
    looping = branch([node("Loop", ["m", "", "x"], ["q"], body=steps)], result)
    nodes = [node("Sin", ["x"], ["s"]), node("If", ["c"], ["y"], then_branch=choosing, else_branch=looping)]
    inputs = {"c": np.array(outer), "d": np.array(inner), "m": np.array(2**31 - 1 if outer else 3), "x": X}
    compared([*nodes, node("Exp", ["y"], ["r"])], inputs, results=["y", "r"])


def test_only_the_branch_that_runs_is_checked() -> None:
    kinds = ("v", I64, [2]), ("k", I64, [1])
    squares = branch([node("Mul", ["i", "i"], ["v"], "square"), value("k", [7])], *kinds)
    same = branch([node("Identity", ["i"], ["v"]), value("k", [8])], *kinds)
    choice = node("If", ["c"], ["y", "z"], then_branch=squares, else_branch=same)
    model = model_of([choice], {"c": np.array(True), "i": np.array([1, 2])}, ["y", "z"])
    compiled, large = compile_onnx(model, CompilerConfig(fallback="error")), torch.tensor([2**20, 5])
    assert [x.tolist() for x in compiled(torch.tensor(False), large)] == [[2**20, 5], [8]]
    with pytest.raises(InexactError, match="integers of the node square leave"):
        compiled(torch.tensor(True), large)
    with pytest.warns(ExactnessWarning, match="integers of the node square leave"):
        assert [x.tolist() for x in compile_onnx(model)(torch.tensor(True), large)] == [[2**40, 25], [7]]


def test_branches_of_other_shapes_are_refused() -> None:
    longer = branch([node("Concat", ["x", "x"], ["p"], axis=0)], ("p", F32, [6]))
    choice = node(
        "If", ["c"], ["y"], then_branch=longer, else_branch=branch([node("Neg", ["x"], ["q"])], ("q", F32, [3]))
    )
    with pytest.raises(UnsupportedOpError, match="the input 'c' decides a shape, an axis or a branch; give its value"):
        compile_onnx(model_of([choice], {"c": np.array(True), "x": X}, ["y"]))

"""64-bit integers of ONNX models: a call is right. Without the host, its error names the first node that leaves 32
bits."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_programs import model_of

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.onnx import compile_onnx
from tt_torch.dynamo.calls import require_in_32_bits
from tt_torch.errors import BinaryFormatError, InexactError
from tt_torch.runtime import default_device
from tt_torch.runtime._runtime import Package

RANGES = {"int64": (-(2**31), 2**31 - 1), "uint64": (0, 2**32 - 1)}
node = helper.make_node
HOSTLESS = CompilerConfig(fallback="error")


def _value(name: str, array: np.ndarray) -> onnx.NodeProto:
    return node("Constant", [], [name], value=numpy_helper.from_array(array))


def _programs(rng: random.Random, kind: str) -> tuple[list[onnx.NodeProto], list[str]]:
    """Six nodes, each of which reads earlier values of the shape (3,). All results are results of the model."""
    nodes, names = (
        [_value("axis", np.array([0])), _value("first", np.array(0)), _value("c", np.array([1, 5, 1 << 10], kind))],
        ["x", "y", "c"],
    )
    results = []
    for i in range(6):
        op = rng.choice(["Add", "Sub", "Mul", "Min", "ReduceSum", "CumSum", "MatMul", "Abs", "Div", "Concat"])
        name = f"r{i}"
        if op in ("ReduceSum", "CumSum"):
            nodes.append(node(op, [rng.choice(names), "first" if op == "CumSum" else "axis"], [name], name))
        elif op == "Abs":
            nodes.append(node(op, [rng.choice(names)], [name], name))
        elif op == "Concat":
            parts = [rng.choice(names) for _ in range(2)]
            nodes.append(node(op, parts, [name], name, axis=0))
        else:
            nodes.append(node(op, [rng.choice(names), "c" if op == "Div" else rng.choice(names)], [name], name))
        results.append(name)
        if op in ("Add", "Sub", "Mul", "Min", "CumSum", "Abs", "Div"):
            names.append(name)
    return nodes, results


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    kind = rng.choice(["int64", "uint64"])
    low, high = RANGES[kind]
    nodes, results = _programs(rng, kind)
    inputs = {name: np.zeros(3, kind) for name in "xy"}
    model = model_of(nodes, inputs, results)
    compiled, reference = compile_onnx(model, HOSTLESS), ReferenceEvaluator(model)
    for size in (3, 200, 2**15, 2**31 - 1):
        given = {name: np.array([rng.randint(max(low, -size), size) for _ in range(3)], kind) for name in "xy"}
        expected = dict(zip(results, reference.run(None, given), strict=True))
        left = [name for name in results if ((expected[name] < low) | (expected[name] > high)).any()]
        if left:
            with pytest.raises(InexactError, match=rf"64-bit integers of the node {left[0]} leave"):
                compiled(*map(torch.from_numpy, given.values()))
            continue
        for name, got in zip(results, compiled(*map(torch.from_numpy, given.values())), strict=True):
            np.testing.assert_array_equal(got.numpy(), expected[name], err_msg=name)


@pytest.mark.filterwarnings("ignore::tt_torch.driver.exact_runner.ExactnessWarning")
@pytest.mark.parametrize("seed", range(6, 12))
def test_random_programs_with_the_host(seed: int) -> None:
    rng = random.Random(seed)
    kind = rng.choice(["int64", "uint64"])
    nodes, results = _programs(rng, kind)
    model = model_of(nodes, {name: np.zeros(3, kind) for name in "xy"}, results)
    compiled, reference = compile_onnx(model), ReferenceEvaluator(model)
    for size in (3, 2**15, 2**31 - 1, 2**40, 2**62):
        drawn = [[rng.randint(-size if kind == "int64" else 0, size) for _ in range(3)] for _ in "xy"]
        given = {name: np.array(numbers, kind) for name, numbers in zip("xy", drawn, strict=True)}
        got = compiled(*map(torch.from_numpy, given.values()))
        for name, x, expected in zip(results, got, reference.run(None, given), strict=True):
            np.testing.assert_array_equal(x.numpy(), expected, err_msg=f"{name} of {drawn}")


def test_a_family_has_second_forms() -> None:
    """One for each member, with the present weights, also in a copy."""
    nodes = [node("Mul", ["i", "i"], ["square"], "square"), node("MatMul", ["x", "w"], ["y"])]
    model = model_of(nodes, {"i": np.zeros(2, "int64"), "x": np.zeros((9, 2), "float32")}, ["square", "y"])
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "n"
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((2, 3), "float32"), "w"))
    del model.graph.value_info[:]
    compiled, i = compile_onnx(model, sizes={"n": (1, 4)}), torch.tensor([2**20, 3])
    compiled.load_state_dict({"w": torch.ones(2, 3)})
    other = copy.deepcopy(compiled)
    other.load_state_dict({"w": torch.full((2, 3), 2.0)})
    for each, weight in ((compiled, 1.0), (other, 2.0)):
        for size in (1, 4):
            with pytest.warns(ExactnessWarning, match="integers of the node square leave"):
                squares, y = each(i, torch.ones(size, 2))
            assert squares.tolist() == [2**40, 9] and torch.equal(y, torch.full((size, 3), 2 * weight))


CAST = node("Cast", ["f"], ["y"], "cast", to=onnx.TensorProto.INT64)


def test_floats_become_integers() -> None:
    """No integer is defined for infinities and NaN."""
    model = model_of([CAST], {"f": np.zeros(3, "float32")}, ["y"])
    compiled = compile_onnx(model, HOSTLESS)
    assert compiled(torch.tensor([3.7, -(2.0**31), 2.0**31 - 128])).tolist() == [3, -(2**31), 2**31 - 128]
    compiled(torch.tensor([float("inf"), float("nan"), 1]))
    for number in (2.0**31, 3e9, -3e9, -(2.0**31) - 256, 1e18):
        with pytest.raises(InexactError, match="integers of the node cast leave"):
            compiled(torch.tensor([0, number, 0]))
    with pytest.warns(ExactnessWarning, match="integers of the node cast leave"):
        assert compile_onnx(model)(torch.tensor([2.5, 1e18, -3e9])).tolist() == [2, int(np.float32(1e18)), -(3 * 10**9)]


def test_only_low_bits_are_read() -> None:
    """A hash that becomes an int32 is right, however large its 64-bit numbers are."""
    x = np.array([3, 2**31 - 1, -7], "int64")
    nodes = [node("Mul", ["x", "x"], ["square"]), node("Add", ["square", "x"], ["sum"])]
    nodes.append(node("Cast", ["sum"], ["y"], to=onnx.TensorProto.INT32))
    result = compile_onnx(model_of(nodes, {"x": x}, ["y"]))(torch.from_numpy(x))
    np.testing.assert_array_equal(result.numpy(), (x * x + x).astype("int32"))


def test_indices_and_small_numbers_need_no_check() -> None:
    """An index that counts from the end, and sums of numbers that are known to be small."""
    nodes = [node("Gather", ["table", "i"], ["row"]), node("ArgMax", ["row"], ["place"], axis=1)]
    nodes += [node("Cast", ["b"], ["flags"], to=onnx.TensorProto.INT64), node("ReduceSum", ["flags"], ["count"])]
    inputs = {"table": np.ones((9, 4), "float32"), "i": np.zeros(3, "int64"), "b": np.zeros(50, bool)}
    assert not compile_onnx(model_of(nodes, inputs, ["row", "place", "count"]))._package.manifests[0].checks


def test_a_package_checks(tmp_path: Path) -> None:
    """In Python and in C++. Only Python has the host that computes the second form."""
    x = torch.tensor([3, 2**20])
    model = model_of([node("Mul", ["x", "x"], ["y"], "square")], {"x": x.numpy()}, ["y"])
    compile_onnx(model).save(tmp_path / "m.ttpkg")
    loaded = Package(str(tmp_path / "m.ttpkg"), default_device()._impl)
    result = torch.empty_like(x)
    loaded.run({"x": x // 64}, {"result": result})
    with pytest.raises(InexactError, match="integers of the node square leave"):
        loaded.run({"x": x}, {"result": result})
    with pytest.warns(ExactnessWarning, match="integers of the node square leave"):
        assert tt_torch.load(tmp_path / "m.ttpkg")(x).tolist() == [9, 2**40]
    assert result.tolist() == [0, 2**28]


@pytest.mark.parametrize("number", [torch.tensor(-1), torch.tensor(2), torch.ones(0)])
def test_a_number_that_no_node_has(number: torch.Tensor) -> None:
    """A changed file may give it."""
    with pytest.raises(BinaryFormatError, match="another result than the number of a node"):
        require_in_32_bits(number, "square")

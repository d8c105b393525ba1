"""The comparison with eager PyTorch, on backends that are right and on backends that are wrong."""

from __future__ import annotations

import os

import pytest
import torch

from tt_torch.errors import UnsupportedOpError
from tt_torch.records.summary import COMPILE_SECONDS, alone, slowness
from tt_torch.sweep import compare
from tt_torch.sweep.compare import check_model, check_sample

X = torch.tensor([1.0, -2.0, 3.0])


def add_one(x):
    return x + 1


def with_backend(monkeypatch, change):
    monkeypatch.setattr(compare, "compile_captured", lambda gm, *_: lambda *a: [change(r) for r in gm(*a)])


def test_the_record_of_a_match():
    record = check_sample(add_one, ((X,), {}))
    assert (record["verdict"], record["graphs"], record["host_ops"], record["static"]) == ("match", 1, [], True)


@pytest.mark.parametrize(("seconds", "slow"), [(COMPILE_SECONDS, False), (COMPILE_SECONDS + 0.1, True)])
def test_the_processor_time_of_a_compilation_is_recorded(monkeypatch, seconds, slow):
    """The clock of this test moves only while the program is compiled."""
    now, compiler = [100.0], compare.compile_captured

    def slow_compiler(*arguments):
        now[0] += seconds
        return compiler(*arguments)

    monkeypatch.setattr(compare, "_cpu_seconds", lambda: now[0])
    monkeypatch.setattr(compare, "compile_captured", slow_compiler)
    record = {"kind": "op", **check_sample(add_one, ((X,), {}))}
    assert (record["verdict"], record["cpu_seconds"]) == ("match", seconds)
    assert bool(slowness(record)) == slow
    assert not slowness(record | {"kind": "model"})


def test_the_processor_time_of_a_child_counts():
    """The passes of torch-mlir run in a forked child."""
    begin = compare._cpu_seconds()
    if (child := os.fork()) == 0:
        end = os.times().user + 0.2
        while os.times().user < end:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    assert compare._cpu_seconds() - begin >= 0.19


@pytest.mark.parametrize(
    "change",
    [lambda r: r * 1.001, torch.Tensor.double, lambda r: r[None], lambda r: r.clone().fill_(float("nan"))],
    ids=["value", "dtype", "shape", "nan"],
)
def test_a_wrong_result_is_seen(monkeypatch, change):
    with_backend(monkeypatch, change)
    assert check_sample(add_one, ((X,), {}))["verdict"] == "wrong"


@pytest.mark.parametrize(("error", "verdict"), [(1.0, "match"), (1.03, "wrong")])
def test_a_result_that_rounds_less_than_eager(monkeypatch, error, verdict):
    """Eager PyTorch rounds this sum to bfloat16 at each step. A result near the float64 sum is right, too."""

    def steps(x):
        for _ in range(200):
            x = x + 0.01
        return x

    monkeypatch.setattr(
        compare, "compile_captured", lambda gm, *_: lambda x: [(x.double() + 2.0).mul(error).bfloat16()]
    )
    assert check_sample(steps, ((X.bfloat16(),), {}))["verdict"] == verdict


@pytest.mark.parametrize(
    ("positions", "verdict"), [([2, 0], "match"), ([0, 2], "match"), ([0, 0], "wrong"), ([0, 1], "wrong")]
)
def test_any_of_equal_values_is_the_largest(monkeypatch, positions, verdict):
    results = [torch.tensor([7, 7]), torch.tensor(positions)]
    monkeypatch.setattr(compare, "compile_captured", lambda *_: lambda *a: results)
    assert check_sample(lambda x: torch.topk(x, 2), ((torch.tensor([7, 3, 7]),), {}))["verdict"] == verdict


def test_float64_is_computed_in_float32(monkeypatch):
    with_backend(monkeypatch, lambda r: r.float().double())
    assert check_sample(lambda x: x.double() / 3, ((X,), {}))["verdict"] == "match"


def test_a_wrong_write_to_an_argument_is_seen(monkeypatch):
    monkeypatch.setattr(compare, "compile_captured", lambda gm, *_: lambda *a: [a[0]])
    assert check_sample(lambda x: x.add_(1), ((X,), {}))["verdict"] == "wrong"


def test_sparse_arguments():
    sparse = torch.eye(3).to_sparse_csr()
    assert check_sample(lambda m, x: m @ x, ((sparse, torch.randn(3, 2)), {}))["verdict"] == "match"


def test_only_the_compiled_program_raises(monkeypatch):
    def refuse(*_):
        raise UnsupportedOpError("aten.add", "nowhere", "line 1")

    monkeypatch.setattr(compare, "compile_captured", refuse)
    record = check_sample(add_one, ((X,), {}))
    assert (record["verdict"], record["error"]) == ("error", "UnsupportedOpError")
    assert record["message"] == "aten.add is not supported in stage nowhere"


def test_the_exception_of_eager_must_be_raised(monkeypatch):
    def reshape(x):
        return x.reshape(2, 2)

    record = check_sample(reshape, ((X,), {}))
    assert (record["verdict"], record["error"]) == ("eager-raises-same", "RuntimeError")
    assert record["message"].startswith("shape '[2, 2]' is invalid for input of size")


def test_random_results_agree_in_distribution(monkeypatch):
    monkeypatch.setattr(compare, "compile_captured", lambda gm, *_: lambda *a: [torch.rand(100)])
    assert check_sample(lambda x: torch.rand(100) + 0 * x.sum(), ((X,), {}))["verdict"] == "match"
    with_backend(monkeypatch, lambda r: r * 0.5)
    assert check_sample(lambda x: torch.rand(100) + 0 * x.sum(), ((X,), {}))["verdict"] == "wrong"


def test_uninitialized_results_agree_in_shape_and_dtype(monkeypatch):
    with_backend(monkeypatch, lambda r: r * 2)
    assert check_sample(add_one, ((X,), {}), initialized=False)["verdict"] == "match"
    with_backend(monkeypatch, lambda r: r.half())
    assert check_sample(add_one, ((X,), {}), initialized=False)["verdict"] == "wrong"


def test_code_that_dynamo_leaves_to_python_is_on_the_host():
    record = check_sample(lambda x: x.nonzero() + 1, ((X,), {}))
    assert record["verdict"] == "match" and record["graph_breaks"] and not record["static"]
    skipped = torch.compiler.disable(add_one)
    record = check_sample(lambda x: skipped(x), ((X,), {}))
    (reason,) = record["graph_breaks"]
    assert "torch.compiler.disable" in reason and not record["host_ops"]
    assert record["between_graphs"]["aten::add"] == 1 and not alone(record)


def test_a_number_that_is_read_between_graphs_computes_nothing_there():
    record = check_sample(lambda x: x * 2 if (x + 1).sum().item() > 0 else x * 3, ((X,), {}))
    assert record["graph_breaks"] and record["graphs"] == 2
    assert record["between_graphs"] == {} and alone(record)


class HalfOnTheHost(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.eigvalsh(x @ x).exp() + 1


def test_the_device_parts_of_a_model_with_ops_on_the_host_are_counted():
    record = check_model(HalfOnTheHost(), ((), {"x": torch.eye(3)}))
    assert (record["verdict"], record["depth"]) == ("match", "PASSED")
    assert record["aten_ops"]["aten.mm.default"] == record["aten_ops"]["aten._linalg_eigh.default"] == 1
    assert [op["op"] for op in record["host_ops"]] == ["aten._linalg_eigh.default"]
    assert {"MatmulOp", "EltwiseUnaryOp.Exp"} <= set(record["device_ops"]) and record["binary_bytes"] > 1000
    assert record["stages"]["flatbuffer"] > 0


def test_the_stages_that_a_failing_model_reached_are_noted(monkeypatch):
    def refuse(*_):
        raise UnsupportedOpError("ttnn.relu", "flatbuffer", "line 1")

    noted = []
    monkeypatch.setattr(compare.engine, "note", lambda **values: noted.append(values["depth"]))
    monkeypatch.setattr("tt_torch.driver.compile.translate", refuse)
    monkeypatch.setenv("TT_TORCH_FALLBACK", "error")
    record = check_model(torch.nn.ReLU(), ((), {"input": X}))
    assert record["verdict"] == "error" and "depth" not in record  # the worker adds the noted depth to its record
    assert noted == ["FAILED_FE", "TORCH_FX", "STABLEHLO", "TTIR"]

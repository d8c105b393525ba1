"""Programs with loops on values, and with ops of the host, against StableHLO's interpreter and PyTorch."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from flow_programs import Writer
from typer.testing import CliRunner

import tt_torch
from tt_torch import runtime
from tt_torch.bringup.interpret import evaluate
from tt_torch.driver import host_functions
from tt_torch.driver.flow_runner import FlowRunner
from tt_torch.driver.package import contents
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.driver.package.manifest import FLOW_FORMAT
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import InexactError, KernelError, PackageError, PackagingError, UnsupportedOpError
from tt_torch.flow import Branch, Flow, HostCall, Loop
from tt_torch.mlir.stablehlo import host_calls
from tt_torch.tools.cli import app

# Doubles both values until the first one is 100, and counts the steps. %w is read inside, and does not change.
DOUBLING = """
func.func @main(%x: tensor<f32>, %y: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %limit = stablehlo.constant dense<100.0> : tensor<f32>
  %0:4 = stablehlo.while(%a = %x, %b = %y, %c = %zero, %v = %w)
      : tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare LT, %a, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %c, %one : tensor<i32>
    %a2 = stablehlo.add %a, %a : tensor<f32>
    %b2 = stablehlo.multiply %b, %v : tensor<4xf32>
    stablehlo.return %a2, %b2, %n, %v : tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>
  }
  %sum = stablehlo.add %0#1, %0#3 : tensor<4xf32>
  return %0#0, %sum, %0#2 : tensor<f32>, tensor<4xf32>, tensor<i32>
}"""
QR = """
func.func @main(%x: tensor<3x4x4xf32>) -> (tensor<3x4x4xf32>, tensor<3x4xf32>) {
  %y = stablehlo.add %x, %x : tensor<3x4x4xf32>
  %0:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%y) {mhlo.backend_config = {}}
      : (tensor<3x4x4xf32>) -> (tensor<3x4x4xf32>, tensor<3x4xf32>)
  %z = stablehlo.negate %0#0 : tensor<3x4x4xf32>
  return %z, %0#1 : tensor<3x4x4xf32>, tensor<3x4xf32>
}"""


@pytest.fixture(scope="module")
def doubling() -> LoadedModel:
    return tt_torch.compile_stablehlo(DOUBLING)


def allocated() -> int:
    return runtime.default_device().memory_stats()["dram"]["allocated"]


def expected(x: float, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    steps = 0
    while x < 100:
        x, y, steps = x * 2, y * w, steps + 1
    return torch.tensor(x), y + w, torch.tensor(steps, dtype=torch.int32)


def test_a_loop_on_a_value(doubling: LoadedModel) -> None:
    y, w = torch.rand(4) + 1, torch.rand(4) + 1
    for x in (3.0, 99.5, 200.0, float("nan")):
        torch.testing.assert_close(doubling(torch.tensor(x), y, w), expected(x, y, w), equal_nan=True)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In half of the programs, the host computes sines."""
    if seed % 2:
        monkeypatch.setitem(host_calls.LARGE, "stablehlo.sine", lambda op: ("sine", {}))
        monkeypatch.setitem(host_functions.FUNCTIONS, "sine", lambda x: (x.sin(),))
    check(seed)


def check(seed: int) -> None:
    text = Writer(seed).program()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HostFallbackWarning)
        model = tt_torch.compile_stablehlo(text)
    torch.manual_seed(seed)
    for _ in range(2):
        inputs = [torch.randn(4), torch.randn(4), *(torch.randint(-4, 9, (), dtype=torch.int32) for _ in range(2))]
        for got, wanted in zip(model(*inputs), evaluate(text, inputs), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5, msg=lambda said: f"{said}\n{text}")


def test_results_have_memory_of_their_own(doubling: LoadedModel) -> None:
    """A loop without a step gives its operands."""
    x, y, w = torch.tensor(200.0), torch.rand(4), torch.rand(4)
    first, *_ = doubling(x, y, w)
    first.zero_()
    assert x == 200
    text = DOUBLING.replace("%sum = stablehlo.add %0#1, %0#3 : tensor<4xf32>\n", "").replace("%sum", "%0#1")
    text = text.replace("return %0#0, %0#1, %0#2 :", "return %0#0, %0#1, %0#2, %0#1, %0#3 :")
    text = text.replace("tensor<i32>) {", "tensor<i32>, tensor<4xf32>, tensor<4xf32>) {", 1)
    text = text.replace("tensor<4xf32>, tensor<i32>\n}", "tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>\n}")
    for start in (3.0, 200.0):
        results = tt_torch.compile_stablehlo(text)(torch.tensor(start), y, w)
        assert len({part.data_ptr() for part in (*results, y, w)}) == 7


def test_it_is_saved_copied_and_loaded(doubling: LoadedModel, tmp_path: Path) -> None:
    inputs = torch.tensor(3.0), torch.rand(4), torch.rand(4)
    doubling.save(tmp_path / "a.ttpkg")
    for model in (tt_torch.load(tmp_path / "a.ttpkg"), copy.deepcopy(doubling), pickle.loads(pickle.dumps(doubling))):
        torch.testing.assert_close(model(*inputs), expected(3.0, *inputs[1:]))
    with pytest.raises(PackagingError, match="several programs"):
        doubling.save(tmp_path / "a.ttnn")
    assert not (tmp_path / "a.ttnn").exists()


def test_commands_show_the_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.mlir").write_text(DOUBLING)
    compiled = CliRunner().invoke(app, ["compile", "a.mlir"])
    assert compiled.exit_code == 0 and "device ops per run of each of the 4 programs" in compiled.output
    shown = CliRunner().invoke(app, ["inspect", "a.ttpkg"]).output
    assert "[4, 5, 6] = a loop of [0, 1, 3, 2]\n    while:\n      [4] = program part1 of [0]\n" in shown
    refused = CliRunner().invoke(app, ["compile", "a.mlir", "-o", "a.ttnn"])
    assert refused.exit_code == 1 and "several programs" in refused.stderr and "Traceback" not in refused.output


def test_values_stay_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a step of the loop, only the condition comes to the host. Nothing stays in device memory."""
    model = tt_torch.compile_stablehlo(DOUBLING)
    crossed = []
    original = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda x: crossed.append(tuple(x.shape)) or original(x))
    inputs = torch.tensor(1e-3), torch.ones(4), torch.ones(4)
    model(*inputs)
    before = allocated()
    assert model(*inputs)[2] == 17
    # Only the first and the last result stay in this list: others are CPU tensors for `.cpu` and cost nothing.
    assert len(crossed) == 2 * 3
    assert allocated() == before


def test_the_host_computes_what_the_device_cannot() -> None:
    with pytest.warns(HostFallbackWarning) as caught:
        model = tt_torch.compile_stablehlo(QR)
    (op,) = caught[0].message.ops
    assert (op.op, op.count, op.bytes) == ("qr", 1, 4 * (2 * 48 + 12))
    x = torch.randn(3, 4, 4)
    r, factors = torch.geqrf(x + x)
    torch.testing.assert_close(model(x), (-r, factors))
    with pytest.raises(UnsupportedOpError, match="TTNN has no op"):
        tt_torch.compile_stablehlo(QR, tt_torch.CompilerConfig(fallback="error"))


def test_a_matrix_for_which_lapack_gives_up() -> None:
    good = torch.eye(3)
    bad = good.clone()
    bad[0, 0] = torch.nan
    vectors, values, info = host_functions.FUNCTIONS["eigh"](torch.stack([good, bad]), upper=False)
    assert info.tolist() == [0, 1] and values[0].tolist() == [1, 1, 1]
    assert values[1].isnan().all() and vectors[1].isnan().all()
    assert [x.shape[0] for x in host_functions.FUNCTIONS["svd"](torch.ones(0, 3, 2), full=True)] == [0] * 5


@pytest.mark.parametrize("name", ["potrf", "syevd", "heevd"])
@pytest.mark.parametrize("triangle", ["U", "L"])
def test_lapack_reads_one_triangle(name: str, triangle: str) -> None:
    torch.manual_seed(0)
    noise = torch.randn(4, 4, dtype=torch.complex128 if name == "heevd" else torch.float64)
    whole = noise @ noise.mH + torch.eye(4)
    upper = triangle == "U"
    given = whole.triu() + noise.tril(-1) if upper else whole.tril() + noise.triu(1)
    op, options = host_calls.LAPACK[name]({"uplo": triangle})
    first, *_ = host_functions.FUNCTIONS[op](given, **options)
    if name == "potrf":
        factor = first.triu().mH if upper else first.tril()
        torch.testing.assert_close(factor @ factor.mH, whole)
    else:
        values = torch.linalg.eigvalsh(whole)
        torch.testing.assert_close(first.mH @ whole @ first, torch.diag(values).to(whole.dtype))


@pytest.mark.parametrize("name", ["eigh", "svd", "eig"])
def test_matrices_without_elements(name: str) -> None:
    options = {"eigh": {"upper": True}, "svd": {"full": True}, "eig": {}}[name]
    for shape in (0, 0), (2, 0, 0):
        results = host_functions.FUNCTIONS[name](torch.empty(shape), **options)
        assert all(x.numel() == 0 for x in results[:-1])
        assert results[-1].tolist() == ([0, 0] if len(shape) == 3 else 0)


def test_an_untaken_branch_does_not_run() -> None:
    """The loop in the branch for false would not end."""
    model = tt_torch.compile_stablehlo("""
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "stablehlo.if"(%p) ({
        %y = stablehlo.negate %x : tensor<2xf32>
        stablehlo.return %y : tensor<2xf32>
      }, {
        %r:2 = stablehlo.while(%q = %p, %v = %x) : tensor<i1>, tensor<2xf32>
          cond { %n = stablehlo.not %q : tensor<i1> stablehlo.return %n : tensor<i1> }
          do { stablehlo.return %q, %v : tensor<i1>, tensor<2xf32> }
        stablehlo.return %r#1 : tensor<2xf32>
      }) : (tensor<i1>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert model(torch.tensor(True), torch.ones(2)).tolist() == [-1, -1]


def test_the_host_computes_nothing_of_an_untaken_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(HostFallbackWarning, match="qr"):
        model = tt_torch.compile_stablehlo("""
        func.func @main(%p: tensor<i1>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
          %0 = "stablehlo.if"(%p) ({
            %y = stablehlo.negate %x : tensor<4x4xf32>
            stablehlo.return %y : tensor<4x4xf32>
          }, {
            %z = stablehlo.add %x, %x : tensor<4x4xf32>
            %r:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%z) {mhlo.backend_config = {}}
                : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
            stablehlo.return %r#0 : tensor<4x4xf32>
          }) : (tensor<i1>) -> tensor<4x4xf32>
          return %0 : tensor<4x4xf32>
        }""")
    calls, qr, x = [], host_functions.FUNCTIONS["qr"], torch.randn(4, 4)
    monkeypatch.setitem(host_functions.FUNCTIONS, "qr", lambda *args: calls.append(args) or qr(*args))
    assert torch.equal(model(torch.tensor(True), x), -x) and not calls
    torch.testing.assert_close(model(torch.tensor(False), x), torch.geqrf(x + x)[0])
    assert len(calls) == 1


def test_a_loop_that_is_too_long_to_be_unrolled() -> None:
    model = tt_torch.compile_stablehlo("""
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %many = stablehlo.constant dense<5000> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2xf32>
        cond { %p = stablehlo.compare LT, %i, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %p : tensor<i1> }
        do { %n = stablehlo.add %i, %one : tensor<i32>
             %w = stablehlo.negate %v : tensor<2xf32>
             stablehlo.return %n, %w : tensor<i32>, tensor<2xf32> }
      return %r#1, %x : tensor<2xf32>, tensor<2xf32>
    }""")
    x = torch.tensor([1.0, -2.0])
    result, same = model(x)
    assert torch.equal(result, x) and torch.equal(same, x)
    assert same.data_ptr() != x.data_ptr()  # a write to the result does not reach the input


def test_limits_of_inputs_hold(doubling: LoadedModel) -> None:
    model = tt_torch.compile_stablehlo(DOUBLING.replace("f32", "f64"))
    x = torch.ones(4, dtype=torch.float64)
    assert model(torch.tensor(3.0, dtype=torch.float64), x, x)[2] == 6
    with pytest.raises(InexactError):
        model(torch.tensor(3.0, dtype=torch.float64), x * 1e300, x)


DAMAGES: dict[str, Callable[[Any], object]] = {
    "an unknown value": lambda flow: flow["steps"][0]["inputs"].append(99),
    "a negative value": lambda flow: flow["steps"][-1]["inputs"].__setitem__(0, -1),
    "an unknown program": lambda flow: flow["steps"][0].update(program="no"),
    "another number of results": lambda flow: flow["steps"][0].update(results=7),
    "an unknown result": lambda flow: flow["results"].__setitem__(0, 99),
    "a fraction": lambda flow: flow["results"].__setitem__(0, 0.5),
    "no steps": lambda flow: flow.pop("steps"),
    "a loop without an end": lambda flow: loop(flow).update(condition=None),
    "a loop that changes one value twice": lambda flow: loop(flow)["changed"].__setitem__(0, loop(flow)["changed"][1]),
    "a body for other values": lambda flow: loop(flow)["body"].update(inputs=1),
    "a condition for other values": lambda flow: loop(flow)["condition"].update(results=[0, 0]),
    "an unknown op": lambda flow: flow["steps"].insert(0, HOST | {"op": "os.system"}),
    "an unknown option": lambda flow: flow["steps"].insert(0, HOST | {"options": {"out": 3}}),
    "steps in steps": lambda flow: flow.update(steps={"inputs": []}),
    "branches of different forms": lambda flow: flow["steps"].insert(0, {"inputs": [0], "branches": []}),
}
HOST: dict[str, Any] = {"op": "lu", "options": {}, "inputs": [0], "results": 3, "complex_inputs": []}
HOST |= {"location": "", "reason": "", "bytes": 0}


def loop(flow: Any) -> Any:
    return next(step for step in flow["steps"] if "body" in step)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_flow_is_an_error(damage: str, doubling: LoadedModel) -> None:
    package = doubling._package
    data = json.loads(json.dumps(contents.as_json(package)))
    assert data["format"] == FLOW_FORMAT
    DAMAGES[damage](data["manifest"]["flow"])
    tensors = dict(package.tensors)
    with pytest.raises(PackageError, match="malformed manifest"):
        contents._package("x", contents.sealed(data, tensors), tensors)


def test_what_the_host_cannot_compute_is_an_error() -> None:
    square = HostCall("lu", {}, [0], 3, [], "model.py:7", "", 0)
    with pytest.raises(KernelError, match=r"lu at model\.py:7 failed on the host"):
        FlowRunner(Flow(1, [square], [1]), {})([torch.ones(3)])
    with pytest.raises(KernelError, match="failed on the host"):
        FlowRunner(Flow(1, [replace(square, complex_inputs=[5])], [1]), {})([torch.ones(3, 3)])
    with pytest.raises(PackageError, match="has 2 results, and it has 3"):
        FlowRunner(Flow(1, [replace(square, results=2)], [1]), {})([torch.ones(3, 3)])
    same = Flow(1, [], [0])
    for flow in Flow(1, [Loop([0], same, same, [0])], [1]), Flow(2, [Branch([0, 1], [same])], [2]):
        with pytest.raises(PackageError, match="it must have one element"):
            FlowRunner(flow, {})([torch.ones(3)] * flow.inputs)


def test_an_exception_in_a_step_frees_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        raise KeyboardInterrupt

    with pytest.warns(HostFallbackWarning):
        model = tt_torch.compile_stablehlo(QR)
    x = torch.randn(3, 4, 4)
    model(x)
    before = allocated()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setitem(host_functions.FUNCTIONS, "qr", fails)
        model(x)
    assert allocated() == before
    torch.testing.assert_close(model(x)[1], torch.geqrf(x + x)[1])

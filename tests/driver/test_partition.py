"""Graphs with ops that run on the host: their results, the warnings, and the subgraphs that stay on the device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver import partition
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.calls import in_strides
from tt_torch.errors import UnsupportedOpError

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))


def run(function: Callable[..., Any], *inputs: torch.Tensor, **config: Any) -> tuple[Any, list[HostFallbackWarning]]:
    torch._dynamo.reset()
    options = BackendOptions(compiler_config=CompilerConfig(**config))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = torch.compile(function, backend=tt_torch.backend, options=options)(*inputs)
    return got, [w.message for w in caught if isinstance(w.message, HostFallbackWarning)]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu])
def test_casts_of_a_dtype_without_a_type_on_the_device(dtype: torch.dtype) -> None:
    """If float8_e8m0fnu were lowered, its process would crash and leave a folder that repeats the crash."""
    for function, x in ((lambda x: (x * 2).to(dtype).float(), X), (lambda x: x.float() * 2, X.to(dtype))):
        got, told = run(function, x)
        assert torch.equal(got, function(x))
        assert "aten._to_copy.default" in str(told[0]) and "Error" not in str(told[0])
        assert "Crash" not in str(told[0])


@pytest.mark.parametrize("dtype", [torch.bits8, torch.int4, torch.float4_e2m1fn_x2])
def test_a_cast_that_eager_refuses(dtype: torch.dtype, capfd: pytest.CaptureFixture[str]) -> None:
    """The warning names the op, and the error is eager's. Lowering the float4 would crash a process."""
    cast = torch.compile(lambda x: (x * 2).to(dtype), backend=tt_torch.backend)
    told = pytest.warns(HostFallbackWarning, match=rf"_to_copy.*test_partition.py:\d+ \(torch-mlir cannot make {dtype}")
    with told, pytest.raises(NotImplementedError, match=r"copy_.*not implemented for"):
        cast(X)
    assert not capfd.readouterr().err


def in_the_middle(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x) + 1
    return torch.linalg.eigvalsh(y @ y.T) * 2


def first(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.eigvalsh(x).diag() @ x


def last(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x @ x
    return torch.linalg.eigvalsh(y + y.T), y


def read_by_both(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return torch.linalg.eigvalsh(y @ y.T).sum() + (y * 2)


def of_a_view(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.eigvalsh((x @ x.T).t()).unsqueeze(0).expand(3, 4) + x[:3]


def complex_all_over(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(torch.view_as_complex(x.reshape(4, 2, 2)).cumprod(0) * 2j)


def inputs_after_a_constant(x: torch.Tensor) -> torch.Tensor:
    y = torch.linalg.eigvalsh(x)
    return torch.cat([x[4:], x]) + y


def alone(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.eigvalsh(x @ x.T)


@pytest.mark.parametrize(
    "function", [in_the_middle, first, last, read_by_both, of_a_view, complex_all_over, inputs_after_a_constant, alone]
)
def test_the_answer_is_that_of_eager(function: Callable[..., Any]) -> None:
    got, warned = run(function, X)
    torch.testing.assert_close(got, function(X), rtol=1e-4, atol=1e-4)
    assert len(warned) == 1, "one warning per compile"


def test_the_warning_names_op_line_reason_and_bytes() -> None:
    _, (warning,) = run(in_the_middle, X)
    (op,) = warning.ops
    line = in_the_middle.__code__.co_firstlineno + 2
    assert (op.op, op.count, op.location) == ("aten._linalg_eigh.default", 1, f"{Path(__file__)}:{line}")
    assert op.bytes == 4 * 4 * 4 + 4 * 4  # a matrix goes to the host, its eigenvalues come back
    assert str(op) in str(warning)


def test_equal_ops_of_a_line_are_counted() -> None:
    _, (warning,) = run(lambda x: [torch.linalg.eigvalsh(x * i) for i in (1, 2, 3)][2], X)
    assert [op.count for op in warning.ops] == [1]  # the results of the other two are not used
    _, (warning,) = run(lambda x: torch.stack([torch.linalg.eigvalsh(x * i) for i in (1, 2, 3)]), X)
    assert [op.count for op in warning.ops] == [3]


def test_device_subgraphs_are_as_large_as_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = []
    split = partition.split
    monkeypatch.setattr(partition, "split", lambda gm, host: pieces.append(split(gm, host)) or pieces[-1])
    run(read_by_both, X)
    _, found = pieces[-1]
    assert {*found} == {"device_0", "device_1"}
    after = ["aten.add.Tensor", "aten.mul.Tensor", "aten.sum.default"]
    ops = [sorted(str(n.target) for n in p.graph.nodes if n.op == "call_function") for p in found.values()]
    assert ops == [["aten.add.Tensor", "aten.mm.default", "aten.permute.default"], after]


def test_an_error_instead_of_the_host() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        run(in_the_middle, X, fallback="error")
    assert isinstance(caught.value.inner_exception, UnsupportedOpError)
    assert caught.value.inner_exception.op == "aten._linalg_eigh.default"


def test_only_transforms_with_a_long_prime_factor_run_on_the_host() -> None:
    for length, host in ((4096, False), (4099, True)):  # the second is a prime
        x = torch.ones(1, length)
        got, warned = run(lambda x: torch.fft.rfft(x).real, x)
        torch.testing.assert_close(got, torch.fft.rfft(x).real, rtol=1e-4, atol=1e-3)
        assert bool(warned) is host


def test_an_op_on_constants_is_computed_while_compiling() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.linalg.eigvalsh(torch.eye(4))

    got, warned = run(function, X)
    torch.testing.assert_close(got, function(X))
    assert not warned


def test_weights_stay_resident_in_a_subgraph() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(self.linear(x)) + 1

    model = Model().eval()
    with torch.no_grad():
        compiled = torch.compile(model, backend=tt_torch.backend)
        with pytest.warns(HostFallbackWarning):
            torch.testing.assert_close(compiled(X), model(X))
        model.linear.weight.mul_(2)  # resident weights follow their tensor
        torch.testing.assert_close(compiled(X), model(X))


def test_an_op_on_which_the_compiler_fails_runs_on_the_host_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tt_torch.mlir import pipeline

    def broken(module: Any, config: CompilerConfig) -> None:
        if "aten.cos" in module.operation.get_asm(enable_debug_info=True):
            raise IndexError("no such thing")

    monkeypatch.setattr(pipeline, "LEVELS", pipeline.LEVELS | {"TTIR": [*pipeline.TO_TTIR, ("broken", broken)]})
    got, (warning,) = run(lambda x: torch.cos(x + 1) @ x, X, repro_dir=str(tmp_path))
    torch.testing.assert_close(got, torch.cos(X + 1) @ X)
    assert [op.op for op in warning.ops] == ["aten.cos.default"]
    assert "step broken failed: IndexError: no such thing" in warning.ops[0].reason
    assert "--step broken" in warning.ops[0].reason


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_a_graph_that_cannot_be_captured_runs_in_eager() -> None:
    got, (warning,) = run(lambda x: x[x > 0] * 2, X)
    assert torch.equal(got, X[X > 0] * 2)
    assert warning.ops[0].op == "the whole graph"


def test_views_of_views_at_the_border() -> None:
    """If a subgraph reads the first and the last view of a chain, it contains all views of the chain, or no view."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = x[:, :3]
        return torch.linalg.svdvals(x), x + 1, first.exp(), first[:, :2][:1].abs()

    got, _ = run(function, X)
    torch.testing.assert_close(got, function(X))


def test_views_of_results_whose_strides_are_those_of_a_kernel() -> None:
    """Tracing assumes that the results of an index are contiguous. A call with large integers runs on the host, where
    the kernel gives the results the strides of the index."""
    x, i = torch.arange(9).reshape(3, 3) + 2**40, torch.arange(9).reshape(3, 3).t() % 3
    assert not x[i].is_contiguous()
    got, _ = run(lambda x, i: x[i].median(), x, i)
    assert torch.equal(got, x[i].median())


def test_results_have_the_strides_of_eager() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return y.t(), y.permute(1, 0).contiguous(), y[:, ::2]

    got, _ = run(function, X)
    for g, e in zip(got, function(X), strict=True):
        assert torch.equal(g, e)
    assert got[0].stride() == (1, 4)
    assert got[1].stride() == (4, 1)


def test_results_with_gaps_and_gradients_have_the_strides_of_eager() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.select_scatter(x[0] * 2, 0, 1), x.mT.diagonal_scatter(x[:, 0])

    x = torch.stack([X, X], -1)[..., 0].requires_grad_()
    got, _ = run(function, x)
    expected = function(x)
    assert [g.stride() for g in got] == [e.stride() for e in expected] == [(8, 2), (2, 8)]
    for results in (got, expected):
        sum((r * r).sum() for r in results).backward()
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("strides", [(1, 3), (5, 2), (0, 1), (1, 1)])
def test_elements_that_share_a_place_have_gradients_of_their_own(strides: tuple[int, int]) -> None:
    x, gradient = torch.ones(3, 2, requires_grad=True), torch.arange(6.0).view(3, 2)
    assert in_strides(x, (2, 1)) is x
    moved = in_strides(x, strides)
    assert moved.stride() == strides == in_strides(x.detach(), strides).stride()
    torch.testing.assert_close(moved, x)
    moved.backward(gradient)
    assert x.grad is not None and torch.equal(x.grad, gradient)

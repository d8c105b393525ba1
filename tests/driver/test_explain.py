"""`tt_torch.explain`: graphs, graph breaks, host ops, moved bytes and recompilations, with figures counted by hand."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.driver.executor import Executor
from tt_torch.torch_private.graph_breaks import Left

LAYER = nn.Linear(4, 3)
FLOAT = 4  # bytes


@torch.compiler.disable
def disabled(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def broken(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(LAYER(x))
    print("between two graphs")
    z = torch.linalg.eigvalsh(y.T @ y) * 2
    return disabled(z) * z.sum()


def line(function: Any, number: int) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + number}"


@pytest.fixture(autouse=True)
def _nothing_runs_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.compiler.reset()

    def refuse(*args: object) -> None:
        raise AssertionError("a program was loaded or run")

    monkeypatch.setattr(Executor, "__init__", refuse)


@torch.no_grad()
def test_two_breaks_and_a_host_op() -> None:
    found = tt_torch.explain(broken, torch.randn(2, 4))
    first, second, third = found.graphs
    assert first.lines == (line(broken, 1),) and second.lines[0] == line(broken, 3)
    assert first.ops == 3  # transpose of the weight, addmm, relu
    assert (first.moved.to_device, first.moved.to_host) == (2 * 4 * FLOAT, 2 * 3 * FLOAT)
    assert first.moved.weights == (3 * 4 + 3) * FLOAT
    # y goes to the device, y.T @ y to the host, its three eigenvalues to the device, z to the host
    assert second.moved.to_device == (2 * 3 + 3) * FLOAT
    assert second.moved.to_host == (3 * 3 + 3) * FLOAT and second.moved.weights == 0
    assert third.ops == 2 and third.moved.to_device == (3 + 3) * FLOAT and third.moved.to_host == 3 * FLOAT
    (host,) = found.host_ops
    assert (host.op, host.location, host.bytes) == ("aten._linalg_eigh.default", line(broken, 3), (3 * 3 + 3) * FLOAT)
    assert [(b.location, b.left, b.asked_for) for b in found.breaks] == [
        (line(broken, 2), Left.LINE, False),
        (line(broken, 4), Left.LINE, True),
    ]
    assert found.recompilations == ()


@torch.no_grad()
def test_the_report_is_readable() -> None:
    text = str(tt_torch.explain(broken, torch.randn(2, 4)))
    lines = text.splitlines()
    assert [x for x in lines if not x.startswith("  ")] == [
        "graphs: 3",
        "graph breaks: 2",
        "ops on the host: 1",
        "recompilations: 0",
    ]
    assert lines[1] == (
        f"  3 ops at {line(broken, 1)}; 32 bytes go to the device and 24 to the host per call, 60 bytes of weights once"
    )
    assert f"  {line(broken, 2)}: the graph breaks at this line, which Python runs: " in text
    assert "(somebody asks for it)" in text and "moves 48 bytes per call" in text


def test_a_second_call_that_is_compiled_again_is_told() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * self.calls

    found = tt_torch.explain(Counting(), torch.randn(3))
    (again,) = found.recompilations
    assert again.location == line(Counting.forward, 0) and again.reason == "self.calls == 0"
    assert len(found.graphs) == 2


def test_a_train_step_has_a_backward_graph() -> None:
    layer = nn.Linear(4, 3)

    def train(x: torch.Tensor) -> torch.Tensor:
        loss = layer(x).square().sum()
        loss.backward()
        return loss

    found = tt_torch.explain(train, torch.randn(2, 4))
    assert len(found.graphs) == 2 and all(b.asked_for for b in found.breaks) and len(found.breaks) == 1
    assert layer.weight.grad is not None


def test_programs_of_the_user_are_neither_used_nor_affected() -> None:
    from torch._dynamo.testing import CompileCounter

    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    counter = CompileCounter()
    compiled = torch.compile(f, backend=counter)
    compiled(torch.ones(3))
    for _ in range(torch._dynamo.config.recompile_limit + 1):
        found = tt_torch.explain(f, torch.ones(3))
        assert len(found.graphs) == 1 and not found.recompilations and not found.breaks
    compiled(torch.ones(3))
    assert counter.frame_count == 1


def test_options_come_from_the_environment_but_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_FALLBACK", "error")
    monkeypatch.setenv("TT_TORCH_VERIFY_INTERMEDIATES", "1")
    assert len(tt_torch.explain(broken, torch.randn(2, 4)).host_ops) == 1


def test_other_warnings_are_given() -> None:
    def warns(x: torch.Tensor) -> torch.Tensor:
        warnings.warn("of the program", stacklevel=1)
        return x + 1

    with pytest.warns(UserWarning, match="of the program"):
        tt_torch.explain(warns, torch.ones(3))


def test_a_function_that_computes_nothing_and_one_that_fails() -> None:
    assert tt_torch.explain(lambda: 1).graphs == ()

    def fails(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program"):
        tt_torch.explain(fails, torch.ones(3))


@torch.no_grad()
def test_a_result_that_the_next_program_reads_stays_on_the_device() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return torch.linalg.eigvalsh(y) + y

    (graph,) = tt_torch.explain(f, torch.eye(3)).graphs
    # x and the eigenvalues go to the device; y, which the host op reads, and the result go to the host
    assert graph.moved.to_device == (3 * 3 + 3) * FLOAT and graph.moved.to_host == (3 * 3 + 3 * 3) * FLOAT


@torch.no_grad()
def test_a_graph_of_host_ops_moves_nothing() -> None:
    found = tt_torch.explain(torch.linalg.eigvalsh, torch.eye(3))
    (graph,) = found.graphs
    assert (graph.moved.to_device, graph.moved.to_host, len(found.host_ops)) == (0, 0, 1)


def test_a_compiled_model_is_explained_like_the_model() -> None:
    for model in (LAYER, lambda x: LAYER(x) + 1):
        first, second = (tt_torch.explain(m, torch.ones(2, 4)) for m in (model, torch.compile(model, backend="tt")))
        assert first == second


@torch.no_grad()
def test_tensors_of_the_device_do_not_move() -> None:
    (graph,) = tt_torch.explain(lambda x, y: x + y, torch.ones(3, device="tt"), torch.ones(3, device="tt")).graphs
    assert (graph.moved.to_device, graph.moved.to_host) == (0, 0)

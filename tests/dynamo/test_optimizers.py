"""Optimizer steps on the device: after several steps, the parameters equal the parameters of eager PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver import backend as backend_module
from tt_torch.dynamo.decompositions import DECOMPOSITIONS

OPTIONS = {"compiler_config": CompilerConfig(fallback="error")}


def compiled(function: Any) -> Any:
    return torch.compile(function, backend=tt_torch.backend, options=OPTIONS)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The list of programs that a test compiles, which grows as they are made."""
    made = []
    compile_graph = backend_module.compile_graph

    def record(*args: Any) -> Any:
        made.append(compile_graph(*args))
        return made[-1]

    monkeypatch.setattr(backend_module, "compile_graph", record)
    return made


def problem() -> tuple[nn.Module, nn.Module, Any]:
    """Returns two equal models, and a function that computes the gradients of a loss of the model that it is given."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = torch.randn(6, 4), torch.randn(6, 3)
    return model, copy.deepcopy(model), lambda run: (run(x) - y).square().mean().backward()


def check(ours: nn.Module, theirs: nn.Module) -> None:
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


CASES: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd_momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adam": (torch.optim.Adam, {"lr": 0.05}),
    "adam_amsgrad": (torch.optim.Adam, {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1}),
    "adamw": (torch.optim.AdamW, {"lr": 0.05}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.05}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5}),
}
FORMS = {"plain": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


@pytest.mark.parametrize(
    ("name", "form"), [(n, f) for n in CASES for f in FORMS if not (f == "fused" and n == "rmsprop")]
)
def test_steps(name: str, form: str, programs: list[Any]) -> None:
    kind, options = CASES[name]
    ours, theirs, gradients = problem()
    optimizers = [kind(m.parameters(), **options, **FORMS[form]) for m in (ours, theirs)]
    steps = [compiled(optimizers[0].step), optimizers[1].step]
    for _ in range(3):
        for model, optimizer, step in zip((ours, theirs), optimizers, steps, strict=True):
            optimizer.zero_grad()
            gradients(model)
            step()
    check(ours, theirs)
    assert 1 <= len(programs) <= 2  # the first step may need a program of its own, because it has no momentum yet


def test_model_and_optimizer_both_compiled(programs: list[Any]) -> None:
    """The model reads the weights that the optimizer's program wrote."""
    ours, theirs, gradients = problem()
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.1) for m in (ours, theirs)]
    runs, steps = [compiled(ours), theirs], [compiled(optimizers[0].step), optimizers[1].step]
    for _ in range(4):
        for run, optimizer, step in zip(runs, optimizers, steps, strict=True):
            optimizer.zero_grad()
            gradients(run)
            step()
    check(ours, theirs)
    assert len(programs) == 3


@pytest.mark.parametrize("name", ["sgd_momentum", "adam", "adamw"])
def test_learning_rate_schedule(name: str, programs: list[Any]) -> None:
    """A number that changes from step to step leads to one more program, not to one for each value."""
    ours, theirs, gradients = problem()
    kind, options = CASES[name]
    optimizers = [kind(m.parameters(), **options) for m in (ours, theirs)]
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in optimizers]
    steps = [compiled(optimizers[0].step), optimizers[1].step]
    for _ in range(5):
        for model, optimizer, step, schedule in zip((ours, theirs), optimizers, steps, schedules, strict=True):
            optimizer.zero_grad()
            gradients(model)
            step()
            schedule.step()
    check(ours, theirs)
    assert len(programs) == 2


@pytest.mark.parametrize("infinite", [False, True])
def test_fused_step_under_a_gradient_scaler(infinite: bool) -> None:
    ours, theirs, gradients = problem()
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.1, fused=True) for m in (ours, theirs)]
    steps = [compiled(optimizers[0].step), optimizers[1].step]
    for found in (False, infinite):
        for model, optimizer, step in zip((ours, theirs), optimizers, steps, strict=True):
            optimizer.zero_grad()
            gradients(model)
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0), torch.tensor(float(found))
            step()
    check(ours, theirs)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert optimizers[0].state[p]["step"] == optimizers[1].state[q]["step"]


def test_clipping_gradients(programs: list[Any]) -> None:
    ours, theirs, gradients = problem()
    norms = []
    for model, clip in ((ours, compiled(nn.utils.clip_grad_norm_)), (theirs, nn.utils.clip_grad_norm_)):
        gradients(model)
        norms.append(clip(list(model.parameters()), 0.01, foreach=True))
    torch.testing.assert_close(*norms)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)
    assert len(programs) == 1


LISTS = [op for op in DECOMPOSITIONS if "_foreach_" in str(op)]
ARGUMENTS = {
    "List[Tensor]": [torch.rand(3, 3), torch.rand(2, 2)],
    "List[number]": [2.0, 3.0],
    "Tensor": torch.tensor(2.0),
    "scalars": torch.tensor([2.0, 3.0]),
    "number": 2.0,
}


OPTIONAL = {
    "alpha": 3, "value": 3, "ord": 1, "dtype": torch.float64, "non_blocking": True,
    "memory_format": torch.contiguous_format,
}  # fmt: skip


@pytest.mark.parametrize("op", LISTS, ids=str)
def test_op_on_lists(op: torch._ops.OpOverload) -> None:
    arguments = op._schema.arguments
    needed = [a for a in arguments if not a.has_default_value()]
    given = [ARGUMENTS["scalars" if (a.name, str(a.type)) == ("scalars", "Tensor") else str(a.type)] for a in needed]
    for options in ({}, {a.name: OPTIONAL[a.name] for a in arguments if a.has_default_value()}):
        got = DECOMPOSITIONS[op](*given, **options)
        torch.testing.assert_close(got, op(*given, **options), equal_nan=True)

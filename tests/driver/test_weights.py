"""Parameters are inputs of the program; they stay on the device, and changes to them are seen at the next call."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.driver.aot import compile_model


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def test_parameters_are_inputs_of_the_program() -> None:
    model = mlp().eval()
    program = compile_model(model, [torch.randn(2, 4)])
    kinds = program.executor.compiled.kinds
    assert kinds.count("parameter") == 4
    assert len(program.binary) < 100_000


@pytest.mark.parametrize("grad", [False, True])
def test_changed_weights_are_used(grad: bool) -> None:
    model, x = mlp(), torch.randn(2, 4)
    run = torch.compile(model, backend=tt_torch.backend)
    with torch.set_grad_enabled(grad):
        close(run(x), model(x))
        with torch.no_grad():
            model[0].weight.mul_(3)
        close(run(x), model(x))
        model.load_state_dict(mlp().state_dict())
        close(run(x), model(x))
        model[2].weight.data = torch.randn(3, 8)
        close(run(x), model(x))
        model[2].bias = nn.Parameter(torch.randn(3))
        close(run(x), model(x))


def test_modules_that_share_a_part() -> None:
    shared = nn.Linear(4, 4)
    first, second = nn.Sequential(shared, nn.ReLU()), nn.Sequential(nn.Tanh(), shared)
    runs = [torch.compile(m, backend=tt_torch.backend) for m in (first, second)]
    x = torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(2):
            close(runs[0](x), first(x))
            close(runs[1](x), second(x))
            shared.weight.add_(1)


def test_tied_weights() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(x))

    model, x = Tied(), torch.randint(0, 7, (2, 3))
    run = torch.compile(model, backend=tt_torch.backend)
    with torch.no_grad():
        close(run(x), model(x))
        model.embed.weight.mul_(2)
        close(run(x), model(x))


# --- training


def _train(model: nn.Module, run: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(run(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@pytest.mark.parametrize(
    "middle", [nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, lambda: nn.LayerNorm(8), lambda: nn.BatchNorm1d(8)]
)
def test_training_steps_are_those_of_eager(middle: type[nn.Module]) -> None:
    theirs = nn.Sequential(nn.Linear(4, 8), middle(), nn.Linear(8, 3))
    ours = nn.Sequential(nn.Linear(4, 8), middle(), nn.Linear(8, 3))
    ours.load_state_dict(theirs.state_dict())
    x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
    run = torch.compile(ours, backend=tt_torch.backend)
    close(torch.stack(_train(ours, run, x, y)), torch.stack(_train(theirs, theirs, x, y)))
    for (name, ours_now), theirs_now in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(ours_now, theirs_now, rtol=1e-4, atol=1e-4, msg=name)


def test_gradients_of_inputs() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    model = mlp()
    (expected,) = torch.autograd.grad(model(x).square().sum(), x)
    (got,) = torch.autograd.grad(torch.compile(model, backend=tt_torch.backend)(x).square().sum(), x)
    close(got, expected)


def test_statistics_that_eager_training_changed_are_used() -> None:
    """Eager batch norm writes its running statistics without increasing their version counters."""
    norm = torch.nn.BatchNorm2d(4).eval()
    compiled = torch.compile(norm, backend=tt_torch.backend)
    x = torch.randn(2, 4, 5, 5)
    with torch.no_grad():
        compiled(x)
        norm.train()(x * 5 + 3)
        norm.eval()
        torch.testing.assert_close(compiled(x), norm(x))


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager", tt_torch.backend])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad])
def test_weights_that_a_fused_step_changed_are_used(kind: type[torch.optim.Optimizer], backend: object) -> None:
    """The CPU's fused kernels write parameters without increasing their version counters."""
    model, x = mlp(), torch.randn(2, 4)
    run = torch.compile(model, backend=tt_torch.backend)
    step = kind(model.parameters(), lr=0.1, fused=True).step
    step = torch.compile(step, backend=backend) if backend else step
    for _ in range(2):
        model.zero_grad()
        model(x).square().sum().backward()
        step()
        with torch.no_grad():
            close(run(x), model(x))

"""Uses of modules in addition to calls: hooks, new weights, tied weights, copies, pickles, transforms."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tt_torch
from tt_torch.config import CompilerConfig

OPTIONS = {"compiler_config": CompilerConfig(fallback="error")}


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=tt_torch.backend, options=OPTIONS, **options)


def close(got: Any, expected: Any) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


X = torch.randn(5, 4)


def gradients(model: nn.Module, run: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
    model.zero_grad()
    run(X).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


# --- hooks


def test_forward_hooks() -> None:
    model = mlp()
    model[0].register_forward_hook(lambda module, inputs, output: output * 2)
    model[2].register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    close(compiled(model)(X), model(X))
    close(gradients(model, compiled(model)), gradients(model, model))


@torch._dynamo.config.patch(skip_nnmodule_hook_guards=False)
def test_hooks_registered_after_compiling() -> None:
    """Dynamo notices later hooks only under this setting."""
    model = mlp()
    run = compiled(model)
    close(run(X), model(X))
    handle = model[0].register_forward_hook(lambda module, inputs, output: output * 2)
    close(run(X), model(X))
    handle.remove()
    close(run(X), model(X))


def test_hooks_of_tensors_and_gradients() -> None:
    """A parameter's hooks run on the gradient that the device computed."""
    model, seen = mlp(), []
    model[0].weight.register_hook(lambda grad: grad * 2)
    model[2].bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    got = gradients(model, compiled(model))
    close(got, gradients(model, model))
    close(seen[0], seen[1])


# --- weights


def test_loaded_state_is_used_in_training_and_inference() -> None:
    model = mlp()
    run = compiled(model)
    for _ in range(2):
        close(gradients(model, run), gradients(model, model))
        with torch.no_grad():
            close(run(X), model(X))
        model.load_state_dict(mlp().state_dict())


@pytest.mark.parametrize("assign", [False, True])
def test_state_of_the_compiled_module(assign: bool) -> None:
    """The names in the state of torch.compile's module are the names of the original module with a prefix."""
    model, other = mlp(), mlp()
    run = compiled(model)
    run(X)
    run.load_state_dict({f"_orig_mod.{k}": v for k, v in other.state_dict().items()}, assign=assign)
    close(run(X), other(X))


def test_tied_weights_get_one_gradient() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(torch.tanh(self.embed(tokens)))

    model, tokens = Tied(), torch.randint(0, 7, (2, 3))
    theirs = copy.deepcopy(model)
    assert theirs.head.weight is theirs.embed.weight
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.5) for m in (model, theirs)]
    run = compiled(model)
    for _ in range(3):
        for call, optimizer in ((run, optimizers[0]), (theirs, optimizers[1])):
            optimizer.zero_grad()
            F.cross_entropy(call(tokens).flatten(0, 1), tokens.flatten()).backward()
            optimizer.step()
        close(model.embed.weight, theirs.embed.weight)


# --- copies


def test_deepcopy_has_weights_of_its_own() -> None:
    run = compiled(mlp())
    before = run(X)
    other = copy.deepcopy(run)
    with torch.no_grad():
        other._orig_mod[0].weight.zero_()
    close(run(X), before)
    close(other(X), other._orig_mod(X))


def test_copy_of_a_compiled_models_original() -> None:
    model = mlp()
    run = compiled(model)
    run(X)
    close(compiled(copy.deepcopy(model))(X), model(X))


def test_pickled_module_computes_the_same() -> None:
    """Compilation leaves nothing in the original module that a pickle would contain."""
    model = mlp()
    run = compiled(model)
    expected = run(X)
    loaded = pickle.loads(pickle.dumps(model))
    close(loaded(X), expected)
    close(compiled(loaded)(X), expected)


def test_saved_state_of_a_compiled_module() -> None:
    run, file = compiled(mlp()), io.BytesIO()
    expected = run(X)
    torch.save(run.state_dict(), file)
    file.seek(0)
    other = compiled(mlp())
    other.load_state_dict(torch.load(file))
    close(other(X), expected)


# --- functorch inside of a compiled function


def loss(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ weight).square().sum()


WEIGHT = torch.randn(4, 3)
TRANSFORMS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "grad": lambda w, x: torch.func.grad(loss)(w, x),
    "grad_and_value": lambda w, x: torch.func.grad_and_value(loss)(w, x),
    "vmap": lambda w, x: torch.vmap(lambda row: torch.tanh(row @ w).sum())(x),
    "vmap_of_grad": lambda w, x: torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x),
    "vjp": lambda w, x: torch.func.vjp(lambda w: torch.tanh(x @ w), w)[1](torch.ones(5, 3))[0],
    "jvp": lambda w, x: torch.func.jvp(lambda w: torch.tanh(x @ w), (w,), (torch.ones_like(w),))[1],
    "jacrev": lambda w, x: torch.func.jacrev(lambda w: torch.tanh(x @ w).sum(0))(w),
    "jacfwd": lambda w, x: torch.func.jacfwd(lambda w: torch.tanh(x @ w).sum(0))(w),
    "hessian": lambda w, x: torch.func.hessian(loss)(w, x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    function = TRANSFORMS[name]
    close(compiled(function, fullgraph=True)(WEIGHT, X), function(WEIGHT, X))


def test_gradient_per_sample_of_a_module() -> None:
    model = mlp()
    parameters = dict(model.named_parameters())

    def sample_loss(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, parameters, (x,)).square().sum()

    def per_sample(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return torch.vmap(torch.func.grad(sample_loss), in_dims=(None, 0))(parameters, x)

    close(compiled(per_sample, fullgraph=True)(X), per_sample(X))

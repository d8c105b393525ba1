"""Training programs that were compiled ahead of time, or loaded from a file, are compared with eager PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import tt_torch
from tests.driver.test_aot_calls import X, refuse
from tests.driver.test_package_files import changed, paths
from tt_torch.driver.package.manifest import TRAINING_FORMAT
from tt_torch.errors import ArgumentError, CompileError, PackageError, PackagingError, TTTorchError
from tt_torch.tools import package_inspection


def both(model: Any, folder: Path, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The model compiled for training, and the model that its package gives when it is loaded."""
    compiled = tt_torch.compile_model(model, args, training=True, **options)
    compiled.save(folder / "model.ttpkg")
    return compiled, tt_torch.load(folder / "model.ttpkg")


def gradients(results: Any, *wanted: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of a weighted sum of the sines of the results. Each result has its own weight."""
    tensors = results if isinstance(results, tuple) else (results,)
    loss = sum((i + 2) * x.sin().sum() for i, x in enumerate(tensors) if x.requires_grad)
    return torch.autograd.grad(loss, wanted, allow_unused=True)


class Everything(nn.Module):
    """Tied, frozen and unused parameters, statistics of the batch, and several results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.unused = nn.Linear(4, 4, bias=False), nn.Linear(4, 4), nn.Linear(2, 1)
        self.last.weight = self.first.weight
        self.last.bias.requires_grad_(False)
        # With the usual eps, a column of nearly equal values would make float32 itself inexact by 1e-3.
        self.norm = nn.BatchNorm1d(4, eps=0.1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.norm(torch.tanh(self.first(x)))
        result = self.last(hidden)
        return {"loss": result.square().mean(), "guess": result.argmax(1), "hidden": hidden}


def steps(model: Any, optimizer: torch.optim.Optimizer, count: int = 2) -> None:
    for factor in range(1, count + 1):
        optimizer.zero_grad()
        model(X / factor - 3)["loss"].backward()
        optimizer.step()


def sgd(model: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def test_training_is_that_of_eager_and_goes_on_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    eager = Everything()
    model = copy.deepcopy(eager)
    compiled, loaded = both(model, tmp_path, X)
    for name in ("compile_graph", "_aot"):
        monkeypatch.setattr(f"tt_torch.driver.backend.{name}", refuse)
    optimizers = [sgd(eager), sgd(compiled), sgd(loaded)]
    assert [name for name, _ in loaded.named_parameters()] == [name for name, _ in model.named_parameters()]
    for each, optimizer in zip((eager, compiled, loaded), optimizers, strict=True):
        steps(each, optimizer)
    loaded.save(tmp_path / "later.ttpkg")
    with pytest.raises(PackagingError, match="the package has several programs"):
        loaded.save(tmp_path / "later.ttnn")
    copies = [tt_torch.load(tmp_path / "later.ttpkg"), pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)]
    for each in copies:
        optimizer = sgd(each)
        optimizer.load_state_dict(copy.deepcopy(optimizers[2].state_dict()))
        steps(each, optimizer)
    steps(eager, optimizers[0])
    steps(compiled, optimizers[1])
    expected = eager.state_dict()
    for state in (model.state_dict(), *(each.state_dict() for each in copies)):
        assert state.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(state[name], value, rtol=1e-4, atol=1e-5)
        Everything().load_state_dict(state)
    assert not any(parameter.grad is not None for parameter in (copies[0].weights["last.bias"], model.last.bias))


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 6)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        h.mul_(3)
        y = self.linear(x).tanh()
        hidden = y * 2
        parts = (y + 1).chunk(2, 1)
        return y, y.view(-1), hidden.t(), hidden[0], x[:, 1], y.argmax(1), y.detach(), x.detach().t(), h.exp(), *parts


def memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


def test_results_share_memory_and_gradients_as_in_eager(tmp_path: Path) -> None:
    model, start = Views(), torch.ones(2, requires_grad=True)
    x = (X / 5).requires_grad_()
    functions = model, *both(model, tmp_path, x, start * 1)
    expected, *found = [function(x, start * 1) for function in functions]
    wanted = gradients(expected, *model.parameters(), x, start)
    for function, results in zip(functions[1:], found, strict=True):
        for i, (result, eager) in enumerate(zip(results, expected, strict=True)):
            torch.testing.assert_close(result, eager, rtol=1e-4, atol=1e-5, check_stride=True)
            assert result.requires_grad == eager.requires_grad, i
            shares = [memory(result) == memory(other) for other in (*results, x)]
            assert shares == [memory(eager) == memory(other) for other in (*expected, x)], i
        had = gradients(results, *function.parameters(), x, start)
        torch.testing.assert_close(had, wanted, rtol=1e-4, atol=1e-4)
    for function in functions:
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
            function(x, start)


@pytest.mark.parametrize("last", [lambda y: y.lerp_(y + 1, 0.5), lambda y: y.reshape(y.shape), lambda y: y[2:, 1:4]])
def test_results_in_one_memory_have_the_strides_of_eager(last: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    def write(x: Tensor, y: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
        result = x.diagonal_scatter(diagonal)
        result.lerp_(y, 0.5)
        return result, last(result)

    x, y = (torch.arange(25.0).as_strided((5, 5), strides, 0).requires_grad_() for strides in ((1, 5), (5, 1)))
    given = (x, y, torch.ones(5, requires_grad=True))
    for model in both(write, tmp_path, *given):
        expected, got = write(*given), model(*given)
        torch.testing.assert_close(got, expected, check_stride=True)
        assert memory(got[0]) == memory(got[1])
        torch.testing.assert_close(gradients(got, *given), gradients(expected, *given))


def test_conjugates_and_parts_of_complex_numbers(tmp_path: Path) -> None:
    z = torch.complex(X, X + 1).requires_grad_()
    for model in (lambda z: ((y := z * 2).real, y.imag), lambda z: ((y := z * 2j).conj().imag, y.mT.real, y.real[1:])):
        for function in (*both(model, tmp_path, z),):
            torch.testing.assert_close(function(z), model(z))
            torch.testing.assert_close(gradients(function(z), z), gradients(model(z), z))


def test_writes_without_gradients(tmp_path: Path) -> None:
    class Clamps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([2.0, -3.0]))

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                self.weight.clamp_(-1, 1)
                x.mul_(2)
            return x * self.weight

    for function in both(Clamps(), tmp_path, torch.ones(2, requires_grad=True)):
        x, (weight,) = torch.ones(2, requires_grad=True), function.parameters()
        function(x).sum().backward()
        assert [t.tolist() for t in (x, x.grad, weight, weight.grad)] == [[2, 2], [1, -1], [1, -1], [2, 2]]


def test_backward_passes(tmp_path: Path) -> None:
    """Backward passes may be repeated and may come late.

    A second derivative is an error, even if it is only a part of a loss.
    """
    model = nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 2))
    for function in both(model, tmp_path, X):
        parameters = list(function.parameters())
        one, two = function(X), function(X * 2)
        expected = gradients(model(X), *model.parameters())
        loss = one.sin().sum() * 2
        for keep in (True, False):
            found = torch.autograd.grad(loss, parameters, retain_graph=keep)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            loss.backward()
        found = gradients(two, *parameters)
        torch.testing.assert_close(found, gradients(model(X * 2), *model.parameters()), rtol=1e-4, atol=1e-5)
        y = function(X)
        first = torch.autograd.grad(y.square().sum(), parameters, create_graph=True)
        with pytest.raises(RuntimeError, match=r"second derivatives|double backward"):
            (y.sum() + first[0].square().sum()).backward()


def test_calls_without_gradients_have_none(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    eager = copy.deepcopy(model)
    compiled, loaded = both(model, tmp_path, X)
    for function in (eager, compiled, loaded):
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                y = function(X)
            assert not y.requires_grad and y.grad_fn is None
    for module in (model, loaded):  # these calls also update the statistics of the batch
        torch.testing.assert_close(dict(module.state_dict()), dict(eager.state_dict()))


def test_random_numbers_follow_the_seed(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.5))
    compiled, loaded = both(model, tmp_path, X)
    found = []
    for function in (torch.compile(model, backend="tt"), compiled, loaded):
        torch.manual_seed(3)
        found.append((y := function(X), gradients(y, next(function.parameters())), again := function(X)))
        assert not torch.equal(y, again)
    for each in found[1:]:
        torch.testing.assert_close(each, found[0], rtol=0, atol=0)


def test_calls_that_need_other_gradients_are_errors(tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    model.bias.requires_grad_(False)
    for function in both(model, tmp_path, X):
        weight, bias = function.parameters()
        with pytest.raises(ArgumentError, match="input requires a gradient, but the model was compiled for one that"):
            function(X.clone().requires_grad_())
        bias.requires_grad_()
        with pytest.raises(ArgumentError, match="bias requires a gradient, but the model was compiled for one that"):
            function(X)
        bias.requires_grad_(False)
        weight.requires_grad_(False)
        assert not function(X).requires_grad
        weight.requires_grad_()
    loaded = function
    loaded.weights["weight"].requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in copy.deepcopy(loaded).parameters())


def test_what_cannot_be_trained(tmp_path: Path) -> None:
    for model in (lambda x: x.argmax(), lambda x: x.detach() * 2):
        with pytest.raises(CompileError, match="nothing to train"):
            tt_torch.compile_model(model, (torch.ones(2, requires_grad=True),), training=True)
    compiled = tt_torch.compile_model(
        lambda x: (x * 2).unfold(0, 2, 1).T, (torch.ones(3, requires_grad=True),), training=True
    )
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    conjugate = tt_torch.compile_model(lambda z: (z.conj(), z * 2), (z,), training=True)
    with pytest.raises(PackagingError, match="a result is a view of an input"):
        conjugate.save(tmp_path / "model.ttpkg")
    with pytest.raises(PackagingError, match="only a package holds the programs of training"):
        compiled.save(tmp_path / "model.ttnn")
    inference = copy.deepcopy(tt_torch.compile_model(nn.Linear(4, 2).eval(), (X,)))
    with pytest.raises(PackageError, match=r"for inference; compile_model\(\.\.\., training=True\)"):
        inference.parameters()
    inference.save(tmp_path / "model.ttnn")
    assert (tmp_path / "model.ttnn").read_bytes() == inference.binary


def test_weights_of_a_checkpoint_keep_the_parameters(tmp_path: Path) -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    compiled, real = (
        tt_torch.compile_model(model, (X,), training=True),
        nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)),
    )
    compiled.save(tmp_path / "model.ttpkg", weights=False)
    loaded = tt_torch.load(tmp_path / "model.ttpkg")
    for call in (loaded.parameters, loaded.state_dict):
        with pytest.raises(PackageError, match="no weights"):
            call()
    loaded.load_state_dict(real.state_dict())
    parameters = list(loaded.parameters())
    found, expected = gradients(loaded(X), *parameters), gradients(real(X), *real.parameters())
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    loaded.load_state_dict(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).state_dict())
    assert all(old is new for old, new in zip(parameters, loaded.parameters(), strict=True))


def test_families(tmp_path: Path) -> None:
    model, shapes = nn.Linear(4, 2), {"input": {0: Dim("rows", min=1, max=2)}}
    family, loaded = both(model, tmp_path, X[:2].clone().requires_grad_(), dynamic_shapes=shapes)
    for rows in (1, 2):
        x = X[:rows].clone().requires_grad_()
        for function in (family, loaded):
            found = gradients(function(x), x, *function.parameters())
            torch.testing.assert_close(found, gradients(model(x), x, *model.parameters()))
    assert package_inspection.as_json(tmp_path / "model.ttpkg")["format"] == TRAINING_FORMAT
    shown = "\n".join(package_inspection.text(tmp_path / "model.ttpkg"))
    assert "weight: float32 [2, 4], trained" in shown and "program backward/main, rows = 2" in shown


def test_no_malformed_manifest_does_more_than_raise(tmp_path: Path) -> None:
    both(nn.Linear(2, 1), tmp_path, torch.ones(1, 2))
    path, outcomes = tmp_path / "model.ttpkg", set()
    training = package_inspection.as_json(path)["training"]
    for number, place in enumerate(paths({name: part for name, part in training.items() if name != "backward"})[1:]):

        def change(data: Any, place: tuple[Any, ...] = place, number: int = number) -> None:
            part = data["manifest"]["training"]
            for key in place[:-1]:
                part = part[key]
            part[place[-1]] = [None, -1, 10**30, "text", [], {}, [10**12] * 3][number % 7]

        try:
            loaded = tt_torch.load(changed(path, tmp_path / "changed.ttpkg", change))
        except TTTorchError:
            outcomes.add("refused")
            continue
        try:
            loaded(torch.ones(1, 2)).sum().backward()
            outcomes.add("ran")
        except Exception:
            outcomes.add("raised")
    assert outcomes == {"ran", "refused", "raised"}

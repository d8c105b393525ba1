"""Weights that are released: programs continue to run, and every other use is an error that names the weight."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.errors import ConfigError, PackagingError, ReleasedWeightError, ReleaseError
from tt_torch.runtime import Device
from tt_torch.torch_private.released import ReleasedWeight


class Tied(nn.Module):
    """An embedding whose table is also the weight of the last layer, and layers whose products are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 64)
        self.norm = nn.LayerNorm(64)
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64, bias=False)
        self.head = nn.Linear(64, 40, bias=False)
        self.head.weight = self.embed.weight
        self.unused = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.embed(x))
        return self.head(self.first(y) * self.second(y))


def tied() -> tuple[Tied, torch.Tensor]:
    torch.manual_seed(0)
    return Tied().eval(), torch.randint(0, 40, (2, 5))


def released() -> tuple[Tied, torch.Tensor, tt_torch.CompiledModel, torch.Tensor]:
    """A released model, its input, its program and the result before the release."""
    model, x = tied()
    run = tt_torch.compile_model(model, (x,))
    before = run(x)
    tt_torch.release(model)
    return model, x, run, before


@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_programs_go_on_to_run(dtype: str | None) -> None:
    model, x = tied()
    expected = model(x).detach()
    run = tt_torch.compile_model(model, (x,), tt_torch.CompilerConfig(dtype=dtype))
    before = run(x)
    used = sum(p.nbytes for name, p in model.named_parameters() if not name.startswith("unused"))
    assert tt_torch.release(model) == used
    assert type(model.unused.weight) is nn.Parameter
    assert isinstance(model.head.weight, ReleasedWeight)
    assert model.head.weight is model.embed.weight
    for _ in range(3):
        assert run(x).equal(before)
    assert run((x + 1) % 40).ne(before).any()
    if dtype is None:
        torch.testing.assert_close(before, expected)


def test_memory_of_the_host_is_free() -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    run = tt_torch.compile_model(model.eval(), (torch.randn(2, 256),), tt_torch.CompilerConfig(dtype="bf16"))
    run(torch.randn(2, 256))
    memory = [p.untyped_storage()._weak_ref() for p in model.parameters()]
    tt_torch.release(model)
    assert all(torch.UntypedStorage._expired(each) for each in memory)
    for each in memory:
        torch.UntypedStorage._free_weak_ref(each)


USES: dict[str, Callable[[Tied, torch.Tensor], object]] = {
    "eager": lambda model, x: model(x),
    "op": lambda model, x: torch.ones(64, 64) + model.first.weight,
    "read": lambda model, x: model.first.weight.tolist(),
    "pointer": lambda model, x: model.first.weight.data_ptr(),
    "data": lambda model, x: model.first.weight.data,
    "list": lambda model, x: torch.cat([x, model.first.weight]),
    "state_dict": lambda model, x: model.state_dict(),
    "to": lambda model, x: model.to(torch.float64),
    "deepcopy": lambda model, x: copy.deepcopy(model),
    "pickle": lambda model, x: pickle.dumps(model),
    "save": lambda model, x: torch.save(model, io.BytesIO()),
    "numpy": lambda model, x: model.first.weight.numpy(force=True),
    "init": lambda model, x: nn.init.zeros_(model.first.weight),
    "repr": lambda model, x: repr(model.first.weight),
}


@pytest.mark.parametrize("use", USES)
def test_other_uses_are_errors_that_name_the_weight(use: str) -> None:
    model, x, *_ = released()
    with pytest.raises(
        ReleasedWeightError, match=r"needs the values of (embed|first|norm)\.weight, which was released"
    ):
        USES[use](model, x)


@pytest.mark.parametrize("foreach", [False, True])
def test_an_optimizer_that_holds_the_parameters(foreach: bool) -> None:
    model, x = tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=foreach)
    run = tt_torch.compile_model(model, (x,))
    model(x).sum().backward()
    before = run(x)
    tt_torch.release(model)
    with pytest.raises(ReleasedWeightError, match=r"embed.weight"):
        optimizer.step()
    optimizer.zero_grad()
    assert run(x).equal(before)


def test_again_and_after_caches_are_cleared() -> None:
    options = tt_torch.BackendOptions()
    model, x = tied()
    run = tt_torch.compile_model(model, (x,), options=options)
    before = run(x)
    assert tt_torch.release(model) > 0
    assert tt_torch.release(model) == tt_torch.release(run) == 0
    options.clear_caches()
    assert run(x).equal(before)


def test_a_weight_that_changed_is_not_lost() -> None:
    model, x = tied()
    run = tt_torch.compile_model(model, (x,))
    with pytest.raises(ReleaseError, match="call the compiled model first"):
        tt_torch.release(model)
    run(x)
    model.second.weight.data[3, 4] = 5  # PyTorch does not count this write
    with pytest.raises(ReleaseError, match=r"second.weight was changed after the last call"):
        tt_torch.release(model)
    expected = model(x).detach()
    torch.testing.assert_close(run(x), expected)
    tt_torch.release(model)
    torch.testing.assert_close(run(x), expected)


def test_two_programs_that_share_weights() -> None:
    model, x = tied()
    other = torch.randint(0, 40, (3, 7))
    first, second, late = (tt_torch.compile_model(model, (given,)) for given in (x, other, other[:1]))
    before, expected = (first(x), second(other)), model(other[:1]).detach()
    tt_torch.release(first)
    assert first(x).equal(before[0])
    assert second(other).equal(before[1])
    torch.testing.assert_close(late(other[:1]), expected)  # it prepares the weights as the others do


def test_a_program_that_needs_another_form() -> None:
    model, x = tied()
    run, late = tt_torch.compile_model(model, (x,)), tt_torch.compile_model(model, (x,), options={"dtype": "bf16"})
    before = run(x)
    tt_torch.release(model)
    with pytest.raises(ReleasedWeightError, match=r"(first|second|norm|embed)\.\w+ was released, and this program"):
        late(x)
    assert run(x).equal(before)


def test_a_released_weight_as_an_argument() -> None:
    model, *_ = released()
    run = tt_torch.compile_model(lambda w: w * 2, (torch.empty(64, 64),))
    with pytest.raises(ReleasedWeightError, match=r"first.weight was released"):
        run(model.first.weight)


def test_another_device() -> None:
    _, x, run, _ = released()
    with Device() as device, pytest.raises(ReleasedWeightError, match="this device lacks it"):
        device.load(run.binary)(run.arguments(x), run.executor.resident)


def test_packages(tmp_path) -> None:
    _, x, run, before = released()
    for make in (lambda: run.save(tmp_path / "whole.ttpkg"), lambda: copy.deepcopy(run), lambda: pickle.dumps(run)):
        with pytest.raises(PackagingError, match=r"embed.weight was released: save the package before"):
            make()
    run.save(tmp_path / "bare.ttpkg", weights=False)
    loaded = tt_torch.load(tmp_path / "bare.ttpkg")
    loaded.load_state_dict(tied()[0].state_dict())
    assert loaded(x).equal(before)


def test_weights_are_given_back() -> None:
    model, x, run, before = released()
    model.load_state_dict(tied()[0].state_dict(), assign=True)
    model.head.weight = model.embed.weight
    torch.testing.assert_close(model.to(torch.float32)(x).detach(), before, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        model.embed.weight.mul_(2)
    torch.testing.assert_close(run(x), model(x).detach())


def test_statistics_and_updated_parameters_stay() -> None:
    model, x = nn.BatchNorm1d(4), torch.randn(8, 4)
    run = tt_torch.compile_model(model, (x,), training=True)
    run(x)
    tt_torch.release(model)
    assert model.running_mean.ne(0).any()
    before = model.running_mean.clone()
    run(x)
    assert model.running_mean.ne(before).any()


def test_weights_that_move() -> None:
    model, x = tied()
    expected = model(x).detach()
    run = tt_torch.compile_model(model, (x,), weights="move")
    assert type(model.first.weight) is nn.Parameter
    with pytest.raises(IndexError):
        run(x + 1000)
    before = run(x)
    torch.testing.assert_close(before, expected)
    assert isinstance(model.first.weight, ReleasedWeight)
    assert run(x).equal(before)


def test_weights_do_not_move_in_an_eager_call() -> None:
    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.weight * (x * x)

    model = Product()
    run = tt_torch.compile_model(model, (torch.ones(4, dtype=torch.int64),), weights="move")
    large = torch.full((4,), 2**20)
    with pytest.warns(tt_torch.driver.exact_runner.ExactnessWarning):
        torch.testing.assert_close(run(large), model(large).detach())
    assert type(model.weight) is nn.Parameter
    run(torch.ones(4, dtype=torch.int64))
    assert type(model.weight) is ReleasedWeight
    with pytest.raises(ReleasedWeightError, match="needs the values of weight"):
        run(large)


def test_weights_that_cannot_move() -> None:
    model, x = tied()
    for weights in ("away", [], [".safetensors/away"]):  # no path is what a pattern gives that no file has
        with pytest.raises(ConfigError, match='takes "keep", "move", or paths that end'):
            tt_torch.compile_model(model, (x,), weights=weights)
    size = {"x": {0: torch.export.Dim("batch", min=1, max=2)}}
    for given, options in ((model, {"training": True}), (model, {"dynamic_shapes": size}), (model.forward, {})):
        with pytest.raises(ConfigError, match=r"tt_torch.release serves others"):
            tt_torch.compile_model(given, (x,), weights="move", **options)


def test_programs_of_torch_compile_are_refused() -> None:
    model, x = tied()
    run = torch.compile(model, backend="tt")
    with torch.no_grad():
        before = run(x)
        with pytest.raises(ReleaseError, match=r"a weight of a program of torch\.compile"):
            tt_torch.release(model)
        assert run(x).equal(before)


def test_a_callback_and_compare_weights() -> None:
    model, x = tied()
    run = tt_torch.compile_model(model, (x,), options={"compare_weights": True})
    before = run(x)
    tt_torch.release(model)
    seen: list[str] = []
    run.executor.watched.set_callback(lambda op, *_: seen.append(op))
    torch.testing.assert_close(run(x), before)
    run.executor.watched.set_callback(None)
    assert seen
    assert run(x).equal(before)

"""Packages: a model that was saved and loaded does the same as the original model."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import register_pytree_node
from transformers.modeling_outputs import BaseModelOutput

import tt_torch
from tests.driver.test_aot_calls import Batch, Counter, X, nested, same
from tt_torch.errors import (
    ArgumentError,
    InexactError,
    InputDtypeError,
    InputShapeError,
    PackageError,
    PackagingError,
    TracingError,
)
from tt_torch.torch_private.tensors import FakeTensorMode

Pair = namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Sample(OrderedDict[str, Tensor]):
    """A class of results like those of Diffusers. PyTorch does not know the names of its parts."""

    sample: Tensor

    def __post_init__(self) -> None:
        self["sample"] = self.sample


register_pytree_node(Sample, lambda x: ([*x.values()], [*x]), lambda x, keys: Sample(**dict(zip(keys, x, strict=True))))


def test_a_package_needs_neither_the_model_nor_the_compiler(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Batch:
            return Batch(self.linear(x))

    model = Model().eval()
    tt_torch.compile_model(model, (X,)).save(tmp_path / "model.ttpkg")
    torch.save((X, model(X).ids.detach()), tmp_path / "expected.pt")
    code = """
import sys, torch, tt_torch
x, expected = torch.load("expected.pt")
found = tt_torch.load("model.ttpkg")(x)
torch.testing.assert_close(found.ids, expected)
assert type(found).__name__ == "Batch" and found.scale == 2.0 and type(found) is type(tt_torch.load("model.ttpkg")(x))
assert not {"torch_mlir", "torch._dynamo", "transformers"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_nested_arguments_and_results(package: Callable[..., Any]) -> None:
    loaded = package(nested, Batch(X), X + 1, y=[X * 2])
    found, expected = loaded(Batch(X + 5), X + 2, y=[X * 3]), nested(Batch(X + 5), X + 2, y=[X * 3])
    same(dataclasses.astuple(found[0]), dataclasses.astuple(expected[0]))
    same(found[1], expected[1])
    same(tuple(found[2].pop("n")), tuple(expected[2].pop("n")))
    same(found[2], expected[2])
    with pytest.raises(InputShapeError, match=r"batch\.ids has the shape \(2, 4\)"):
        loaded(Batch(X[:2]), X + 1, y=[X])
    with pytest.raises(ArgumentError, match=r"batch\.scale is float 3\.0"):
        loaded(Batch(X, 3.0), X + 1, y=[X])


@pytest.mark.parametrize(
    "make",
    [BaseModelOutput, Sample, lambda x: torch.max(x, 0), lambda x: Pair(x, None), lambda x: {1: x, None: (x, [])}],
)
def test_classes_of_results(package: Callable[..., Any], make: Callable[[Tensor], Any]) -> None:
    found, expected = package(lambda x: make(x * 2), X)(X), make(X * 2)
    if type(expected) is Pair:
        assert type(found).__name__ == "Pair" and found.second is None
        same(found.first, expected.first)
    else:
        same(found, expected)


def test_an_argument_that_is_only_returned(package: Callable[..., Any]) -> None:
    loaded = package(lambda x, batch: (x * 2, batch.ids), X, Batch(X))
    assert loaded(X, Batch(ids := X + 1))[1] is ids


def test_a_view_beside_the_graph_is_refused(package: Callable[..., Any]) -> None:
    with pytest.raises(PackagingError, match=r"the result\[1\] is a tensor that Python makes beside the graph"):
        package(lambda x: (x * 2, x.T), X)


class ReturnsWeights(nn.Module):
    """A module that returns two weights. It computes with one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(4))
        self.register_buffer("table", torch.rand(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        return x * self.scale, self.scale, {"table": self.table}


@pytest.mark.parametrize("training", [False, True])
def test_weights_among_the_results(package: Callable[..., Any], training: bool) -> None:
    model = ReturnsWeights()
    with torch.set_grad_enabled(training):
        loaded = package(model, X)
        found, expected = loaded(X), model(X)
    torch.testing.assert_close(found, expected, check_stride=False)
    state = {name: x + 1 for name, x in model.state_dict().items()}
    loaded.load_state_dict(state)
    found = loaded(X)
    assert torch.equal(found[1], state["scale"]) and torch.equal(found[2]["table"], state["table"])


def test_buffers_change_in_the_loaded_model_only(package: Callable[..., Any], tmp_path: Path) -> None:
    model = nn.BatchNorm1d(4, momentum=0.3)
    loaded = package(model, X)
    content = (tmp_path / "model.ttpkg").read_bytes()
    for x in (X, X * 2 + 1):
        torch.testing.assert_close(loaded(x), model(x).detach())
    for name, value in model.named_buffers():
        torch.testing.assert_close(loaded.weights[name], value)
    assert (tmp_path / "model.ttpkg").read_bytes() == content
    assert not tt_torch.load(tmp_path / "model.ttpkg").weights["running_mean"].any()


def test_changed_arguments_and_shared_memory(package: Callable[..., Any]) -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        both = x * 2
        return both, both[1:], both.diagonal(), y.add_(1)[0], y, x[:, 1], both.T

    loaded = package(function, X, X.clone())
    x, y, own = X + 3, X * 5, X * 5
    found, expected = loaded(x, y), function(x, own)
    same(found, expected)
    same(y, own)
    assert found[4] is y and found[5].data_ptr() == x[:, 1].data_ptr()
    found[0].zero_()
    assert not found[1].any() and not found[2].any() and not found[6].any()
    with pytest.raises(ArgumentError, match="writes to y, which shares memory with x"):
        loaded(y, y)


def test_results_on_the_device_share_memory(package: Callable[..., Any]) -> None:
    found = package(lambda x: (lambda y: (y, y[1:], y[0].expand(4, 4)))(x + 1), X.to("tt"))(X.to("tt"))
    found[0].fill_(5)
    assert all((x.cpu() == 5).all() for x in found)


def test_views_without_their_memory(package: Callable[..., Any]) -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        hidden = (x * 2).reshape(-1)
        return hidden[2:6], hidden[4:9], hidden[:1].expand(3), hidden.unfold(0, 3, 2)

    found, expected = package(function, X)(X), function(X)
    same(found, expected)
    found[0].zero_()
    expected[0].zero_()
    same(found[1], expected[1])
    same(found[3], expected[3])


def test_views_in_another_dtype(package: Callable[..., Any]) -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        z = torch.complex(x, x + 1)
        return z.imag, z.real[1:], z.conj(), z.conj().imag, (y := x * 2), y.view(torch.int32)[0]

    found, expected = package(function, X)(X), function(X)
    for results in (found, expected):
        results[0].mul_(2)
        results[5].zero_()
    torch.testing.assert_close(found[:2] + found[4:], expected[:2] + expected[4:])
    z = torch.complex(X, X + 1)
    torch.testing.assert_close(
        found[2:4], (z.conj(), z.conj().imag)
    )  # a package gives conjugates a memory of their own


def test_complex_numbers_random_numbers_and_checks(package: Callable[..., Any]) -> None:
    z = torch.randn(3, dtype=torch.complex64)
    torch.testing.assert_close(package(lambda z: (z * 2j, z.conj() + 1), z)(z.conj()), (z.conj() * 2j, z + 1))

    def noisy(x: Tensor) -> Tensor:
        return x + torch.rand(4) + torch.nn.functional.dropout(x)

    compiled, loaded = tt_torch.compile_model(noisy, (X,)), package(noisy, X)
    torch.manual_seed(3)
    first = compiled(X)
    torch.manual_seed(3)
    same(loaded(X), first)
    assert not torch.equal(loaded(X), first)

    inverse = package(torch.linalg.inv, torch.eye(3))
    torch.testing.assert_close(inverse(torch.eye(3) * 2), torch.eye(3) / 2)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        inverse(torch.zeros(3, 3))


def test_integers_that_would_not_be_exact_are_an_error(package: Callable[..., Any]) -> None:
    loaded = package(lambda count: count * 3, torch.ones(2, dtype=torch.int64))
    same(loaded(torch.tensor([5, 6])), torch.tensor([15, 18]))
    with pytest.raises(InexactError, match="count"):
        loaded(torch.tensor([2**40, 1]))
    loaded = package(lambda x: (x * 2).to(torch.int64), torch.ones(2))
    same(loaded(torch.tensor([1.0, 2.0])), torch.tensor([2, 4]))
    with pytest.raises(InexactError):
        loaded(torch.tensor([1e30, 1.0]))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head, self.unused = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False), nn.Linear(2, 2)
        self.head.weight = self.embedding.weight
        self.register_buffer("shift", torch.arange(5.0), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.embedding(ids)) + self.shift


def test_weights_of_a_checkpoint_map_by_name(package: Callable[..., Any]) -> None:
    ids, model, other = torch.tensor([[1, 4]]), Tied().eval(), Tied().eval()
    loaded = package(model, ids, weights=False)
    assert set(loaded.weights) == {"shift"}
    with pytest.raises(PackageError, match="no weights"):
        loaded(ids)
    loaded.load_state_dict(other.state_dict())
    torch.testing.assert_close(loaded(ids), other(ids).detach())
    state = other.state_dict()
    del state["embedding.weight"]
    loaded.load_state_dict(state)  # by the other name of the same weight
    with pytest.raises(PackageError, match=r"no embedding\.weight"):
        loaded.load_state_dict({})
    with pytest.raises(InputShapeError, match=r"head\.weight has the shape"):
        loaded.load_state_dict({"head.weight": torch.ones(5, 5)})
    with pytest.raises(InputDtypeError, match=r"head\.weight has the dtype"):
        loaded.load_state_dict({"head.weight": torch.ones(5, 4, dtype=torch.float64)})
    for value, problem in (
        (torch.ones(5, 4, device="meta"), "is on meta, so it has no values"),
        (torch.ones(5, 4).numpy(), "is of type ndarray"),
        (torch.ones(5, 4).to_sparse(), "has the layout torch.sparse_coo"),
    ):
        with pytest.raises(ArgumentError, match=f"head.weight {problem}"):
            loaded.load_state_dict({"head.weight": value})
    with pytest.raises(PackageError, match=r"embedding\.weight and head\.weight are one weight .* different values"):
        loaded.load_state_dict({"embedding.weight": torch.zeros(5, 4), "head.weight": torch.ones(5, 4)})
    torch.testing.assert_close(loaded(ids), other(ids).detach())


def test_a_loaded_model_has_weights_of_its_own(package: Callable[..., Any]) -> None:
    ids, model = torch.tensor([[1, 4]]), Tied().eval()
    loaded, expected = package(model, ids), model(ids).detach()
    with torch.no_grad():
        model.embedding.weight.zero_()
    torch.testing.assert_close(loaded(ids), expected)
    state = model.state_dict()
    loaded.load_state_dict(state)
    with torch.no_grad():
        model.embedding.weight.fill_(1)
    torch.testing.assert_close(loaded(ids)[0, 0], torch.arange(5.0))


@pytest.mark.parametrize("place", ["on meta", "a fake tensor"])
def test_weights_without_values(place: str, tmp_path: Path) -> None:
    with torch.device("meta") if place == "on meta" else FakeTensorMode():
        model = Tied().eval()
    ids, real = torch.tensor([[1, 4]]), Tied().eval()
    before = model.state_dict(keep_vars=True)
    compiled = tt_torch.compile_model(model, (ids,))
    assert all(x is before[name] for name, x in model.state_dict(keep_vars=True).items())
    with pytest.raises(
        PackagingError, match=rf"embedding\.weight is {place}, so it has no values: save .*weights=False"
    ):
        compiled.save(tmp_path / "model.ttpkg")
    compiled.save(tmp_path / "model.ttpkg", weights=False)
    loaded = tt_torch.load(tmp_path / "model.ttpkg")
    loaded.load_state_dict({**real.state_dict(), "shift": real.shift})
    torch.testing.assert_close(loaded(ids), real(ids).detach())
    with pytest.raises(ArgumentError, match=rf"embedding\.weight is {place}, so it has no values; load_state_dict"):
        compiled(ids)
    model.embedding.weight = model.head.weight = real.head.weight
    model.shift = real.shift
    torch.testing.assert_close(compiled(ids), real(ids).detach())


class Keeps(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        self.last = x * 3
        return x * 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Keeps(), "keeps tensors in Python objects"),
        (Counter(), "keeps tensors in Python objects"),
        (lambda x: (x * 2, torch.float32), r"the result\[1\] is a dtype"),
        (lambda x: {torch.float32: x * 2}, "keys of the result"),
        (lambda x: (x * 2, x.view(torch.int32)), "a result is a view of x"),
    ],
)
def test_models_that_cannot_be_packages(package: Callable[..., Any], model: Any, message: str) -> None:
    with pytest.raises(PackagingError, match=message):
        package(model, X.clone())


def test_python_state_without_tensors_is_no_obstacle(package: Callable[..., Any]) -> None:
    class Counts(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            self.n.add_(1)
            return x + self.n

    model = Counts()
    model.register_buffer("n", torch.zeros(1))
    with pytest.warns(UserWarning, match=r"the model reads and changes model\.calls, and each call .* reads the value"):
        loaded = package(model, X)
    assert model.calls == 0 and not model.n.any()
    same([loaded(X), loaded(X)], [X + 1, X + 2])


def test_a_binary_alone_is_still_a_binary(tmp_path: Path) -> None:
    compiled = tt_torch.compile_model(lambda x: x * 2, (X,))
    compiled.save(tmp_path / "model.ttnn")
    assert (tmp_path / "model.ttnn").read_bytes() == compiled.binary
    same(tt_torch.load(tmp_path / "model.ttnn")(*compiled.arguments(X)), (X * 2,))


def test_weights_in_inference_mode(tmp_path: Path) -> None:
    """A weight that was made in inference mode has no version, so a call copies it. Weights of a package have one."""
    with torch.inference_mode():
        model = nn.Linear(4, 2)
        program = tt_torch.compile_model(model, (X,))
        program.save(tmp_path / "model.ttpkg")
        loaded = tt_torch.load(tmp_path / "model.ttpkg")
        same(loaded(X), model(X))
        for run in (program, torch.compile(model, backend="tt")):
            same(run(X), model(X))
            model.weight.add_(1)
            same(run(X), model(X))
    assert not any(weight.is_inference() for weight in loaded.weights.values())
    loaded.weights["weight"].add_(2)
    same(loaded(X), model(X))


def calls(run: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: run(x)


@pytest.mark.parametrize("trace", [lambda run: make_fx(run)(X), lambda run: torch.jit.trace(run, (X,))])
def test_a_compiled_model_cannot_be_traced(tmp_path: Path, trace: Callable[..., Any]) -> None:
    program = tt_torch.compile_model(torch.relu, (X,))
    program.save(tmp_path / "model.ttpkg")
    for run in (program, tt_torch.load(tmp_path / "model.ttpkg")):
        with pytest.raises(TracingError, match=r"cannot be traced, .*; trace the model itself"):
            trace(calls(run))
        same(run(X), torch.relu(X))

"""Calls of a model that was compiled ahead of time: their arguments and results. None of them compiles again."""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

import tt_torch
from tt_torch.errors import ArgumentError, CompileError, ConfigError, InexactError, InputDtypeError, InputShapeError
from tt_torch.torch_private.tensors import FakeTensorMode

X = torch.arange(12.0).reshape(3, 4)


@dataclasses.dataclass
class Batch:
    ids: Tensor
    scale: float = 2.0


Pair = namedtuple("Pair", ["first", "second"])


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.register_buffer("mean", torch.zeros(4))
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        self.seen += x.sum(0)
        self.mean = self.mean * 0.5 + x.mean(0)
        self.last = x * 3
        return {"double": x * 2}


def refuse(*args: object) -> object:
    raise AssertionError("something was compiled again")


@pytest.fixture
def never_again(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr("tt_torch.driver.backend.compile_graph", refuse)


def nested(batch: Batch, *more: Any, **named: Any) -> Any:
    return Batch(batch.ids * batch.scale, 7), [m + 1 for m in more], {"n": Pair(named["y"][0] - 1, None), "s": "text"}


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, Tensor):
        assert a.dtype == b.dtype and a.stride() == b.stride()
        torch.testing.assert_close(a, b)
    elif dataclasses.is_dataclass(a):
        same(vars(a), vars(b))
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


def test_nested_arguments_and_results_come_back_as_the_model_gives_them() -> None:
    args, kwargs = (Batch(X), X + 1, X[0]), {"y": [X * 2]}
    program = tt_torch.compile_model(nested, args, kwargs=kwargs)
    args, kwargs = (Batch(X + 5), X + 2, X[1]), {"y": [X * 3]}
    same(program(*args, **kwargs), nested(*args, **kwargs))


def test_a_class_that_is_a_pytree_of_pytorch() -> None:
    program = tt_torch.compile_model(lambda out: BaseModelOutput(out.last_hidden_state + 1), (BaseModelOutput(X),))
    found = program(BaseModelOutput(X * 2))
    assert isinstance(found, BaseModelOutput) and found.to_tuple() == (found.last_hidden_state,)
    torch.testing.assert_close(found.last_hidden_state, X * 2 + 1)


CHANGED: list[tuple[Any, type[Exception], str]] = [
    ({"batch": Batch(X[:2])}, InputShapeError, r"batch\.ids has the shape \(2, 4\)"),
    ({"batch": Batch(X.double())}, InputDtypeError, r"batch\.ids has the dtype torch\.float64"),
    ({"batch": Batch(X.numpy())}, ArgumentError, r"batch\.ids is of type ndarray, but the .* a tensor of shape \(\d"),
    ({"batch": Batch(X, 2)}, ArgumentError, r"batch\.scale is int 2, but the model was compiled for float 2\.0"),
    ({"batch": Batch(X, 3.0)}, ArgumentError, r"batch\.scale is float 3\.0"),
    ({"batch": X}, ArgumentError, "batch is a tensor of shape"),
    ({"batch": Batch([X])}, ArgumentError, r"batch\.ids is list of 1"),
    ({"batch": None}, ArgumentError, "batch is NoneType None"),
    ({"y": (X,)}, ArgumentError, r"named\['y'\] is tuple of 1"),
    ({"y": [X, X]}, ArgumentError, r"named\['y'\] is list of 2"),
    ({"y": [X], "z": 1}, ArgumentError, r"named is dict with 'y', 'z'"),
    ({"y": [X.to_sparse()]}, ArgumentError, r"named\['y'\]\[0\] has the layout torch\.sparse_coo"),
    (
        {"y": [torch.nested.nested_tensor([X], layout=torch.jagged)]},
        ArgumentError,
        r"named\['y'\]\[0\] is a nested tensor",
    ),
    ({"y": [torch.empty(3, 4, device="meta")]}, ArgumentError, r"named\['y'\]\[0\] is on meta"),
]


@pytest.mark.parametrize(("change", "error", "message"), CHANGED)
def test_other_arguments_are_errors_that_name_them(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    program = tt_torch.compile_model(nested, (Batch(X),), kwargs={"y": [X]})
    program(Batch(X), y=[X])
    with pytest.raises(error, match=message):
        program(**{"batch": Batch(X), "y": [X]} | change)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (
            torch.ones(5, 4),
            InputShapeError,
            r"0\.weight has the shape \(5, 4\), but the model was compiled for \(2, 4\)",
        ),
        (torch.ones(2, 4).bfloat16(), InputDtypeError, r"0\.weight has the dtype torch\.bfloat16"),
        (None, ArgumentError, r"0\.weight is None"),
    ],
)
def test_weights_of_another_form_are_errors_that_name_them(
    weight: Tensor | None, error: type[Exception], message: str
) -> None:
    model = nn.Sequential(nn.Linear(4, 2)).eval()
    program = tt_torch.compile_model(model, (X,))
    model[0].weight = None if weight is None else nn.Parameter(weight)
    with pytest.raises(error, match=message):
        program(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((nn.Identity(), X), r"args=<class 'torch\.Tensor'> .* such as \(x,\)"),
        (("model.py:Model", (X,)), "model='model.py:Model' is not accepted"),
    ],
)
def test_what_is_no_call_of_a_model_is_an_error(given: tuple[Any, ...], message: str) -> None:
    """The rows of a tensor would be arguments: a batch of one row would be compiled without its batch."""
    with pytest.raises(ConfigError, match=message):
        tt_torch.compile_model(*given)


def test_missing_and_additional_arguments_are_errors() -> None:
    program = tt_torch.compile_model(lambda x, y=None, scale=2: x * scale, (X,))
    same(program(x=X), X * 2)
    with pytest.raises(ArgumentError, match="x is missing"):
        program()
    with pytest.raises(ArgumentError, match="y is given, but the model was compiled without it"):
        program(X, X)
    with pytest.raises(ArgumentError, match="'z'"):
        program(X, z=1)


def test_positions_and_names_of_arguments_are_the_same() -> None:
    program = tt_torch.compile_model(lambda x, y, *, z: x - y * z, kwargs={"y": X + 1, "z": X, "x": X[0]})
    same(program(X[1], y=X, z=X), X[1] - X * X)


def test_the_order_of_keys_does_not_matter() -> None:
    program = tt_torch.compile_model(lambda d: d["a"] - d["b"], ({"a": X, "b": X + 1},))
    same(program({"b": X, "a": X * 2}), X)
    with pytest.raises(ArgumentError, match="d is OrderedDict with 'a', 'b', but the model was compiled for dict"):
        program(OrderedDict(a=X, b=X))


def test_an_object_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(CompileError, match="cache is a Counter"):
        tt_torch.compile_model(lambda x, cache: x, (X, Counter()))


def test_the_same_tensor_twice_is_not_a_condition() -> None:
    program = tt_torch.compile_model(lambda x, y: x - y, (X, X))
    same(program(X, X + 1), X - (X + 1))
    same(program(X, X), X - X)


def test_nothing_compiles_again(never_again: Callable[[], None]) -> None:
    program = tt_torch.compile_model(lambda x: torch.relu(x @ x.T), (X,))
    never_again()
    torch._dynamo.reset()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with torch.autocast("cpu", torch.bfloat16), torch.enable_grad(), torch.device("meta"):
            found = program(X)
    finally:
        torch.set_num_threads(threads)
    same(found, torch.relu(X @ X.T))
    with torch.inference_mode():
        same(program(X), torch.relu(X @ X.T))


def test_the_model_does_not_run_and_its_state_stays() -> None:
    class Loud(Counter):
        def forward(self, x: Tensor) -> dict[str, Tensor]:
            assert torch.compiler.is_compiling()
            return super().forward(x)

    model, x = Loud(), X.clone()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    tt_torch.compile_model(model, (x,))
    assert model.last is None
    same(dict(model.state_dict()), dict(state))
    same(x, X)


def test_buffers_and_attributes_change_at_calls() -> None:
    ours, eager = Counter(), Counter()
    seen = ours.seen
    program = tt_torch.compile_model(ours, (X,))
    for x in (X, X + 1, X * 2):
        same(program(x), eager(x))
        same(ours.last, eager.last)
    same(dict(ours.state_dict()), dict(eager.state_dict()))
    assert ours.seen is seen


def test_changed_arguments_change_for_the_caller() -> None:
    def change(cache: dict[str, Tensor], rows: list[Tensor]) -> Tensor:
        cache["k"].add_(1)
        cache["new"] = cache["k"] * 2
        rows.append(cache["k"] + rows[0])
        return rows[0]

    program = tt_torch.compile_model(change, ({"k": X.clone()}, [X.clone()]))
    cache, rows = {"k": X * 5}, [X * 7]
    found = program(cache, rows)
    assert found is rows[0] and list(cache) == ["k", "new"]
    same(cache, {"k": X * 5 + 1, "new": (X * 5 + 1) * 2})
    same(rows, [X * 7, X * 12 + 1])


def test_a_changed_argument_must_not_share_memory() -> None:
    program = tt_torch.compile_model(lambda x, y: x.add_(1) + y, (X.clone(), X.clone()))
    x = X.clone()
    same(program(x, X), X + 1 + X)
    for y in (x, x.view(3, 4), x[:]):
        with pytest.raises(ArgumentError, match="writes to x, which shares memory with y"):
            program(x, y)
    same(x, X + 1)


def test_results_share_the_memory_of_arguments_as_in_eager() -> None:
    program = tt_torch.compile_model(lambda x: (x[1:], x * 2, x), (X,))
    x = X.clone()
    view, double, given = program(x)
    assert given is x and view.data_ptr() == x[1].data_ptr()
    same((view, double), (X[1:], X * 2))
    for other in (X.T.contiguous().T, torch.cat([X, X])[3:]):
        with pytest.raises(ArgumentError, match="x has the strides"):
            program(other)


def test_other_strides_are_the_same_values() -> None:
    program = tt_torch.compile_model(lambda x: x * 2, (X,))
    torch.testing.assert_close(program(X.T.contiguous().T), X * 2)


@pytest.mark.parametrize("device", ["meta", "fake"])
def test_examples_without_values(device: str) -> None:
    with FakeTensorMode() if device == "fake" else torch.device("meta"):
        x = torch.empty(3, 4)
    program = tt_torch.compile_model(lambda x: x * 2 + 1, (x,))
    same(program(X), X * 2 + 1)


def test_an_exported_program() -> None:
    model = nn.Linear(4, 2)
    program = tt_torch.compile_model(torch.export.export(model, (X,)), (X,))
    same(program(X), model(X).detach())


def test_an_exported_program_has_examples_of_its_own() -> None:
    class Scale(nn.Module):
        def forward(self, x: Tensor, *, scale: Tensor) -> Tensor:
            return x * scale

    scale = torch.tensor([2.0])
    program = tt_torch.compile_model(torch.export.export(Scale(), (X,), {"scale": scale}))
    same(program(X, scale=scale), X * 2)
    with pytest.raises(InputShapeError, match=r"\(1, 4\), but the model was compiled for \(3, 4\)"):
        program(X[:1], scale=scale)


class Overlapping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        both = torch.ones(6, 4)
        self.register_buffer("first", both[:4])
        self.register_buffer("second", both[2:])

    def forward(self, x: Tensor) -> Tensor:
        self.first.add_(1)
        return x @ self.first + x @ self.second


def test_weights_that_are_written_to_and_overlap_are_refused() -> None:
    with pytest.raises(CompileError, match="the model writes to first and second, which overlap in memory"):
        tt_torch.compile_model(Overlapping(), (X,))


def test_a_model_in_train_mode_is_told() -> None:
    with pytest.warns(UserWarning, match=r"in train mode.* results have no gradients; .*training=True"):
        tt_torch.compile_model(nn.Linear(4, 2), (X,))
    model = nn.Sequential(nn.Linear(4, 2), nn.Dropout()).eval()
    model[1].train()
    with pytest.warns(UserWarning, match="the part 1 of the model is in train mode"):
        tt_torch.compile_model(model, (X,))


def test_gradients_that_results_will_not_have_are_told(tmp_path: Path) -> None:
    required, told = X.clone().requires_grad_(), r"gradients are required for batch\['x'\], but .*training=True"

    def double(batch: dict[str, Tensor]) -> Tensor:
        return batch["x"] * 2

    with pytest.warns(UserWarning, match=told):
        tt_torch.compile_model(double, ({"x": required},))
    program = tt_torch.compile_model(double, ({"x": X},))
    program.save(tmp_path / "double.ttpkg")
    for each in (program, tt_torch.load(tmp_path / "double.ttpkg")):
        with pytest.warns(UserWarning, match=told):
            assert not each({"x": required}).requires_grad
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("error")
            each({"x": required})
            each({"x": X})


def test_weights_are_those_of_the_model() -> None:
    model = nn.Linear(4, 2).eval()
    program = tt_torch.compile_model(model, (X,))
    with torch.no_grad():
        model.weight.mul_(2)
    model.bias = nn.Parameter(torch.ones(2))
    same(program(X), model(X).detach())


def test_options_of_the_backend() -> None:
    options = tt_torch.BackendOptions(compiler_config=tt_torch.CompilerConfig(dtype="bf16"))
    assert tt_torch.compile_model(lambda x: x + 0.001, (X,), options=options)(X)[0, 1] == 1
    for other in (
        {"buckets": {"x.0": (4,)}},
        {"fallback": "strict-dtype"},
        {"device_map": {"": 0}},
        {"async_mode": True},
    ):
        with pytest.raises(ConfigError, match=f"{next(iter(other))}=.*its default in compile_model"):
            tt_torch.compile_model(lambda x: x + 1, (X,), options=other)
    with pytest.raises(ConfigError):
        tt_torch.compile_model(lambda x: x, (X,), tt_torch.CompilerConfig(), options=options)


def test_numbers_that_would_not_fit_run_in_eager() -> None:
    program = tt_torch.compile_model(lambda x: x * 3, (torch.ones(2, dtype=torch.int64),))
    with pytest.warns(UserWarning, match="runs in eager PyTorch"):
        same(program(torch.tensor([2**40, 1])), torch.tensor([3 * 2**40, 3]))
    with pytest.raises(InexactError):
        program.arguments(torch.tensor([2**40, 1]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x[:n],
        lambda x, n: x * n.item(),
        lambda x, n: x + torch.arange(n).sum(),
        lambda x, n: torch.roll(x, int(n)),
        lambda x, n: x.narrow(0, n, 1),
    ],
)
def test_the_value_of_a_tensor_never_becomes_a_constant(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    with pytest.raises(CompileError, match="depends on values"):
        tt_torch.compile_model(function, (X, torch.tensor(2)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float64, torch.float32])
def test_scalars(dtype: torch.dtype) -> None:
    program = tt_torch.compile_model(lambda x, n: torch.relu(n) * x, (X, torch.tensor(1, dtype=dtype)))
    for n in (2, 3):
        scale = torch.tensor(n, dtype=dtype)
        torch.testing.assert_close(program(X, scale), X * scale)

"""compile_model: its calls are independent of each other, and arguments keep the names that the model gives them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import CompileError

MANY = 12  # Dynamo gives up after eight compilations of one function


class Scaled(nn.Module):
    def __init__(self, size: int = 4) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x: Tensor, scale: float = 2.0, **more: Tensor) -> Tensor:
        return self.linear(x) * scale + sum(more.values())


def test_many_shapes_of_one_model() -> None:
    model = Scaled()
    for n in range(1, MANY):
        x = torch.randn(n, 4)
        torch.testing.assert_close(tt_torch.compile_model(model, (x,))(x), model(x))


def test_threads_may_compile_at_once() -> None:
    """PyTorch's tracers patch torch.nn.Module for all threads, so one thread compiles at a time."""
    config = CompilerConfig()

    def differs(number: int) -> bool:
        model, x = nn.Sequential(nn.Linear(4 + number, 3), nn.GELU()), torch.randn(2, 4 + number)
        config.optimization_level = number % 2  # each compilation reads its own copy of the shared object
        ahead = tt_torch.compile_model(model, (x,), config)
        later = torch.compile(model, backend=tt_torch.backend, options=config)
        return any(not torch.allclose(run(x), model(x), atol=1e-5) for run in (ahead, later))

    with ThreadPoolExecutor(4) as threads:
        assert not any(threads.map(differs, range(4)))


def test_many_instances_of_one_class() -> None:
    x = torch.randn(2, 4)
    models = [nn.Sequential(nn.Linear(4, n)) for n in range(1, MANY)]
    compiled = [tt_torch.compile_model(model, (x,)) for model in models]
    for model, program in zip(models, compiled, strict=True):
        torch.testing.assert_close(program(x), model(x))


def test_after_the_users_own_compilations_have_reached_the_limit() -> None:
    model, x = Scaled(), torch.randn(3, 4)
    own = torch.compile(model, backend="eager", dynamic=False)
    for n in range(1, MANY):
        own(torch.randn(n, 4))
    torch.testing.assert_close(tt_torch.compile_model(model, (x,))(x), model(x))
    own(x)


@pytest.mark.parametrize("args", [(), (3.0,)])
@pytest.mark.parametrize("kwargs", [{}, {"more": torch.ones(4)}])
def test_arguments_by_position_and_by_name(args: tuple, kwargs: dict[str, Any]) -> None:
    model, x = Scaled(), torch.randn(3, 4)
    program = tt_torch.compile_model(lambda x: model(x, *args, **kwargs), (x,))
    torch.testing.assert_close(program(x), model(x, *args, **kwargs))


def test_hooks_run() -> None:
    model, x = Scaled(), torch.randn(3, 4)
    model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    torch.testing.assert_close(tt_torch.compile_model(model, (x,))(x), model(x))


@pytest.mark.parametrize("function", [torch.neg, lambda *x: -x[0], lambda x, /: -x], ids=["C", "any", "positional"])
def test_functions_whose_arguments_have_no_names(function: Any) -> None:
    x = torch.randn(3)
    torch.testing.assert_close(tt_torch.compile_model(function, (x,))(x), -x)


def test_code_that_no_module_has() -> None:
    """A program that runs by `exec`, such as a snippet of a page, has code like this."""
    defined: dict[str, Any] = {"__name__": "/no/module", "torch": torch, "shift": torch.ones(3)}
    exec("def function(x): return torch.relu(x) + shift", defined)
    exec("class Model(torch.nn.Module):\n  def forward(self, x): return function(x)", defined)
    for model in (defined["function"], defined["Model"]()):
        assert torch.equal(tt_torch.compile_model(model, (torch.ones(3),))(torch.ones(3)), torch.full((3,), 2.0))


def test_locations_of_ops_name_no_file_of_ours() -> None:
    binary = tt_torch.compile_model(nn.Sequential(nn.ReLU()), (torch.ones(3),)).binary
    assert b"relu" in binary and b"aot.py" not in binary


def test_messages_use_the_names_of_the_models_arguments(recwarn: pytest.WarningsRecorder) -> None:
    count = torch.tensor([3])
    program = tt_torch.compile_model(lambda how_many: how_many * 2, (count,))
    assert program(torch.tensor([2**40])) == 2**41
    assert "how_many" in str(recwarn[-1].message)


@pytest.mark.parametrize("model", [lambda x: x[x[0].long()], lambda x: x * 2 if x.sum() > 0 else x])
def test_a_model_that_is_no_graph_is_a_compile_error(model: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(CompileError, match="cannot be captured as one graph"):
        tt_torch.compile_model(model, (torch.ones(3),))


def test_the_error_of_a_graph_break_names_its_line_and_not_dynamos_internals() -> None:
    with pytest.raises(CompileError) as raised:
        tt_torch.compile_model(lambda x: print("hello") or x + 1, (torch.ones(3),))
    reason, line, advice = str(raised.value).split("\n")
    assert "`print`" in reason and line.startswith(f"  at {__file__}:") and "`tt-torch explain`" in advice


@pytest.mark.parametrize("function", [torch.nonzero, lambda x: x[x > 0], torch.combinations])
def test_shapes_that_depend_on_values_are_refused(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(CompileError, match="depends on values"):
        tt_torch.compile_model(function, (torch.tensor([1.0, 0.0, 3.0]),))


def test_recurrent_layers_are_unrolled() -> None:
    model, x = torch.nn.LSTM(4, 5), torch.randn(2, 3, 4)
    with torch.no_grad():
        torch.testing.assert_close(tt_torch.compile_model(model, (x,))(x), model(x), rtol=1e-4, atol=1e-4)


def test_repr_has_the_forms_of_the_arguments(tmp_path):
    def product(x, scale, *, y):
        return x * scale @ y

    compiled = tt_torch.compile_model(product, (torch.ones(2, 4), 3), kwargs={"y": torch.ones(4, 3)})
    compiled.save(tmp_path / "product.ttpkg")
    compiled.save(tmp_path / "product.ttnn")
    arguments = "x: float32 [2, 4], y: float32 [4, 3]"
    assert repr(compiled) == f"CompiledModel({arguments})"
    assert repr(tt_torch.load(tmp_path / "product.ttpkg")) == f"LoadedModel({arguments})"
    loaded = repr(tt_torch.load(tmp_path / "product.ttnn"))
    assert loaded == "LoadedProgram(float32 [2, 4], float32 [4, 3] -> float32 [2, 3])"

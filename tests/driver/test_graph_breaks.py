"""A warning reports each graph break at the user's line with Dynamo's reason, and `fallback="error"` refuses it.

Breaks that somebody asks for are neither reported nor refused.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import TestCase

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.graph_breaks import GraphBreakWarning
from tt_torch.errors import GraphBreakError
from tt_torch.torch_private.graph_breaks import Left

X = torch.ones(3)
STRICT = {"compiler_config": CompilerConfig(fallback="error")}
LAYER = nn.Linear(3, 3)
RAN: list[str] = []


def printing(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print("between two graphs")
    return y * 2


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 2:
        return x + 1
    return x - 1


def reading(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def looping(x: torch.Tensor) -> torch.Tensor:
    for i in range(3):
        x = x * 2 if x.mean() < i else x + i
    return x


def cleaning_up(x: torch.Tensor) -> torch.Tensor:
    try:
        y = x + 1
        print("in a try block")
        return y * 2
    finally:
        RAN.append("finally")


@contextlib.contextmanager
def context() -> Iterator[None]:
    yield


def inside_a_context(x: torch.Tensor) -> torch.Tensor:
    with context():
        y = x + 1
        print("in a context")
        return y * 2


def copying(x: torch.Tensor) -> torch.Tensor:
    return copy.deepcopy(x) + 1


def forking(x: torch.Tensor) -> torch.Tensor:
    with torch.random.fork_rng():
        return x + 1


def outer(x: torch.Tensor) -> torch.Tensor:
    return printing(x) + 1


def whole(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def told(function: Callable[..., Any], *calls: tuple[Any, ...], **options: Any) -> list[GraphBreakWarning]:
    """The warnings of some calls of a compiled function. The results must equal the results of eager PyTorch."""
    torch.compiler.reset()
    compiled = torch.compile(function, backend="tt", **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for arguments in calls:
            torch.testing.assert_close(compiled(*arguments), function(*arguments))
    return [w.message for w in caught if isinstance(w.message, GraphBreakWarning)]


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    torch.compiler.reset()
    return torch.compile(function, backend=tt_torch.backend, options=STRICT)


BREAKS = [
    (printing, printing, 2, Left.LINE, "builtin operator `print`"),
    (branching, branching, 1, Left.LINE, "Data-dependent branching: Detected"),
    (reading, reading, 1, Left.LINE, "Unsupported Tensor.item() call"),
    (looping, looping, 2, Left.FUNCTION, "Data-dependent branching: Detected"),
    (cleaning_up, cleaning_up, 3, Left.FUNCTION, "builtin operator `print`"),
    (inside_a_context, inside_a_context, 3, Left.FUNCTION, "builtin operator `print`"),
    (copying, copying, 1, Left.LINE, "Attempted to copy.deepcopy a tensor"),
    (outer, printing, 2, Left.LINE, "builtin operator `print`"),
]


@pytest.mark.parametrize(
    ("function", "code", "line", "left", "reason"), BREAKS, ids=[function.__name__ for function, *_ in BREAKS]
)
def test_a_break_is_told_at_its_line_and_is_refused(
    function: Callable[..., Any], code: Any, line: int, left: Left, reason: str, capsys: pytest.CaptureFixture
) -> None:
    place = f"{__file__}:{code.__code__.co_firstlineno + line}"
    torch.compiler.reset()
    with pytest.warns(GraphBreakWarning) as caught:
        torch.testing.assert_close(torch.compile(function, backend="tt")(X), function(X))
    first = caught[0]
    assert f"{first.filename}:{first.lineno}" == place
    found = first.message.graph_break
    assert (found.location, found.left) == (place, left) and reason in found.reason
    assert "Hint" not in str(found) and "\n" not in str(found)
    capsys.readouterr()
    RAN.clear()
    with pytest.raises(GraphBreakError) as refused:
        strict(function)(X)
    assert f"at {place}\n" in str(refused.value) and reason in str(refused.value)
    assert capsys.readouterr().out == "" and not RAN  # nothing of the function has run


def test_after_a_refusal_the_process_goes_on() -> None:
    compiled = strict(printing)
    for _ in range(2):
        with pytest.raises(GraphBreakError):
            compiled(X)
    torch.testing.assert_close(strict(whole)(X), whole(X))


def test_nothing_that_comes_after_a_break_is_hidden() -> None:
    """The second break is in the function that Dynamo makes of the code after the first break."""

    def two(x: torch.Tensor) -> torch.Tensor:
        y = printing(x) + 1
        return y * y.sum().item()

    lines = [warning.graph_break.location for warning in told(two, (X,))]
    first = f"{__file__}:{printing.__code__.co_firstlineno + 2}"
    assert lines == [first, f"{__file__}:{two.__code__.co_firstlineno + 2}"]


def test_a_function_is_left_to_python_from_the_place_where_dynamo_cannot_go_on() -> None:
    """Because of PyTorch's contexts of random states, Python runs the whole rest of a function. A warning says so."""
    torch.compiler.reset()
    with pytest.warns(GraphBreakWarning) as caught:
        torch.compile(forking, backend="tt")(X)
    assert [w.message.graph_break.left for w in caught] == [Left.LINE, Left.FUNCTION]


def test_a_line_is_told_once_until_dynamo_is_reset() -> None:
    """Each size is a program of its own, and `printing` is compiled alone, too."""
    calls = [(torch.ones(size),) for size in (2, 3, 4)]
    assert [len(told(outer, *calls, dynamic=False)) for _ in range(2)] == [1, 1]


def test_a_warning_that_is_an_error_is_raised_each_time() -> None:
    torch.compiler.reset()
    compiled = torch.compile(printing, backend="tt")
    with warnings.catch_warnings():
        warnings.simplefilter("error", GraphBreakWarning)
        for _ in range(2):
            with pytest.raises(GraphBreakWarning):
                compiled(X)


def test_lines_of_two_files_are_told_apart(tmp_path: Path) -> None:
    """Both breaks have the same text, line and reason."""
    functions = []
    for name in ("one", "two"):
        file = tmp_path / f"{name}.py"
        file.write_text("def f(x):\n    y = x + 1\n    print(1)\n    return y * 2\n")
        scope: dict[str, Any] = {}
        exec(compile(file.read_text(), file, "exec"), scope)
        functions.append(scope["f"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for function in functions:
            torch.compile(function, backend="tt")(X)
    assert [Path(w.filename).name for w in caught if w.category is GraphBreakWarning] == ["one.py", "two.py"]


def test_the_variable_covers_breaks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_FALLBACK", "error")
    torch.compiler.reset()
    with pytest.raises(GraphBreakError):
        torch.compile(printing, backend=functools.partial(tt_torch.backend, options={}))(X)


def test_options_of_a_partial_function_are_found() -> None:
    torch.compiler.reset()
    with pytest.raises(GraphBreakError):
        torch.compile(printing, backend=functools.partial(tt_torch.backend, options=STRICT))(X)


def test_a_program_of_one_graph_tells_nothing() -> None:
    assert told(whole, (X,), (torch.ones(4),), (torch.ones(2, 2),)) == []
    torch.testing.assert_close(strict(whole)(X), whole(X))


def test_the_limit_of_recompilations_is_told() -> None:
    def named(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * len(name)

    limit = torch._dynamo.config.recompile_limit
    calls = [(X, "a" * i) for i in range(limit + 3)]
    place = f"{__file__}:{named.__code__.co_firstlineno}"
    (given_up,) = told(named, *calls, dynamic=False)
    found = given_up.graph_break
    assert (found.location, found.left) == (place, Left.FUNCTION) and "recompile limit exceeded" in found.reason
    assert found.reason.endswith("counts each compiled model by itself, and `recompile_limit` allows more.")
    compiled = strict(named)
    with pytest.raises(GraphBreakError, match="recompile limit exceeded"):
        for arguments in calls:
            compiled(*arguments)
    torch.testing.assert_close(compiled(*calls[0]), named(*calls[0]))  # what was compiled before still runs


def test_models_that_share_a_function_can_count_by_themselves() -> None:
    """The advice is right: it makes ten models in one function, as in transformers, run compiled."""

    def shared(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * len(name)

    for i in range(torch._dynamo.config.recompile_limit + 2):
        run = torch.compile(shared, backend=tt_torch.backend, options=STRICT, isolate_recompiles=True)
        torch.testing.assert_close(run(X, "a" * i), X * i)


# --- what somebody asks for -----------------------------------------------------------------


@torch.compiler.disable
def disabled(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def calls_disabled(x: torch.Tensor) -> torch.Tensor:
    return disabled(x * 2) * 2


def breaks_on_purpose(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def keeps_random_states(x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    state = torch.get_rng_state()
    y = x + torch.tt.initial_seed() * 0
    on_device = torch.tt.get_rng_state()
    torch.tt.manual_seed(3)
    torch.tt.set_rng_state(on_device)
    torch.set_rng_state(state)
    return y * 2


def gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(LAYER(x).square().sum(), LAYER.weight)[0] * 2


def backward(x: torch.Tensor) -> torch.Tensor:
    LAYER.zero_grad()
    loss = LAYER(x).sum()
    loss.backward()
    return LAYER.weight.grad * 2


@pytest.mark.parametrize("function", [calls_disabled, breaks_on_purpose, keeps_random_states, gradient, backward])
def test_what_somebody_asks_for_is_neither_told_nor_refused(function: Callable[..., Any]) -> None:
    assert told(function, (X,)) == []
    torch.testing.assert_close(strict(function)(X), function(X))


def test_what_is_asked_for_is_told_if_it_costs_the_whole_function() -> None:
    def loop(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = disabled(x) * 2
        return x

    (found,) = told(loop, (X,))
    assert found.graph_break.left is Left.FUNCTION
    with pytest.raises(GraphBreakError, match=r"torch\.compiler\.disable"):
        strict(loop)(X)


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_steps_of_optimizers_are_not_refused(kind: Any, scheduled: bool) -> None:
    """PyTorch breaks the graph around each step, and skips a step that a schedule watches. The ops are compiled."""
    layers = [copy.deepcopy(LAYER) for _ in range(2)]
    optimizers = [kind(layer.parameters(), lr=0.05) for layer in layers]
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in optimizers] if scheduled else []

    def train(layer: nn.Module, optimizer: Any) -> None:
        optimizer.zero_grad()
        layer(X).square().sum().backward()
        optimizer.step()

    step = strict(train)
    for _ in range(2):
        for run, layer, optimizer in zip((step, train), layers, optimizers, strict=True):
            run(layer, optimizer)
        for schedule in schedules:
            schedule.step()
    for ours, theirs in zip(*(layer.parameters() for layer in layers), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_train_step_of_gpt2_is_not_refused() -> None:
    """A property of transformers logs a warning in the middle of the forward pass."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=11, n_positions=8)
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 11, (2, 6))

    def train(call: Callable[..., Any]) -> torch.Tensor:
        model.zero_grad()
        loss = call(input_ids=tokens, labels=tokens).loss
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    torch.testing.assert_close(train(strict(model)), train(model), rtol=1e-4, atol=1e-5)


def test_the_users_own_log_is_told() -> None:
    def logs(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        logging.getLogger(__name__).warning("a message")
        return y * 2

    assert {warning.graph_break.location for warning in told(logs, (X,))} == {
        f"{__file__}:{logs.__code__.co_firstlineno + 2}"
    }


def test_an_error_of_the_program_is_its_own() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        if y.ndim == 1:
            raise ValueError("of the program")
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("error", GraphBreakWarning)
        for compiled in (torch.compile(fails, backend="tt"), strict(fails)):
            with pytest.raises(ValueError, match="of the program"):
                compiled(X)


# --- others ---------------------------------------------------------------------------------


def test_other_backends_and_fullgraph_are_left_alone() -> None:
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", GraphBreakWarning)
        torch.compile(printing, backend="eager")(X)
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(printing, backend="tt", fullgraph=True)(X)


def test_errors_that_dynamo_is_told_to_suppress_are_logged() -> None:
    torch.compiler.reset()
    with torch._dynamo.config.patch(suppress_errors=True), TestCase().assertLogs("torch._dynamo") as logged:
        torch.testing.assert_close(strict(printing)(X), printing(X))
    assert "GraphBreakError" in "".join(logged.output)


def test_the_reason_of_a_break_is_not_a_list_of_all_backends() -> None:
    """PyTorch's dispatcher lists what it knows in its error, in some 10,000 characters."""
    told = pytest.warns(GraphBreakWarning, match=r"Could not run 'aten::empty_strided'.* \.\.\.$")
    with told as warned, pytest.raises(RuntimeError, match="quantized"):
        torch.compile(lambda x: (x * 2).to(torch.quint8), backend="tt")(X)
    assert max(len(str(warning.message)) for warning in warned) < 700

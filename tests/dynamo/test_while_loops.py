"""`while_loop` of PyTorch: device programs for condition and body, with values as in eager PyTorch."""

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from nights import seeds
from torch._higher_order_ops.while_loop import while_loop

import tt_torch
from tt_torch.driver.decisions import Loop
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import UnsupportedOpError

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
Program = Callable[..., Any]
UNARY = (torch.sin, torch.tanh, torch.relu, torch.neg, lambda y: y * 0.5, lambda y: y - 1, lambda y: y.flip(0))


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[Loop]:
    """The loops that are compiled, in order."""
    made: list[Loop] = []
    init = Loop.__init__

    def noted(self: Loop, *args: Any) -> None:
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(Loop, "__init__", noted)
    return made


def compiled(program: Program) -> Program:
    torch._dynamo.reset()
    return torch.compile(program, backend="tt")


def counted(x: torch.Tensor, n: torch.Tensor) -> Any:
    return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y.sin() + x), (torch.tensor(0), x + 1))


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("steps", [0, 1, 9])
def test_values_stay_on_the_device_between_steps(loops: list[Loop], steps: int) -> None:
    n, program = torch.tensor(steps), compiled(counted)
    torch.testing.assert_close(program(X, n), counted(X, n))
    (loop,) = loops
    assert loop.stays
    _, executor = loop.pieces
    executor.keep_arguments = True
    program(X, n)
    seen = executor.last_arguments
    assert (seen is None) == (steps == 0)
    assert all(x.device.type == "tt" for x in seen or [])


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
def test_results_of_a_loop_stay_on_the_device_if_it_reads_them(loops: list[Loop]) -> None:
    def program(x: torch.Tensor, n: torch.Tensor) -> Any:
        steps, y = counted(x, n)
        return steps, y * 2

    n, run, seen = torch.tensor(3), compiled(program), list[str]()
    torch.testing.assert_close(run(X, n), program(X, n))
    loops[0].register_forward_hook(lambda loop, inputs, results: seen.extend(x.device.type for x in results))
    run(X, n)
    assert seen == ["cpu", "tt"]


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("op", [torch.sin, lambda y: torch.linalg.eigvalsh(y[:, :3]).sum() + y])
def test_a_loop_without_a_step_gives_a_copy(op: Program) -> None:
    program = compiled(lambda x: while_loop(lambda y: y.sum() < -1e9, lambda y: (op(y),), (x,))[0])
    result = program(X)
    torch.testing.assert_close(result, X)
    assert result.data_ptr() != X.data_ptr()


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
def test_a_loop_in_a_loop() -> None:
    def program(x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, y: torch.Tensor) -> Any:
            _, z = while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * 0.5 + x), (torch.tensor(0), y * 2))
            return i + 1, z.sin()

        return while_loop(lambda i, y: i < 4, body, (torch.tensor(0), x * 1))

    torch.testing.assert_close(compiled(program)(X), program(X))


def test_explain_lists_no_loop_on_the_host() -> None:
    found = tt_torch.explain(counted, X, torch.tensor(2))
    assert not found.host_ops and not found.breaks
    assert len(found.graphs) == 1


@torch.no_grad()
def test_weights_are_on_the_device_once(loops: list[Loop]) -> None:
    layer = torch.nn.Linear(4, 4)

    def eager(x: torch.Tensor) -> torch.Tensor:
        return while_loop(lambda y: y.sum() < 50, lambda y: (layer(y).abs() + y,), (x.abs(),))[0]

    program = compiled(eager)
    torch.testing.assert_close(program(X), eager(X))
    (loop,) = loops
    assert loop.kinds == ["input", "parameter", "parameter"]
    layer.weight.mul_(2)
    torch.testing.assert_close(program(X), eager(X))
    assert len(loops) == 1


@torch.no_grad()
@pytest.mark.parametrize("start", [3, 2**33])
def test_integers_beyond_32_bits_are_as_in_eager_pytorch(start: int) -> None:
    weight = torch.nn.Parameter(torch.ones(4))  # on the CPU, while the carried tensors are on the device

    def program(k: torch.Tensor, x: torch.Tensor) -> Any:
        return while_loop(lambda k, x: k < 2**40, lambda k, x: (k * 4, x + weight), (k, x))

    k = torch.tensor(start)
    torch.testing.assert_close(compiled(program)(k, X), program(k, X))


def test_the_part_of_a_body_that_the_device_lacks_is_named() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return while_loop(lambda y: y.sum() < 99, lambda y: (torch.linalg.eigvalsh(y[:, :3]).sum() + y.abs(),), (x,))[0]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = compiled(program)(X)
    torch.testing.assert_close(got, program(X))
    ops = {op.op for w in caught if isinstance(w.message, HostFallbackWarning) for op in w.message.ops}
    assert ops == {"aten._linalg_eigh.default"}


def test_an_interrupt_between_steps_leaves_the_program_as_it_was(loops: list[Loop]) -> None:
    program, n = compiled(counted), torch.tensor(3)
    program(X, n)
    (loop,) = loops
    body, calls = loop.body, []

    def interrupted(values: list[torch.Tensor]) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return body(values)

    loop.body = interrupted
    with pytest.raises(KeyboardInterrupt):
        program(X, n)
    loop.body = body
    torch.testing.assert_close(program(X, n), counted(X, n))


def test_for_one_device_program_a_loop_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOpError, match="while_loop"):
        tt_torch.compile_model(counted, (X, torch.tensor(2)), tt_torch.CompilerConfig(profile=str(tmp_path)))


def test_gradients_are_named() -> None:
    """Eager PyTorch computes them, or an error says what to do instead."""
    x = X.clone().requires_grad_()
    with pytest.warns(HostFallbackWarning, match="cannot capture the gradient of a while_loop"):
        (result,) = torch.autograd.grad(compiled(counted)(x, torch.tensor(3))[1].sum(), x)
    (expected,) = torch.autograd.grad(counted(x, torch.tensor(3))[1].sum(), x)
    torch.testing.assert_close(result, expected)
    torch._dynamo.reset()
    refusing = torch.compile(counted, backend=tt_torch.backend, options={"fallback": "error"})
    with pytest.raises(Exception, match=r"gradient of a while_loop; call the model under torch\.no_grad\(\)"):
        refusing(x, torch.tensor(3))
    with pytest.raises(UnsupportedOpError, match=r"gradient of a while_loop.*as a scan"):
        tt_torch.compile_model(counted, (x, torch.tensor(2)), training=True)


def drawn(seed: int) -> Program:
    """A program with a loop that carries one to three tensors.

    In each step, a random chain of ops on all of them computes each tensor.
    """
    draw = random.Random(seed)
    count, steps = draw.randint(1, 3), draw.randint(0, 6)
    chains = [[(draw.choice(UNARY), draw.randrange(count)) for _ in range(draw.randint(1, 4))] for _ in range(count)]
    captures, limit = draw.random() < 0.5, draw.uniform(-5, 50)

    def program(x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, *values: torch.Tensor) -> Any:
            new = []
            for value, chain in zip(values, chains, strict=True):
                for op, other in chain:
                    value = op(value) + values[other]
                new.append(value + x if captures else value)
            return i + 1, *new

        def condition(i: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
            return (i < steps) & (values[0].mean() < limit)

        i, *values = while_loop(condition, body, (torch.tensor(0), *(x * (k + 1) for k in range(count))))
        return i, [value.cos() for value in values]

    return program


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("seed", seeds(4, 12))
def test_random_loops(seed: int) -> None:
    program = drawn(seed)
    torch.testing.assert_close(compiled(program)(X), program(X), rtol=1e-4, atol=1e-4)


def test_an_index_out_of_range_in_a_later_step_is_the_error_of_eager_pytorch() -> None:
    def program(x: torch.Tensor, n: torch.Tensor) -> Any:
        def body(i: torch.Tensor, y: torch.Tensor) -> Any:
            return i + 1, y + x.index_select(0, i.reshape(1))

        return while_loop(lambda i, y: i < n, body, (torch.tensor(0), x[:1] * 1))

    ours = compiled(program)
    with pytest.raises(IndexError, match="index out of range"):
        ours(X, torch.tensor(4))
    torch.testing.assert_close(ours(X, torch.tensor(3)), program(X, torch.tensor(3)))


def test_a_step_with_large_integers_computes_on_the_cpu(loops: list[Loop]) -> None:
    program = compiled(lambda k: while_loop(lambda k: k < 100, lambda k: (k * 4,), (k,))[0])
    assert program(torch.tensor(3)) == 192
    (loop,) = loops
    (result,) = loop.body.runner.eager(torch.tensor(3).to("tt"))
    assert result.device.type == "cpu" and result == 12

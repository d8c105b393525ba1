"""`while_loop`, `cond` and long `scan` without eager PyTorch: in `compile_model`, in packages, by `fallback`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from loop_programs import drawn, examples
from nights import often_if
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import tt_torch
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.flow_runner import FlowRunner
from tt_torch.errors import CompileError, ConfigError, InexactError, PackagingError, UnsupportedOpError
from tt_torch.flow import Run, Step
from tt_torch.mlir.stablehlo import loops

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
Program = Callable[..., Any]


class Net(torch.nn.Module):
    """Its loop reads weights. The gelu and the normalization are composites, and the second result has strides."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        def body(y: torch.Tensor) -> Any:
            return (torch.nn.functional.gelu(self.norm(self.layer(y))).abs() + y,)

        (y,) = while_loop(lambda y: y.sum() < 50, body, (x.abs(),))
        return {"y": y, "turned": y.t(), "x": x}


def counted(x: torch.Tensor, n: torch.Tensor) -> Any:
    return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y.sin() + x), (torch.tensor(0), x + 1))


def branches(x: torch.Tensor, which: torch.Tensor) -> Any:
    def yes(x: torch.Tensor) -> torch.Tensor:
        return while_loop(lambda y: y.sum() < 50, lambda y: (y * 2 + 1,), (x.abs(),))[0]

    return torch.cond(which, yes, lambda x: x.sin(), (x,))


def long(x: torch.Tensor, y: torch.Tensor) -> Any:
    return scan(lambda c, row: ((c * row).tanh() + y, c + row), x[0], x.repeat(50, 1))


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Any], Any]:
    def load(model: Any) -> Any:
        model.save(tmp_path / "model.ttpkg")
        return tt_torch.load(tmp_path / "model.ttpkg")

    return load


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that flows run, in their order."""
    names, results = list[str](), FlowRunner._results

    def noted(self: FlowRunner, step: Step, given: list[torch.Tensor]) -> Any:
        names.extend([step.program] if isinstance(step, Run) else [])
        return results(self, step, given)

    monkeypatch.setattr(FlowRunner, "_results", noted)
    return names


def parts(model: Any) -> int:
    return len(model._package.manifests[0].programs)


@pytest.mark.parametrize(
    ("program", "arguments", "several"),
    [
        (counted, [(X, torch.tensor(n)) for n in (0, 1, 9)], True),
        (lambda x: counted(x, torch.tensor(3)), [(X,)], False),  # the number of steps is known
        (branches, [(X, torch.tensor(True)), (X, torch.tensor(False))], True),
        (long, [(X, X[1])], False),
    ],
    ids=["loop", "known steps", "loop in a branch", "long scan"],
)
def test_a_model_and_its_package(saved: Any, program: Program, arguments: list[Any], several: bool) -> None:
    model = tt_torch.compile_model(program, arguments[0])
    loaded = saved(model)
    assert (parts(loaded) > 1) == several
    for given in arguments:
        torch.testing.assert_close(model(*given), program(*given))
        torch.testing.assert_close(loaded(*given), program(*given))


@torch.no_grad()
def test_weights_families_and_the_result_of_a_module(saved: Any, tmp_path: Path) -> None:
    net, other = Net().eval(), Net().eval()
    sizes = {"x": {0: torch.export.Dim("rows", min=2, max=3)}}
    family = saved(tt_torch.compile_model(net, (X,), dynamic_shapes=sizes))
    for x in (X, X[:2]):
        result, expected = family(x), net(x)
        torch.testing.assert_close(result, expected)
        assert result["turned"].stride() == expected["turned"].stride() and result["x"] is x
    family.load_state_dict(other.state_dict())
    torch.testing.assert_close(family(X)["y"], other(X)["y"])
    model = tt_torch.compile_model(net, (X,))
    for use in (lambda: model.binary, lambda: model.arguments(X), lambda: model.save(tmp_path / "model.ttnn")):
        with pytest.raises(PackagingError, match="it has several programs"):
            use()
    with pytest.raises(ConfigError, match="for a model with a loop"):
        tt_torch.compile_model(net, (X,), weights="move")


def signed(x: torch.Tensor) -> torch.Tensor:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.mean() > 1, lambda x: x * 3, torch.exp, (x,))

    return torch.cond(x.sum() > 0, inner, torch.cos, (x,)) + 1


def test_one_branch_runs(saved: Any, ran: list[str]) -> None:
    model = tt_torch.compile_model(signed, (X,))
    torch._dynamo.reset()
    one = torch.compile(signed, backend=tt_torch.backend, options={"fallback": "error"})
    sequences = set[tuple[str, ...]]()
    for ours in (model, saved(model), one):
        for x in (X.abs() + 1, X.abs() * 0.5, -X.abs()):
            ran.clear()
            torch.testing.assert_close(ours(x), signed(x))
            sequences.add(tuple(ran))
    # Before and after the branch there is a program, too. The outer branch for true begins with the inner condition.
    assert sorted(map(len, sequences)) == [3, 4, 4] and len(set.intersection(*map(set, sequences))) == 2


def test_gradients_come_from_the_branch_that_ran(saved: Any, ran: list[str]) -> None:
    model = tt_torch.compile_model(signed, (X.clone().requires_grad_(),), training=True)
    loaded = saved(model)
    for x in (X.abs() + 1, X.abs() * 0.5, -X.abs()):
        theirs = x.clone().requires_grad_()
        signed(theirs).square().sum().backward()
        for program in (model, loaded):
            ours = x.clone().requires_grad_()
            result = program(ours)
            ran.clear()
            result.square().sum().backward()
            torch.testing.assert_close(ours.grad, theirs.grad)
            assert 0 < len(ran) < len(loaded._package.manifests[0].training.backward.programs)


def test_an_error_of_the_other_branch_is_none(saved: Any) -> None:
    def row(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.cond(i < 3, lambda x, i: x.index_select(0, i.reshape(1)), lambda x, i: x[:1] * 0, (x, i))

    loaded = saved(tt_torch.compile_model(row, (X, torch.tensor(0))))
    for i in (torch.tensor(2), torch.tensor(7)):
        torch.testing.assert_close(loaded(X, i), row(X, i))


@pytest.mark.parametrize("inside", ["random", "complex"])
def test_one_branch_with_random_or_complex_numbers_runs(saved: Any, ran: list[str], inside: str) -> None:
    def yes(x: torch.Tensor) -> torch.Tensor:
        return torch.rand_like(x) if inside == "random" else (torch.complex(x, x) * 1j).real * 1

    loaded = saved(tt_torch.compile_model(lambda x: torch.cond(x.sum() > 0, yes, torch.cos, (x,)), (X,)))
    torch.testing.assert_close(loaded(-X.abs()), X.cos())
    first, second = (loaded(X.abs()) for _ in range(2))
    assert len(ran) == 6 and len(set(ran)) == 3  # the predicate, and one of two branches
    if inside == "random":
        assert 0 <= first.min() < first.max() < 1 and not torch.equal(first, second)
    else:
        torch.testing.assert_close(first, -X.abs())


def test_each_step_draws_its_own_numbers(saved: Any) -> None:
    def program(x: torch.Tensor, n: torch.Tensor) -> Any:
        """The numbers of each step, of the condition, and the steps."""

        def body(i: torch.Tensor, rows: torch.Tensor, c: torch.Tensor) -> Any:
            return i + 1, torch.cat([rows[1:], torch.rand(1, 500)]), c + torch.rand(500).mean()

        start = (torch.tensor(0), torch.zeros(4, 500), torch.tensor(0.0))
        return while_loop(lambda i, rows, c: (i < n) & (torch.rand(3).sum() < 3), body, start)

    loaded = saved(tt_torch.compile_model(program, (X, torch.tensor(4))))
    calls = list[torch.Tensor]()
    for _ in range(2):
        torch.manual_seed(3)
        steps, rows, total = loaded(X, torch.tensor(4))
        assert steps == 4 and 1.8 < total < 2.2
        assert (torch.corrcoef(rows) - torch.eye(4)).abs().max() < 0.2
        calls.append(rows)
    assert torch.equal(*calls)
    assert loaded(X, torch.tensor(0))[0] == 0


def test_a_branch_in_each_row(saved: Any) -> None:
    def program(i: torch.Tensor) -> torch.Tensor:
        """The row of X for each number, and zeros for a number that is out of range."""
        row = lambda i: X.index_select(0, i.reshape(1))[0]  # noqa: E731
        return map_rows(lambda i: torch.cond(i < 3, row, lambda i: X[0] * 0, (i,)), i)

    loaded = saved(tt_torch.compile_model(program, (torch.tensor([0, 2]),)))
    for i in (torch.tensor([2, 0]), torch.tensor([7, 1])):
        torch.testing.assert_close(loaded(i), torch.stack([X[j] if j < 3 else X[0] * 0 for j in i]))


def test_integers_beyond_32_bits(saved: Any) -> None:
    def program(k: torch.Tensor, n: torch.Tensor) -> Any:
        return while_loop(lambda i, k: i < n, lambda i, k: (i + 1, k * 3), (torch.tensor(0), k))

    k, few, many = torch.tensor([1, -2]), torch.tensor(3), torch.tensor(30)
    model = tt_torch.compile_model(program, (k, few))
    loaded = saved(model)
    torch.testing.assert_close(loaded(k, few), program(k, few))
    with pytest.warns(ExactnessWarning, match="64-bit integers of the node mul"):
        torch.testing.assert_close(model(k, many), program(k, many))
    with pytest.raises(InexactError, match="64-bit integers of the node mul"):
        loaded(k, many)
    with pytest.raises(InexactError, match=r"k \(torch.int64\) has values"):
        loaded(k * 2**40, few)


@pytest.mark.parametrize("inside", ["body", "condition", "branch"])
def test_floats_that_do_not_fit_and_indices_out_of_range(saved: Any, inside: str) -> None:
    def row(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y + X[i, torch.arange(2)].abs().sum() + 0.25

    def program(i: torch.Tensor, y: torch.Tensor) -> Any:
        if inside == "condition":
            return while_loop(lambda y: (y.sum() * 1e8).to(torch.int64) < 2e8, lambda y: (y + 0.25,), (y,))
        if inside == "branch":
            return torch.cond(y.sum() < 9, lambda y: while_loop(lambda y: y.sum() < 1, lambda y: (row(i, y),), (y,))[0],
                              lambda y: y * 2, (y,))  # fmt: skip
        return while_loop(lambda k, y: k < 2, lambda k, y: (k + 1, row(i + k, y)), (torch.tensor(0), y))

    model = tt_torch.compile_model(program, (torch.tensor([0, 1]), torch.zeros(2)))
    loaded = saved(model)
    good, bad = (torch.tensor([1, 0]), torch.full((2,), 0.125)), (torch.tensor([1, 3]), torch.full((2,), -90.0))
    torch.testing.assert_close(loaded(*good), program(*good))
    with pytest.raises(InexactError, match="an index is out of range"):
        loaded(*bad)
    if inside == "condition":
        with pytest.warns(ExactnessWarning):
            torch.testing.assert_close(model(*bad), program(*bad))
    else:
        with pytest.raises(IndexError, match="out of bounds"), pytest.warns(ExactnessWarning):
            model(*bad)


@torch.no_grad()
def test_without_eager_pytorch_in_torch_compile() -> None:
    net = Net().eval()
    ours = torch.compile(net, backend=tt_torch.backend, options={"fallback": "error"})
    torch.testing.assert_close(ours(X), net(X))
    with pytest.raises(CompileError, match="compile_depth is below EXECUTE"):
        tt_torch.compile_model(net, (X,), tt_torch.CompilerConfig(compile_depth=tt_torch.CompileDepth.TTNN_IR))


def test_gradients_of_a_long_scan(saved: Any) -> None:
    ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
    long(theirs, X[1])[1].square().sum().backward()
    loaded = saved(tt_torch.compile_model(long, (ours, X[1]), training=True))
    loaded(ours, X[1])[1].square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)


def test_a_backward_pass_with_a_loop(saved: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return scan(lambda c, r: (c * r, c + r), x[0], x.repeat(43, 1))[1]

    monkeypatch.setattr(loops, "MOST_OPS", 100)  # a shorter loop stays a loop
    ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
    loaded = saved(tt_torch.compile_model(program, (ours,), training=True))
    assert loaded._package.manifests[0].training.backward.flow
    loaded(ours)[:50].sum().backward()
    program(theirs)[:50].sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)


REFUSED: dict[str, tuple[str, Program]] = {
    "eigenvalues": ("aten._linalg_eigh", lambda y: torch.linalg.eigvalsh(y[:, :3]).sum() + y),
    "of complex": ("aten.linalg_eig.* with complex", lambda y: torch.linalg.eigvals(y[:, :3] * 1j).abs().sum() + y),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_step_cannot_have_is_named(name: str) -> None:
    words, step = REFUSED[name]
    with pytest.raises(UnsupportedOpError, match=words) as caught:
        tt_torch.compile_model(lambda x: while_loop(lambda y: y.sum() < 50, lambda y: (step(y),), (x.abs(),)), (X,))
    assert Path(__file__).name in str(caught.value)


@pytest.mark.filterwarnings("ignore::tt_torch.dynamo.exactness.plan.Float64Warning")
@pytest.mark.parametrize("seed", often_if(lambda seed: not seed, zip((0, 1, 3, 4, 5, 6))))  # Dynamo does not take 2
def test_random_programs(saved: Any, seed: int) -> None:
    program, given = drawn(seed), examples(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactnessWarning)
        model = tt_torch.compile_model(program, given[0])
        loaded = saved(model)
        for each in given:
            expected = program(*each)
            torch.testing.assert_close(tuple(model(*each)), expected, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(tuple(loaded(*each)), expected, rtol=1e-4, atol=1e-4)

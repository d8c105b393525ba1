"""Features of PyTorch together with torch.compile. Results and changed inputs are compared with eager PyTorch."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils._pytree import tree_leaves

import tt_torch
from tt_torch.driver.partition import HostFallbackWarning


def same(got: Any, expected: Any, strides: bool = True) -> None:
    values, goldens = tree_leaves(got), tree_leaves(expected)
    assert len(values) == len(goldens)
    for value, golden in zip(values, goldens, strict=True):
        if not isinstance(golden, torch.Tensor):
            assert value == golden
            continue
        assert (value.shape, value.dtype) == (golden.shape, golden.dtype)
        assert not strides or value.stride() == golden.stride()
        torch.testing.assert_close(value, golden, rtol=1e-4, atol=1e-4, equal_nan=True)


def check(function: Callable[..., Any], *inputs: Any, fullgraph: bool = True, strides: bool = True) -> None:
    """Compares compiled and eager calls on copies of the same inputs, which they may change. No op runs on the host."""
    ours, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    run = torch.compile(function, backend=tt_torch.backend, fullgraph=fullgraph)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HostFallbackWarning)
        for _ in range(2):
            same((run(*ours), ours), (function(*theirs), theirs), strides)


# --- functorch

W = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))


def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (x @ w).tanh().square().sum()


X = torch.linspace(-1, 1, 12).reshape(3, 4)
TRANSFORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "vmap": lambda x: vmap(lambda row: row.softmax(0) @ W)(x),
    "vmap in_dims": lambda x: vmap(torch.dot, in_dims=(1, None))(x, x[:, 0]),
    "vmap nested, with a number": lambda x: vmap(vmap(lambda a: a.sin() * 2 + 1))(x),
    "vmap of a convolution": lambda x: vmap(lambda row: F.conv1d(row.reshape(1, 1, 4), torch.ones(1, 1, 2)))(x),
    "grad": lambda x: grad(loss)(W, x),
    "grad per sample": lambda x: vmap(grad(loss), in_dims=(None, 0))(W, x),
    "vjp": lambda x: vjp(lambda w: x @ w, W)[1](torch.ones(3, 3)),
    "jvp": lambda x: jvp(torch.sin, (x,), (torch.ones_like(x),)),
    "jacrev": lambda x: jacrev(lambda row: row.exp())(x[0]),
    "jacfwd": lambda x: jacfwd(lambda row: row.exp())(x[0]),
    "hessian": lambda x: hessian(lambda row: row.pow(3).sum())(x[0]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    check(TRANSFORMS[name], X)


# --- in place


def slices(x: torch.Tensor) -> torch.Tensor:
    x[0] = 7
    x[:, 1:3] += 1
    x[1:, ::2].mul_(2)
    return x.sum()


def view_of_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x.t()[1:]
    y[:2].add_(1)
    return y


def before_and_after(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    before = x * 2
    x.relu_()
    return before, x * 2


def through_a_list(x: torch.Tensor) -> list[torch.Tensor]:
    parts = list(x.unbind(0))
    parts[1].zero_()
    return parts


def intermediate(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y[0].fill_(3)
    z = y[1:]
    z[-1, -1] = 5
    return y


IN_PLACE: dict[str, Callable[[torch.Tensor], Any]] = {
    "slices": slices,
    "view of a view": view_of_a_view,
    "before and after": before_and_after,
    "through a list": through_a_list,
    "intermediate": intermediate,
    "returned": lambda x: x.add_(1),
    "transposed": lambda x: x.t().add_(1),
    "masked": lambda x: x.masked_fill_(x > 0, 0.5),
    "copied": lambda x: x.copy_(torch.ones(4)),
    "set by index": lambda x: x.index_put_((torch.tensor([0, 2]),), torch.zeros(4)),
    "scattered": lambda x: x.scatter_(1, torch.tensor([[0], [1], [2]]), 9.0),
    "clamped diagonal": lambda x: x.diagonal().clamp_(min=0),
}
FORMS: dict[str, Callable[[], torch.Tensor]] = {
    "contiguous": lambda: X.clone(),
    "transposed": lambda: X.reshape(4, 3).clone().t(),
    "part": lambda: torch.linspace(-1, 1, 40).reshape(5, 8)[1:4, 2:6],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str, form: str) -> None:
    check(IN_PLACE[name], FORMS[form](), strides=False)


def test_in_place_on_an_input_given_twice() -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x + y

    ours, theirs = X.clone(), X.clone()
    run = torch.compile(both, backend=tt_torch.backend)
    same((run(ours, ours), ours), (both(theirs, theirs), theirs))
    same((run(ours, ours[:, :4]), ours), (both(theirs, theirs[:, :4]), theirs))


# --- modes

MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "grad": nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode: str) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    run = torch.compile(model, backend=tt_torch.backend)
    with MODES[mode]():
        for _ in range(2):
            got, expected = run(X), model(X)
            same(got, expected)
            assert got.requires_grad == expected.requires_grad
            assert got.is_inference() == expected.is_inference()


def test_one_function_in_all_modes() -> None:
    model = nn.Linear(4, 2)
    run = torch.compile(model, backend=tt_torch.backend)
    for mode in (*MODES.values(), *MODES.values()):
        with mode():
            same(run(X), model(X))
        with torch.no_grad():
            model.weight.mul_(1.5)


def test_modes_inside() -> None:
    def inside(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = (x @ w).amax()
        with torch.enable_grad():
            return (x @ w / scale).sum()

    ours, theirs = W.clone().requires_grad_(), W.clone().requires_grad_()
    torch.compile(inside, backend=tt_torch.backend, fullgraph=True)(X, ours).backward()
    inside(X, theirs).backward()
    same(ours.grad, theirs.grad)


# --- graphs and modules


def printing(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print(end="")
    return y + 1


def branching(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.sum() > 0 else x - 1


def item(x: torch.Tensor) -> torch.Tensor:
    return x * x.abs().max().item()


def looping(x: torch.Tensor) -> torch.Tensor:
    for i in range(3):
        x = x * 2 if x.mean() < i else x + i
    return x


def numpy_inside(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2) + 1


@pytest.mark.parametrize("function", [printing, branching, item, looping, numpy_inside], ids=lambda f: f.__name__)
def test_graph_breaks(function: Callable[..., Any]) -> None:
    for x in (X + 1, X - 1):
        check(function, x, fullgraph=False)


def test_fullgraph_refuses_a_break() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(branching, backend=tt_torch.backend, fullgraph=True)(X)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.inner = nn.ModuleList([nn.Linear(4, 4)] * 2)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for layer in self.inner:
            x = layer(x).relu()
        return self.head(x)


def test_tied_weights_get_one_gradient() -> None:
    ours = Tied()
    theirs = copy.deepcopy(ours)
    ids = torch.tensor([[1, 2, 6], [0, 0, 3]])
    torch.compile(ours, backend=tt_torch.backend)(ids).square().mean().backward()
    theirs(ids).square().mean().backward()
    same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])
    assert ours.head.weight is ours.embed.weight


def test_functional_call() -> None:
    model = nn.Linear(4, 2)
    run = torch.compile(lambda p, x: functional_call(model, p, (x,)), backend=tt_torch.backend)
    for scale in (1, 2):
        weights = {name: p.detach() * scale for name, p in model.named_parameters()}
        same(run(weights, X), functional_call(model, weights, (X,)))


def test_threads_with_models_of_their_own_and_one_shared() -> None:
    shared = torch.compile(nn.Linear(4, 2), backend=tt_torch.backend)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        try:
            generator = torch.Generator().manual_seed(seed)
            own = nn.Sequential(nn.Linear(4, 3 + seed), nn.ReLU())
            run = torch.compile(own, backend=tt_torch.backend)
            with torch.no_grad():
                for _ in range(5):
                    x = torch.randn(3, 4, generator=generator)
                    same(run(x), own(x))
                    same(shared(x), shared._orig_mod(x))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong


# --- exported programs, custom ops


def test_exported_program() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)
            self.register_buffer("shift", torch.ones(2))

        def forward(self, x: torch.Tensor, scale: float = 2.0) -> dict[str, torch.Tensor]:
            return {"y": self.linear(x) * scale + self.shift}

    model = Model().eval()
    program = torch.export.export(model, (X,))
    with torch.no_grad():
        same(torch.compile(program.module(), backend=tt_torch.backend)(X), model(X))
        same(tt_torch.compile_model(program.module(), (X,))(X), model(X))
        same(torch.compile(program.run_decompositions().module(), backend=tt_torch.backend)(X), model(X))


def test_exported_with_a_dynamic_batch() -> None:
    model = nn.Linear(4, 2)
    program = torch.export.export(model, (X,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=9)},))
    run = torch.compile(program.module(), backend=tt_torch.backend)
    with torch.no_grad():
        for batch in (3, 5, 3):
            x = torch.randn(batch, 4)
            same(run(x), model(x))


@torch.library.custom_op("tt_torch_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scaled.register_fake
def _(x: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(x)


scaled.register_autograd(
    lambda ctx, gradient: (gradient * ctx.factor, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
)
LIBRARY = torch.library.Library("tt_torch_tests", "FRAGMENT")
LIBRARY.define("shifted(Tensor x) -> Tensor")
LIBRARY.impl("shifted", lambda x: x.relu() + 1, "CompositeImplicitAutograd")


def test_custom_ops() -> None:
    """An op with a decomposition is compiled. An opaque op runs on the host, and the warning names it."""
    check(lambda x: torch.ops.tt_torch_tests.shifted(x) * 2, X)
    with pytest.warns(HostFallbackWarning, match="tt_torch_tests.scaled"):
        got = torch.compile(lambda x: scaled(x + 1, 2.0) @ W, backend=tt_torch.backend)(X)
    same(got, scaled(X + 1, 2.0) @ W)


def test_custom_op_with_a_gradient() -> None:
    ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
    with pytest.warns(HostFallbackWarning):
        torch.compile(lambda x: scaled(x.tanh(), 2.0).sum(), backend=tt_torch.backend)(ours).backward()
    scaled(theirs.tanh(), 2.0).sum().backward()
    same(ours.grad, theirs.grad)


# --- forms of inputs and outputs

OUTPUTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "expanded": lambda x: (x + 1)[:1].expand(5, 4),
    "expanded input": lambda x: x[0].expand(2, 4),
    "transposed": lambda x: (x + 1).t(),
    "every other": lambda x: (x + 1)[:, ::2],
    "out=": lambda x: torch.add(x, 1, out=torch.empty(3, 4)),
    "views of one": lambda x: ((y := x + 1), y[0], y.t(), y.view(-1)),
    "empty": lambda x: (x[:0] + 1, x[:, 4:].sum(), x.new_empty(0), torch.cat([x[:0], x])),
    "empty reduced": lambda x: (x[:0].sum(0), x[:0].prod(), x[:0].any(1), x[:0] @ W),
    "scalars": lambda x: (x.sum(), x[0, 0] + 1, x.mean().reshape(()), x.max()),
    "channels last": lambda x: (x.reshape(1, 3, 2, 2) + 1).to(memory_format=torch.channels_last),
    "numbers": lambda x: (x.shape, x.dtype, x.dim(), x + 1, None, "text"),
}
# These views become copies: a later write to one element is not seen in the elements that shared its memory.
COPIED: dict[str, Callable[[torch.Tensor], Any]] = {
    "overlapping": lambda x: (x + 1).flatten().as_strided((3, 4), (1, 1)),
    "unfolded": lambda x: (x * 2).unfold(1, 2, 1),
}
INPUTS: dict[str, Callable[[], torch.Tensor]] = {
    "overlapping": lambda: torch.arange(6.0).as_strided((3, 4), (1, 1)),
    "expanded": lambda: torch.arange(4.0).expand(3, 4),
    "every other": lambda: torch.arange(24.0).reshape(3, 8)[:, ::2],
    "turned": lambda: torch.arange(12.0).reshape(4, 3).t(),
    "offset": lambda: torch.arange(20.0)[5:17].view(3, 4),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs(name: str) -> None:
    check(OUTPUTS[name], X)


@pytest.mark.parametrize("name", COPIED)
def test_outputs_that_are_copies(name: str) -> None:
    check(COPIED[name], X, strides=False)


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(name: str) -> None:
    x = INPUTS[name]()
    function = lambda x: (x * 2 + 1, x.sum(0), x.t() @ x, x[1], x.softmax(-1))  # noqa: E731
    run = torch.compile(function, backend=tt_torch.backend)
    for value, golden in zip(run(x), function(x), strict=True):
        torch.testing.assert_close(value, golden)
